"""The mesa layer is the minimum of its regression problem, and conjugate gradients reach it."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from mesascope.core import named_key
from mesascope.models import MemoryLayer, MemorySizes, MesaNet
from mesascope.records import Figure, Line
from mesascope.specs import of_family
from mesascope.theory import vonoswald2025 as theory

from .._claim import Claim, Finding, Settings, presets, verdict_if, within
from .._figures import one_panel
from .._identity import identities, relative_error
from .._memories import Pairs, answers, gates_of, gaussian_pairs, memory_layer
from .._rotations import rotated

PAPER = "vonoswald2025"
_DRAWN = 1e-12
"""Errors of figures; what is below is rounding."""


def _layer(settings: _Optimal, key: int, value: int, scale: float) -> MemoryLayer:
    """A mesa layer, whose gates differ from token to token if the scale is not 0."""
    rule = {"kind": "mesa-net", "penalty": settings.regularization}
    return memory_layer(rule, key, value, scale, settings.seed)


def _gates(layer: MemoryLayer, pairs: Pairs) -> tuple[np.ndarray, np.ndarray]:
    """β and γ, shape (n,)."""
    gates = gates_of(layer, pairs.stream)
    return gates["rate"][:, 0], gates["decay"][:, 0]


def _read_memory(layer: MemoryLayer, pairs: Pairs) -> np.ndarray:
    """M after all tokens of one sequence, from its answers to unit queries of the last token: shape (m, w)."""
    size = pairs.keys.shape[1]
    copies = [np.repeat(one[None], size, 0) for one in pairs]
    copies[2][:, -1] = np.eye(size)
    return answers(layer, Pairs(*copies))[:, -1].T


def _optimal(settings: _Optimal) -> Finding:
    """Answers against least squares, and the gradient of the objective at the layer's memory."""
    errors: dict[str, dict[str, float]] = {"least squares": {}, "gradient": {}}
    for key, value, tokens in settings.cases:
        layer, name = _layer(settings, key, value, settings.scale), f"w = {key}, m = {value}, n = {tokens}"
        pairs = gaussian_pairs(settings.seed, (tokens,), key, value)
        rates, decays = _gates(layer, pairs)
        penalty = np.full(key, settings.regularization)
        expected = [
            theory.gated_ridge(
                pairs.keys[:n], pairs.values[:n], theory.token_weights(rates[:n], decays[:n]), penalty
            )
            @ pairs.queries[n - 1]
            for n in range(1, tokens + 1)
        ]
        errors["least squares"][name] = relative_error(answers(layer, pairs), expected)
        errors["gradient"][name] = _gradient(settings, key, value, tokens)
    return identities(errors, settings.tolerance)


def _gradient(settings: _Optimal, key: int, value: int, tokens: int) -> float:
    """½ ∇ at the memory of a layer with constant gates, relative to ½ ∇ at 0, the largest entry of each."""
    layer = _layer(settings, key, value, 0.0)
    pairs = gaussian_pairs(settings.seed + 1, (tokens,), key, value)
    rates, decays = _gates(layer, pairs)
    weights, memory = theory.token_weights(rates, decays)[:, None], _read_memory(layer, pairs)
    at_zero = -(weights * pairs.values).T @ pairs.keys
    left = (weights * (pairs.keys @ memory.T - pairs.values)).T @ pairs.keys
    return float(np.abs(left + settings.regularization * memory).max() / np.abs(at_zero).max())


def _mesa_rule(size: int, penalty: float, steps: int | None) -> MesaNet:
    sizes = MemorySizes(size, heads=1, key=size, value=size)
    made: MesaNet = of_family("rule", {"kind": "mesa-net", "penalty": penalty, "steps": steps}).build(
        sizes, 0.0, named_key(0)
    )
    return made


def _system(settings: _Steps, condition: float) -> tuple[np.ndarray, np.ndarray]:
    """H such that H + Λ has these condition number and smallest eigenvalue λ, and queries (w, batch)."""
    rng = np.random.default_rng([settings.seed, int(condition)])
    values = settings.regularization * (np.geomspace(1, condition, settings.dim) - 1)
    return rotated(values, rng), rng.normal(size=(settings.dim, settings.queries))


_read = eqx.filter_jit(lambda rule, memory, queries: rule.read(memory, queries))


def _left(settings: _Steps, condition: float) -> np.ndarray:
    """The error after each number of steps in the norm of H + Λ, relative to that of 0: the largest over queries."""
    gram, queries = _system(settings, condition)
    system = gram + settings.regularization * np.eye(settings.dim)
    exact = np.linalg.solve(system, queries)

    def norms(errors: np.ndarray) -> np.ndarray:
        return np.asarray(np.sqrt(np.sum(errors * (system @ errors), 0)))

    left = []
    batched = jnp.asarray(queries)
    matrices = {"products": np.eye(settings.dim), "gram": gram}  # with the products 1 the answer is x
    repeated = {name: jnp.repeat(one[..., None], settings.queries, -1) for name, one in matrices.items()}
    for steps in settings.steps:
        rule = _mesa_rule(settings.dim, settings.regularization, steps)
        memory = rule.empty(batched, batched)._replace(**repeated)
        found = np.asarray(_read(rule, memory, batched))
        left.append(float((norms(found - exact) / norms(exact)).max()))
    return np.array(left)


