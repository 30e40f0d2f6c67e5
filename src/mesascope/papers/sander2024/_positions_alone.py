"""Positions alone: the closed form of descent, and the matrices of positions that the authors store."""

from __future__ import annotations

from bisect import bisect_left
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy
from jax import Array

from mesascope.records import Figure, Line, Panel, Points, Rule
from mesascope.theory import sander2024 as theory

from .._claim import Claim, Finding, Settings, presets, within
from .._intervals import above
from ._authors import PROGRAM, stored_positions
from ._ends import PAPER

_LONGEST, _ANGLES = 30, 1000  # of their program (pe_only.py:29, 31)
_CONTEXTS = range(2, _LONGEST + 1)
_LEARNABLE = 1e-6  # eigenvalues above it; those of double precision are known to a few 1e-15


class _Stopped(NamedTuple):
    """Where the authors' rule stops descent.

    Attributes:
        steps: taken.
        positions: one row per context of 2, 3, … tokens.
    """

    steps: int
    positions: list[np.ndarray]

    def without_last(self) -> np.ndarray:
        """What their files hold: every row without its last entry, which they mask."""
        return np.concatenate([row[:-1] for row in self.positions])


def _positions_alone(settings: _PositionsAlone) -> Finding:
    """Their loss against the closed form, this against their files, and its eigenvectors against SciPy's sequences."""
    program = _error_of_the_closed_form(settings)
    ends = {mu: _stopped(_exact_gram(mu), settings) for mu in settings.mus}
    distances = {mu: _distance(_stored(mu), end.without_last()) for mu, end in ends.items()}
    drawn = {mu: _distances_of_draws(mu, end.without_last(), settings) for mu, end in ends.items()}
    prolate = max(_error_of_eigenvectors(mu) for mu in settings.mus)
    sizes = {mu: float(np.linalg.norm(stored_positions(mu)[_LONGEST - 2])) for mu in settings.mus}
    least = min(sizes.values())
    parts = {
        "the closed form is descent on their loss": within(program, settings.exactness),
        "their files hold it": within(max(distances.values()), settings.sampling),
        "its eigenvectors are prolate sequences": within(prolate, settings.tolerance),
        "their files are far from the minimum": above([least, least], settings.least),
    }
    return Finding.of_parts(
        {
            "error_of_the_closed_form": program,
            "distance_of_stored_positions": distances,
            "error_of_prolate_sequences": prolate,
            "size_of_stored_positions": sizes,
        },
        {
            "error_of_the_closed_form": 0.0,
            "distance_of_stored_positions": 0.0,
            "error_of_prolate_sequences": 0.0,
            "size_of_stored_positions": f"above {settings.least}; 0 at the minimum",
        },
        settings.sampling,
        parts,
        {
            "steps": {mu: end.steps for mu, end in ends.items()},
            "distances_of_draws": drawn,
            "last_position_of_the_closed_form": {mu: end.positions[-1][-1] for mu, end in ends.items()},
            "filter_of_each_sequence": {mu: _filter(mu, end.steps, settings) for mu, end in ends.items()},
            "meaning": """by μ, where angles are uniform on [0, 2π/μ]; distances relative to the closed form; size: the norm of
                the stored p_1 … p_{T−1} of 30 tokens""",
        },
        {"positions-alone": _figure(ends, settings)},
    )


def _largest_angle(mu: float) -> float:
    return 2 * np.pi / mu


def _exact_gram(mu: float) -> np.ndarray:
    return theory.position_gram(_LONGEST, _largest_angle(mu))


def _drawn_gram(angles: np.ndarray) -> np.ndarray:
    """The mean of Re λ^{2(s−t)} over drawn angles instead of all."""
    index = np.arange(_LONGEST)
    return np.cos(2 * np.outer(angles, index)).mean(0)[np.abs(index[:, None] - index)]


def _rate(settings: _PositionsAlone) -> float:
    """Of one row: their loss is the mean over all contexts."""
    return settings.rate / len(_CONTEXTS)


