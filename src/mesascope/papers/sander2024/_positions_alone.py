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
from ._authors import PROGRAM, stored_positions
from ._ends import PAPER

_SHOWN = 100  # whose directions are drawn: the second of the authors' spectra
_LEARNABLE = 1e-6  # eigenvalues above it; those of double precision are known to a few 1e-15


class _Stopped(NamedTuple):
    """Where the authors' rule stops descent.

    Attributes:
        steps: taken.
        positions: one row per context of 2, 3, … tokens.
    """

    steps: int
    positions: list[np.ndarray]

    def stored_part(self) -> np.ndarray:
        """What their files hold: every row without its last entry, which they mask."""
        return np.concatenate([row[:-1] for row in self.positions])


def _positions_alone(settings: _PositionsAlone) -> Finding:
    """Their program against the closed form, this against their files, and its directions against those of SciPy."""
    program = _error_of_the_closed_form(settings)
    ends = {scale: _stopped(_exact_gram(scale, settings), settings) for scale in settings.scales}
    distances = {scale: _distance(_stored(scale), end.stored_part()) for scale, end in ends.items()}
    drawn = {scale: _distances_of_draws(scale, end.stored_part(), settings) for scale, end in ends.items()}
    ratios = {scale: distances[scale] / max(drawn[scale]) for scale in ends}
    prolate = {scale: _error_of_directions(scale, settings) for scale in settings.scales}
    last = {scale: float(end.positions[-1][-1]) for scale, end in ends.items()}
    parts = {
        "the closed form is their descent": within(program, settings.exactness),
        "their files hold it": within(max(ratios.values()), settings.factor),
        "its directions are prolate sequences": within(max(prolate.values()), settings.tolerance),
        "the last position alone is far away": within(max(last.values()), settings.most),
    }
    return Finding.of_parts(
        {
            "error_of_the_closed_form": program,
            "distance_of_stored_positions": distances,
            "error_of_directions": max(prolate.values()),
            "last_position_when_stopped": last,
        },
        {
            "error_of_the_closed_form": 0.0,
            "distance_of_stored_positions": f"at most {settings.factor} × the largest of {settings.replicas} draws of angles",
            "error_of_directions": 0.0,
            "last_position_when_stopped": f"at most {settings.most}; 1 at the minimum",
        },
        settings.tolerance,
        parts,
        {
            "steps": {scale: end.steps for scale, end in ends.items()},
            "largest_distance_of_draws": {scale: max(found) for scale, found in drawn.items()},
            "learned_of_each_direction": {
                scale: _learned(scale, end.steps, settings) for scale, end in ends.items()
            },
            "directions_compared": {scale: len(_directions(scale, settings)[0]) for scale in settings.scales},
            "meaning": "by μ, where angles are uniform on [0, 2π/μ]; distances relative to the positions of the closed form",
        },
        {"positions-alone": _figure(ends, settings)},
    )


def _spread(scale: float) -> float:
    return 2 * np.pi / scale


def _exact_gram(scale: float, settings: _PositionsAlone) -> np.ndarray:
    return theory.position_gram(settings.longest, _spread(scale))


def _drawn_gram(angles: np.ndarray, longest: int) -> np.ndarray:
    """The mean of Re λ^{2(s−t)} over drawn angles instead of all."""
    index = np.arange(longest)
    return np.cos(2 * np.outer(angles, index)).mean(0)[np.abs(index[:, None] - index)]


def _rate(settings: _PositionsAlone) -> float:
    """Of one row: their loss is the mean over all contexts."""
    return settings.rate / (settings.longest - 1)


def _stopped(gram: np.ndarray, settings: _PositionsAlone) -> _Stopped:
    """Descent until their loss is below the threshold; their loop takes one more step before it looks."""
    rate, blocks = _rate(settings), [gram[:context, :context] for context in _contexts(settings)]
    spectra = [np.linalg.eigh(block) for block in blocks]

    def loss(steps: int) -> float:
        left = [(g * (vectors[-1] * (1 - 2 * rate * g) ** steps) ** 2).sum() for g, vectors in spectra]
        return float(np.mean(left))

    first = bisect_left(range(settings.epochs), True, key=lambda steps: loss(steps) < settings.stop)
    steps = min(first + 1, settings.epochs)
    return _Stopped(steps, [theory.descended_positions(block, rate, steps) for block in blocks])


def _contexts(settings: _PositionsAlone) -> range:
    return range(2, settings.longest + 1)


def _stored(scale: int) -> np.ndarray:
    """Their row r, counted from 0, is that of r + 2 tokens; the last has no loss."""
    rows = stored_positions(scale)
    return np.concatenate([row[: number + 1] for number, row in enumerate(rows[:-1])])


def _distance(found: np.ndarray, wanted: np.ndarray) -> float:
    return float(np.linalg.norm(found - wanted) / np.linalg.norm(wanted))


def _distances_of_draws(scale: int, wanted: np.ndarray, settings: _PositionsAlone) -> list[float]:
    """How far descents on so many angles as theirs end from the descent on all angles."""
    rng = np.random.default_rng((settings.seed, scale))
    draws = rng.uniform(0, _spread(scale), (settings.replicas, settings.samples))
    grams = (_drawn_gram(angles, settings.longest) for angles in draws)
    return [_distance(_stopped(gram, settings).stored_part(), wanted) for gram in grams]


