"""Layers that are a gradient step, ridge regression, or approach it: exact identities and their limits."""

from __future__ import annotations

import numpy as np

from mesascope.core import named_key
from mesascope.models import LinearAttentionStack, Looped, MesaLayer
from mesascope.processes import Gaussian, OrthogonalAR
from mesascope.records import Figure, Line
from mesascope.theory import vonoswald2024 as theory

from .._claim import Claim, Finding, Settings, presets, within
from .._figures import one_panel
from .._identity import identity, relative_error
from .._prompts import construction_stack
from ._common import PAPER, drawn, run_layers


def _sequences(dim: int, horizon: int, settings: _Drawn) -> np.ndarray:
    process = OrthogonalAR(Gaussian(1.0), dim, noise=0.1)
    key = named_key(settings.seed, "identity", str(dim), str(horizon))
    return np.asarray(drawn(process, key, horizon, settings.sequences))


def _moments(s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """C_t = Σ_{i≤t} s_i s_{i−1}ᵀ and Σ_{i≤t} s_{i−1} s_{i−1}ᵀ for every t, shapes (…, T, d, d)."""
    before = np.concatenate([np.zeros_like(s[..., :1, :]), s[..., :-1, :]], -2)
    cross = np.cumsum(s[..., :, None] * before[..., None, :], -3)
    return cross, np.cumsum(before[..., :, None] * before[..., None, :], -3)


def _ridge(s: np.ndarray, regularization: float) -> np.ndarray:
    """What ridge regression on the first t tokens answers at s_t, shape (…, T, d)."""
    cross, gram = _moments(s)
    solved = np.linalg.solve(gram + np.eye(s.shape[-1]) / regularization, s[..., None])
    return np.asarray((cross @ solved)[..., 0])


def _gradient_step(settings: _GradientStep) -> Finding:
    """One layer against Φ₀ − η∇L_t(Φ₀)."""
    errors: dict[str, float] = {}
    for dim, horizon in settings.cases:
        s = _sequences(dim, horizon, settings)
        phi = np.random.default_rng([settings.seed, dim]).normal(size=(dim, dim))
        eta = settings.step_size
        layer = construction_stack(theory.gradient_step(phi, eta), "1", "causal")
        stream = run_layers(layer, theory.gradient_step_tokens(s, phi))
        cross, gram = _moments(s)
        stepped = phi - eta * (phi @ gram - cross)
        expected = (stepped @ s[..., None])[..., 0]
        errors[f"d = {dim}, T = {horizon}"] = relative_error(stream[..., :dim], expected)
    return identity(errors, settings.tolerance)


def _mesa_layer(settings: _MesaLayer) -> Finding:
    """One mesa layer against ridge regression."""
    errors: dict[str, float] = {}
    for dim, horizon in settings.cases:
        s = _sequences(dim, horizon, settings)
        for regularization in settings.regularizations:
            stream = run_layers(
                _mesa(dim, regularization), theory.gradient_step_tokens(s, np.zeros((dim, dim)))
            )
            errors[f"d = {dim}, T = {horizon}, λ = {regularization:g}"] = relative_error(
                stream[..., :dim], _ridge(s, regularization)
            )
    return identity(errors, settings.tolerance)


def _mesa(dim: int, regularization: float) -> LinearAttentionStack:
    factors = theory.ridge_factors(dim)
    return LinearAttentionStack([MesaLayer(**factors._asdict(), regularization=regularization)])


def _linear_limit(settings: _LinearLimit) -> Finding:
    """The mesa layer divided by λ against linear attention, as λ → 0."""
    dim, horizon = settings.dim, settings.horizon
    s = _sequences(dim, horizon, settings)
    zero = np.zeros((dim, dim))
    tokens = theory.gradient_step_tokens(s, zero)
    layer = construction_stack(theory.gradient_step(zero, 1.0), "1", "causal")
    linear = np.asarray(run_layers(layer, tokens))[..., :dim]
    gaps = [
        relative_error(run_layers(_mesa(dim, value), tokens)[..., :dim] / value, linear)
        for value in settings.regularizations
    ]
    slopes = np.diff(np.log(gaps)) / np.diff(np.log(settings.regularizations))
    worst = float(np.max(np.abs(slopes - 1)))
    parts = {
        "in proportion to λ": within(worst, settings.tolerance),
        "no difference at the end": within(gaps[-1], settings.end_tolerance),
    }
    return Finding.of_parts(
        {"largest_deviation_of_the_order": worst, "difference_at_the_smallest": gaps[-1]},
        {"largest_deviation_of_the_order": 0.0, "difference_at_the_smallest": 0.0},
        settings.tolerance,
        parts,
        {"regularizations": settings.regularizations, "differences": gaps, "orders": slopes.tolist()},
    )


def _stack_limit(settings: _StackLimit) -> Finding:
    """The same layer again and again against the truncated series, and against ridge regression."""
    dim, horizon, ridge = settings.dim, settings.horizon, settings.regularization
    s = _sequences(dim, horizon, settings)
    cross, gram = _moments(s)
    system = gram + np.eye(dim) / ridge
    largest, smallest = (float(pick(np.linalg.eigvalsh(system))) for pick in (np.max, np.min))
    eta = 1 / largest
    network = Looped(construction_stack(theory.ridge_by_layers(dim, 1, eta), "1", "causal"), 1)
    tokens, wanted = theory.ridge_tokens(s, ridge), _ridge(s, ridge)
    series, left, bounds = [], [], []
    for layers in settings.layers:
        answer = np.asarray(network(tokens, loops=layers))[..., dim:, :dim]
        power = np.linalg.matrix_power(np.eye(dim) - eta * system, layers)
        truncated = cross @ np.linalg.solve(system, (np.eye(dim) - power) @ s[..., None])
        series.append(relative_error(answer, truncated[..., 0]))
        left.append(relative_error(answer, wanted))
        bounds.append((1 - eta * smallest) ** layers)
    worst = max(series)
    parts = {
        "the truncated series": within(worst, settings.tolerance),
        "ridge regression at the end": within(left[-1], settings.tolerance),
    }
    return Finding.of_parts(
        {"from_the_truncated_series": worst, "from_ridge_at_the_end": left[-1]},
        {"from_the_truncated_series": 0.0, "from_ridge_at_the_end": 0.0},
        settings.tolerance,
        parts,
        {"layers": settings.layers, "from_the_series": series, "from_ridge": left, "rate": bounds},
        {"layers-approach-ridge": _figure(settings, left, bounds)},
    )


def _figure(settings: _StackLimit, left: list[float], bounds: list[float]) -> Figure:
    layers = np.asarray(settings.layers)
    shown = np.asarray(left) > 1e-12  # what lies below is rounding
    return one_panel(
        "Layers of linear attention approach ridge regression",
        f"d = {settings.dim}, T = {settings.horizon}, λ = {settings.regularization:g}",
        Line(x=layers[shown], y=np.asarray(left)[shown], label="network"),
        Line(x=layers[shown], y=np.asarray(bounds)[shown], label="$(1 − ηµ)^L$", series="theory"),
        xlabel="layers",
        ylabel="relative distance from ridge regression",
        yscale="log",
        caption="µ: the smallest eigenvalue of all ridge problems, η the inverse of the largest.",
    )


class _Drawn(Settings):
    sequences: int = 16
    seed: int = 0


class _Cases(_Drawn):
    cases: tuple[tuple[int, int], ...] = ((1, 4), (4, 20), (10, 50))
    tolerance: float = 1e-12


_ROUNDING = "An identity: within 10⁻¹² of the largest entry, for the rounding of double precision"


class _GradientStep(_Cases):
    step_size: float = 0.1


class _MesaLayer(_Cases):
    regularizations: tuple[float, ...] = (0.1, 1.0, 10.0)


class _LinearLimit(_Drawn):
    dim: int = 4
    horizon: int = 20
    regularizations: tuple[float, ...] = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7)
    tolerance: float = 0.05
    end_tolerance: float = 1e-4