def _stopped(gram: np.ndarray, settings: _PositionsAlone) -> _Stopped:
    """Descent until their loss is below the threshold; their loop takes one more step before it looks."""
    rate, blocks = _rate(settings), [gram[:context, :context] for context in _CONTEXTS]
    spectra = [np.linalg.eigh(block) for block in blocks]

    def loss(steps: int) -> float:
        left = [(g * (vectors[-1] * (1 - 2 * rate * g) ** steps) ** 2).sum() for g, vectors in spectra]
        return float(np.mean(left))

    first = bisect_left(range(settings.epochs), True, key=lambda steps: loss(steps) < settings.stop)
    steps = min(first + 1, settings.epochs)
    return _Stopped(steps, [theory.descended_positions(block, rate, steps) for block in blocks])


def _stored(mu: int) -> np.ndarray:
    """Their row r, counted from 0, is that of r + 2 tokens; the last has no loss."""
    rows = stored_positions(mu)
    return np.concatenate([row[: number + 1] for number, row in enumerate(rows[:-1])])


def _distance(found: np.ndarray, wanted: np.ndarray) -> float:
    return float(np.linalg.norm(found - wanted) / np.linalg.norm(wanted))


def _distances_of_draws(mu: int, wanted: np.ndarray, settings: _PositionsAlone) -> list[float]:
    """How far descents on so many angles as theirs end from the descent on all angles."""
    rng = np.random.default_rng((settings.seed, mu))
    draws = rng.uniform(0, _largest_angle(mu), (settings.replicas, _ANGLES))
    grams = (_drawn_gram(angles) for angles in draws)
    return [_distance(_stopped(gram, settings).without_last(), wanted) for gram in grams]


def _error_of_the_closed_form(settings: _PositionsAlone) -> float:
    """Largest difference from their program, step by step on the same angles."""
    angles = np.random.default_rng(settings.seed).uniform(0, _largest_angle(_shown(settings)), settings.batch)
    positions, slope = jnp.zeros((_LONGEST, _LONGEST)), jax.jit(jax.grad(_program_loss))
    for _ in range(settings.steps):
        positions = positions - settings.rate * slope(positions, jnp.asarray(angles))
    gram, rate = _drawn_gram(angles), _rate(settings)
    return max(
        float(
            np.abs(
                row[:context] - theory.descended_positions(gram[:context, :context], rate, settings.steps)
            ).max()
        )
        for context, row in zip(_CONTEXTS, np.asarray(positions), strict=False)
    )


def _program_loss(positions: Array, angles: Array) -> Array:
    """The loss of pe_only.py: scores ⟨x_q, x_k⟩ p_{qk} for k ≤ q + 1, and the token after the next as the target."""
    count = len(positions)
    tokens = jnp.exp(1j * angles[:, None] * jnp.arange(count + 1))
    seen = tokens[:, :-1]
    scores = seen.conj()[:, :, None] * seen[:, None, :] * jnp.tril(jnp.ones((count, count)), 1) * positions
    answers = (scores @ seen[..., None])[..., 0]
    return jnp.mean(jnp.abs(answers[:, :-1] - tokens[:, 2:]) ** 2)


def _spectrum(mu: float) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues of the longest context that are above `_LEARNABLE`, largest first, and their eigenvectors as rows."""
    values, vectors = np.linalg.eigh(_exact_gram(mu))
    count = np.count_nonzero(values > _LEARNABLE)
    return values[::-1][:count], vectors.T[::-1][:count]


def _error_of_eigenvectors(mu: float) -> float:
    """Against SciPy's prolate sequences, which come from a tridiagonal matrix that commutes with theirs."""
    values, vectors = _spectrum(mu)
    bandwidth = _largest_angle(mu) / np.pi
    sequences, shares = scipy.signal.windows.dpss(
        _LONGEST, _LONGEST * bandwidth, len(values), return_ratios=True
    )
    signs = np.sign((sequences * vectors).sum(1))[:, None]
    relative = np.abs(2 * bandwidth * values / shares - 1)
    return float(max(np.abs(signs * sequences - vectors).max(), relative.max()))