def _error_of_the_closed_form(settings: _PositionsAlone) -> float:
    """Largest difference from their program, step by step on the same angles."""
    angles = np.random.default_rng(settings.seed).uniform(0, _spread(_SHOWN), settings.batch)
    positions, slope = jnp.zeros((settings.longest,) * 2), jax.jit(jax.grad(_program_loss))
    for _ in range(settings.steps):
        positions = positions - settings.rate * slope(positions, jnp.asarray(angles))
    gram, rate = _drawn_gram(angles, settings.longest), _rate(settings)
    return max(
        float(
            np.abs(
                row[:context] - theory.descended_positions(gram[:context, :context], rate, settings.steps)
            ).max()
        )
        for context, row in zip(_contexts(settings), np.asarray(positions), strict=False)
    )


def _program_loss(positions: Array, angles: Array) -> Array:
    """The loss of pe_only.py: scores ⟨x_q, x_k⟩ p_{qk} for k ≤ q + 1, and the token after the next as the target."""
    count = len(positions)
    tokens = jnp.exp(1j * angles[:, None] * jnp.arange(count + 1))
    seen = tokens[:, :-1]
    scores = seen.conj()[:, :, None] * seen[:, None, :] * jnp.tril(jnp.ones((count, count)), 1) * positions
    answers = (scores @ seen[..., None])[..., 0]
    return jnp.mean(jnp.abs(answers[:, :-1] - tokens[:, 2:]) ** 2)


def _directions(scale: float, settings: _PositionsAlone) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues of the longest context above the least learnable, largest first, and their eigenvectors as rows."""
    values, vectors = np.linalg.eigh(_exact_gram(scale, settings))
    count = np.count_nonzero(values > _LEARNABLE)
    return values[::-1][:count], vectors.T[::-1][:count]


def _error_of_directions(scale: float, settings: _PositionsAlone) -> float:
    """Against SciPy's prolate sequences, which come from a tridiagonal matrix that commutes with theirs."""
    values, vectors = _directions(scale, settings)
    longest, bandwidth = settings.longest, _spread(scale) / np.pi
    sequences, shares = scipy.signal.windows.dpss(
        longest, longest * bandwidth, len(values), return_ratios=True
    )
    signs = np.sign((sequences * vectors).sum(1))[:, None]
    return float(
        max(np.abs(signs * sequences - vectors).max(), np.abs(2 * bandwidth * values - shares).max())
    )


def _learned(scale: float, steps: Any, settings: _PositionsAlone) -> list[Any]:
    """The part of every direction that so many steps learn."""
    values, _ = _directions(scale, settings)
    return [1 - (1 - 2 * _rate(settings) * g) ** steps for g in values]


def _figure(ends: dict[int, _Stopped], settings: _PositionsAlone) -> Figure:
    tokens, shown = np.arange(1, settings.longest + 1), ends[_SHOWN]
    lines, points = [], []
    for series, (scale, end) in enumerate(ends.items()):
        stored = stored_positions(scale)[settings.longest - 2]
        lines.append(Line(x=tokens, y=end.positions[-1], label=f"$\\mu = {scale}$", series=series))
        points.append(Points(x=tokens[:-1], y=stored[:-1], label=f"stored, $\\mu = {scale}$", series=series))
    steps = np.geomspace(1, settings.epochs, 200).round()
    learned = _learned(_SHOWN, steps, settings)
    return Figure(
        title="Positions alone, after descent from 0",
        panels=(
            Panel(
                title=f"context of {settings.longest} tokens, stopped at loss {settings.stop:g}",
                xlabel="token $t$",
                ylabel="position $p_t$",
                traces=(*lines, *points),
            ),
            Panel(
                title=f"learned of each direction, $\\mu = {_SHOWN}$",
                xlabel="step",
                ylabel="learned part",
                xscale="log",
                traces=(
                    *(
                        Line(x=steps, y=part, label=f"prolate sequence {number}", series=number)
                        for number, part in enumerate(learned[:5])
                    ),
                    Rule(value=shown.steps, axis="x", label="stopped"),
                ),
            ),
        ),
        caption="Lines: closed form over all angles. Points: the authors' files, from 1000 angles. At the minimum only the "
        "last position is not 0.",
    )


class _PositionsAlone(Settings):
    scales: tuple[int, ...] = (50, 100, 200, 300)
    longest: int = 30
    rate: float = 0.5
    stop: float = 1e-3
    epochs: int = 100_000
    samples: int = 1000
    replicas: int = 20
    steps: int = 30
    batch: int = 50
    seed: int = 0
    factor: float = 1.0
    most: float = 0.5
    exactness: float = 1e-12
    tolerance: float = 1e-8


CLAIMS = (
    Claim(
        id=f"{PAPER}/positions-alone",
        title="Positions learned alone are prolate sequences, stopped before their minimum",
        evidence="exact",
        origin="authors' code",
        statement="""Descent on positions alone learns prolate spheroidal sequences one after another. So are the
            authors' stored positions, which were stopped at loss 10⁻³, far from the minimum: the last position alone.""",
        source=f"""sander2024, authors' program {PROGRAM}, pe_only.py and results/noisy_pe/pe_eps_mu_{{50,100,200,300}}.npy
            (Figure 6); the closed form is derived here""",
        settings=presets(_PositionsAlone()),
        check=_positions_alone,
        criterion="""Their program, step by step, against the closed form on the same angles: 1e-12, rounding. Their files
            against the closed form over all angles: no farther than the farthest of twenty descents on 1000 drawn
            angles, as many as theirs, whose seed is not known. Directions and eigenvalues above 1e-6 against SciPy's prolate
            sequences: 1e-8. The last position, 1 at the minimum, is at most a half where they stop.""",
    ),
)