class _StackLimit(_Drawn):
    dim: int = 4
    horizon: int = 20
    sequences: int = 8
    regularization: float = 1.0
    layers: tuple[int, ...] = (1, 4, 16, 64, 250, 1000, 5000)
    tolerance: float = 1e-12


CLAIMS = (
    Claim(
        id=f"{PAPER}/proposition-1",
        title="One layer of linear attention is one gradient step",
        evidence="exact",
        origin="paper",
        statement="""On tokens (Φ₀s_t, s_t, s_{t−1}) one layer of linear attention with the weights of Proposition 1 answers
            every token by (Φ₀ − η∇L_t(Φ₀)) s_t, for any Φ₀.""",
        source="vonoswald2024, Proposition 1 (proof in Methods)",
        settings=presets(_GradientStep()),
        check=_gradient_step,
        criterion=f"{_ROUNDING}.",
    ),
    Claim(
        id=f"{PAPER}/mesa-layer-is-ridge",
        title="One mesa layer is ridge regression",
        evidence="exact",
        origin="paper",
        statement="""With keys s_{i−1}, values s_i and queries s_t a mesa layer answers every token by ridge regression on the
            tokens so far.""",
        source="vonoswald2024, equations (4) to (8)",
        settings=presets(_MesaLayer()),
        check=_mesa_layer,
        criterion=f"{_ROUNDING}; the ridge problems have condition numbers up to a thousand.",
    ),
    Claim(
        id=f"{PAPER}/linear-attention-limit",
        title="With λ → 0 the mesa layer becomes linear attention",
        evidence="exact",
        origin="paper",
        statement="As λ → 0 the mesa layer, divided by λ, becomes linear attention.",
        source="vonoswald2024, after equation (6), where the factor is left out",
        settings=presets(_LinearLimit()),
        check=_linear_limit,
        criterion="""The difference is below 10⁻⁴ of the answers at λ = 10⁻⁷ and falls in proportion to λ: its order lies within
            0.05 of 1, for the next power of λ times the Gram matrix, some 10⁻² at the largest λ. The order was derived
            here.""",
    ),
    Claim(
        id=f"{PAPER}/proposition-2",
        title="Many layers of linear attention approach ridge regression",
        evidence="exact",
        origin="paper",
        statement="""Stacked layers of linear attention compute a truncated Neumann series of (SSᵀ + I/λ)⁻¹ s_t and, with their
            number, approach ridge regression.""",
        source="vonoswald2024, Proposition 2 (proof in Methods); our layers are equal and hold the ridge in tokens",
        settings=presets(_StackLimit()),
        check=_stack_limit,
        criterion=f"""{_ROUNDING}, from the series for every number of layers and from ridge regression after 5000, when e⁻⁴² of
            the limit is left.""",
    ),
)