def _filter(mu: float, steps: Any, settings: _PositionsAlone) -> list[Any]:
    """1 − (1 − 2ηg)^n for every eigenvalue g."""
    values, _ = _spectrum(mu)
    return [1 - (1 - 2 * _rate(settings) * g) ** steps for g in values]


def _shown(settings: _PositionsAlone) -> int:
    """The spectrum whose sequences are drawn."""
    return settings.mus[(len(settings.mus) - 1) // 2]


def _figure(ends: dict[int, _Stopped], settings: _PositionsAlone) -> Figure:
    tokens, shown = np.arange(1, _LONGEST + 1), _shown(settings)
    lines, points = [], []
    for series, (mu, end) in enumerate(ends.items()):
        stored = stored_positions(mu)[_LONGEST - 2]
        lines.append(Line(x=tokens, y=end.positions[-1], label=f"$\\mu = {mu}$", series=series))
        points.append(Points(x=tokens[:-1], y=stored[:-1], label=f"$\\mu = {mu}$, stored", series=series))
    steps = np.geomspace(1, settings.epochs, 200).round()
    return Figure(
        title="Positions alone, after descent from 0",
        panels=(
            Panel(
                title=f"context of {_LONGEST} tokens, stopped at loss {settings.stop:g}",
                xlabel="token $t$",
                ylabel="position $p_t$",
                traces=(*lines, *points),
            ),
            Panel(
                title=f"weight of each sequence, $\\mu = {shown}$",
                xlabel="step $n$",
                ylabel=r"$1 - (1 - 2 \eta g)^n$",
                xscale="log",
                traces=(
                    *(
                        Line(x=steps, y=part, label=f"prolate sequence {number}", series=number)
                        for number, part in enumerate(_filter(shown, steps, settings)[:5])
                    ),
                    Rule(value=ends[shown].steps, axis="x", label="stopped"),
                ),
            ),
        ),
        caption="Lines: closed form over all angles. Points: the authors' files, from 1000 angles; they do not hold the last "
        "position. Sequences by eigenvalue, largest first. At the minimum only the last position is not 0.",
    )


class _PositionsAlone(Settings):
    mus: tuple[int, ...] = (50, 100, 200, 300)
    rate: float = 0.5
    stop: float = 1e-3
    epochs: int = 100_000
    replicas: int = 20
    steps: int = 30
    batch: int = 50
    seed: int = 0
    sampling: float = 0.02
    least: float = 0.2
    exactness: float = 1e-12
    tolerance: float = 1e-8


CLAIMS = (
    Claim(
        id=f"{PAPER}/positions-alone",
        title="Positions learned alone are sums of prolate sequences, stopped early",
        evidence="exact",
        origin="authors' code",
        statement="""Descent on positions alone weighs prolate spheroidal sequences by their eigenvalues; the authors' stored
            positions are this sum where the loss has fallen to 10⁻³, far from the minimum.""",
        source=f"""sander2024, authors' program {PROGRAM}, pe_only.py and results/noisy_pe/pe_eps_mu_{{50,100,200,300}}.npy
            (Figure 6); the closed form is derived here""",
        settings=presets(_PositionsAlone()),
        check=_positions_alone,
        criterion="""Thirty steps on their loss (pe_only.py:71-93), written again, against the closed form on the same 50
            angles: 1e-12, rounding. Their files against the closed form over all angles: 2 %, since descents on 1000 drawn
            angles, as many as theirs, end up to 2 % away, and no seed is set. Eigenvectors, and eigenvalues above 1e-6 in
            relative size, against SciPy's sequences: 1e-8, rounding over the gaps. The minimum is the last position alone; the
            others, of norm 0 there, have at least 0.2 in the files (which do not hold the last one).""",
    ),
)