def _steps(settings: _Steps) -> Finding:
    """Errors against the bound of Chebyshev, and their end."""
    left = {condition: _left(settings, condition) for condition in settings.conditions}
    bounds = {
        condition: np.array([theory.conjugate_gradient_bound(condition, k) for k in settings.steps])
        for condition in settings.conditions
    }
    above = max(float(np.max(left[one] - bounds[one])) for one in left)
    end = max(float(one[-1]) for one in left.values())
    falls = all(bool((np.diff(one) < settings.rounding).all()) for one in left.values())
    parts = {
        "below the bound": within(above, settings.rounding),
        "falls": verdict_if(falls),
        "exact at the end": within(end, settings.rounding),
    }
    return Finding.of_parts(
        {"largest error above the bound": above, "error at the end": end},
        {"largest error above the bound": "at most 0", "error at the end": 0.0},
        settings.rounding,
        parts,
        {
            "steps": settings.steps,
            "errors": {f"condition {condition:g}": one.tolist() for condition, one in left.items()},
        },
        {"conjugate-gradients": _figure(settings, left, bounds)},
    )


def _figure(settings: _Steps, left: dict[int, np.ndarray], bounds: dict[int, np.ndarray]) -> Figure:
    steps = np.asarray(settings.steps)
    lines = []
    for series, (condition, errors) in enumerate(left.items()):
        shown = errors > _DRAWN
        lines += [
            Line(
                x=steps[shown],
                y=errors[shown],
                label=f"condition {condition:g}",
                series=series,
                style="solid",
            ),
            Line(x=steps[shown], y=bounds[condition][shown], label="bound", series=series, style="dotted"),
        ]
    return one_panel(
        "The mesa layer by steps of conjugate gradients",
        f"keys of {settings.dim} entries",
        *lines,
        xlabel="steps",
        ylabel="relative error",
        yscale="log",
        caption="The largest of random queries; where errors are rounding nothing is drawn.",
    )


class _Optimal(Settings):
    cases: tuple[tuple[int, int, int], ...] = ((3, 2, 8), (8, 8, 60))
    regularization: float = 0.5
    scale: float = 0.5
    seed: int = 0
    tolerance: float = 1e-10


class _Steps(Settings):
    dim: int = 16
    queries: int = 50
    conditions: tuple[int, ...] = (3, 30, 300)
    steps: tuple[int, ...] = (1, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 24, 32)
    regularization: float = 0.5
    seed: int = 0
    rounding: float = 1e-10


CLAIMS = (
    Claim(
        id=f"{PAPER}/layer-is-optimal",
        title="The mesa layer is the minimum of a gated ridge regression",
        evidence="exact",
        origin="authors' code",
        statement="""After every token the mesa layer answers with the minimum of Σ ζ_i |v_i − M k_i|² + tr MΛMᵀ, where ζ_i =
            β_i Π γ_s over later tokens; there the gradient vanishes.""",
        source="""vonoswald2025, abstract (arXiv: an in-context loss, minimized to optimality at every time point);
            `naive_mesa_net_exact` in `fla/ops/mesa_net/naive.py:44-68` of the authors' program at bc3b101 for the
            gates""",
        settings=presets(_Optimal()),
        check=_optimal,
        criterion="""The answers are those of least squares on stacked rows, by orthogonal factorization, to 10⁻¹⁰ of the
            largest; the gradient at the layer's memory is at most 10⁻¹⁰ of that at 0. Both are rounding in double
            precision of systems with condition numbers below 10³.""",
    ),
    Claim(
        id=f"{PAPER}/conjugate-gradients",
        title="Conjugate gradients reach the exact mesa layer",
        evidence="exact",
        origin="authors' code",
        statement="""More steps of conjugate gradients come nearer to the solution of (H + Λ)x = q, within the Chebyshev
            bound; in double precision twice as many steps as key entries reach it.""",
        source="""vonoswald2025, abstract (arXiv: a fast conjugate gradient solver); `fla/ops/mesa_net/naive.py:26-39` of
            the authors' program at bc3b101, where 30 steps for 128 key entries are the default
            (`fla/layers/mesa_net.py:66-73`)""",
        settings=presets(_Steps()),
        check=_steps,
        criterion="""In the norm of H + Λ the largest error over queries is at most the bound and falls with more steps, up to
            10⁻¹⁰, and is at most 10⁻¹⁰ after the last: rounding, times the condition number. In exact arithmetic as
            many steps as key entries would do; in double precision directions lose their orthogonality.""",
    ),
)
