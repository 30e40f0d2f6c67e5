"""Mixtures that may explain predictions: all pairs on a grid, the best with a third learner, and a few of them fitted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mesascope.core import quick_jit

from ._evidence import Evidence
from ._fit import Fitted, Fitter
from ._in_parallel import in_parallel
from ._metrics import squared
from ._mixture_fit import FittedMixture, MixtureFitter

_TRIAL_TASKS = 48  # on which the grid is compared
_TASKS = 400  # on which integers and special cases are chosen
_INTEGERS = (1, 2, 3, 4, 6, 8, 12)
_MAX_SIZE = 1e2  # of mean squared predictions, relative to the model's; larger ones diverge
_EXTENDED = 12  # pairs that are extended to triples
_REFINED = 4  # sets of kinds that are fitted: the nearest on the grid, and the simplest that may be as near
_NEAR, _COARSE = 4.0, 0.1  # what the grid hides of a cost: a factor, and a part of the tolerance
_BETTER = 0.98  # the ratio of costs below which another integer is an improvement


class _Atoms(NamedTuple):
    """Learners with given hyperparameters.

    Attributes:
        kind: the number of the fitter of each, shape (n,).
        integers: shape (n,).
        points: the coordinates of each.
        answers: their weighted predictions on the trial tasks as real vectors, shape (n, D).
    """

    kind: np.ndarray
    integers: np.ndarray
    points: list[np.ndarray]
    answers: np.ndarray


class _Guess(NamedTuple):
    """A mixture of atoms, with convex weights and its squared distance from the model."""

    atoms: tuple[int, ...]
    weights: tuple[float, ...]
    cost: float


def mixtures(
    fitters: Sequence[Fitter], fitted: Sequence[Fitted], evidence: Evidence, size: int, tolerance: float
) -> list[FittedMixture]:
    """Return fitted mixtures of `size` learners of different kinds, the simplest first; not all of them may be convex.

    Args:
        fitters: of all kinds that may take part.
        fitted: the best single learner of each kind, which is one point of its grid.
        evidence: the tasks to fit to.
        size: 2 or 3.
        tolerance: the distance up to which a mixture explains the predictions.
    """
    if len(fitters) < size:
        return []
    trial = evidence.part(0, min(_TRIAL_TASKS, evidence.problems.tasks))
    target = _weighted(trial, trial.answers[None])[0]
    atoms = _atoms(fitters, fitted, trial)
    guesses = _pairs(atoms, target)
    if size == 3:
        guesses = _triples(atoms, target, guesses[:_EXTENDED])
    chosen = _chosen(fitters, atoms, guesses, tolerance)
    return list(in_parallel(lambda guess: _refined(fitters, atoms, guess, evidence), chosen))


def _chosen(
    fitters: Sequence[Fitter], atoms: _Atoms, guesses: Sequence[_Guess], tolerance: float
) -> list[_Guess]:
    """Return the nearest guess and the simplest that may be as near, the simplest first."""

    def flexibility(guess: _Guess) -> int:
        return sum(fitters[atoms.kind[i]].fitting.flexibility for i in guess.atoms)

    most = _NEAR * guesses[0].cost + _COARSE * tolerance if guesses else 0.0
    near = sorted((guess for guess in guesses[1:] if guess.cost <= most), key=flexibility)
    return sorted([*guesses[:1], *near[: _REFINED - 1]], key=flexibility)


def by_length(mixture: FittedMixture, evidence: Evidence, tolerance: float) -> FittedMixture | None:
    """Return the same kinds with weights that depend on the number of examples: the best of two fits.

    One starts from the given mixture; the other, of two learners, from the best pair on a grid with a weight for each number of
    examples. After numbers of examples where all learners of the mixture predict the same, to the tolerance, weights mean
    nothing: they are those of the next number. None if this leaves fewer than two.
    """
    told = _lengths_that_tell(mixture, evidence, tolerance)
    if len(told) < 2:
        return None
    rows = np.searchsorted(told, np.arange(len(evidence.problems.weights))).clip(0, len(told) - 1)
    fitter = MixtureFitter(mixture.fitter.parts, tuple(map(int, rows)), tuple(map(int, told)))
    scalars = sum(fitter.sizes)
    start = np.concatenate([mixture.end.point[:scalars], np.tile(mixture.end.point[scalars:], len(told))])
    starts = [(mixture.integers, start)]
    if len(fitter.parts) == 2:
        starts.append(
            _pair_by_length(fitter.parts, evidence.part(0, min(_TRIAL_TASKS, evidence.problems.tasks)), told)
        )
    return min((fitter.fit(evidence, *one) for one in starts), key=lambda found: found.end.cost)


def _pair_by_length(
    parts: Sequence[Fitter], trial: Evidence, told: np.ndarray
) -> tuple[tuple[int, ...], np.ndarray]:
    """Return integers and coordinates of the best pair on two grids, with a weight after each number of examples."""
    grids = [_grid_of(part, None, trial) for part in parts]
    roots = np.sqrt(trial.weights)[:, told, None]
    with np.errstate(over="ignore", invalid="ignore"):
        one, other = (
            np.moveaxis(answers[:, :, told] * roots, 2, 0).reshape(len(told), len(answers), -1)
            for *_, answers in grids
        )
        target = np.moveaxis(trial.answers[:, told] * roots, 1, 0).reshape(len(told), 1, -1)
        # ‖w g + (1 − w) h − f‖² with a = g − f and b = h − f: squares and products of these, for each number of examples
        first, second = one - target, other - target
        squares = [np.sum(np.abs(part) ** 2, -1) for part in (first, second)]
        cross = (first @ np.swapaxes(second, 1, 2).conj()).real
        apart = squares[0][:, :, None] + squares[1][:, None] - 2 * cross
        share = np.clip((squares[1][:, None] - cross) / np.where(apart > 0, apart, np.inf), 0, 1)
        costs = squares[1][:, None] - 2 * share * (squares[1][:, None] - cross) + share**2 * apart
        total = costs.sum(0)
    place = np.unravel_index(np.where(np.isfinite(total), total, np.inf).argmin(), total.shape)
    integers, points = zip(
        *((one[0][k], one[1][k]) for one, k in zip(grids, place, strict=True)), strict=True
    )
    weights = share[:, place[0], place[1]].clip(
        0.05, 0.95
    )  # a weight of 0 has no derivative by the learner's hyperparameters
    return tuple(map(int, integers)), np.concatenate([*points, weights])


def _lengths_that_tell(mixture: FittedMixture, data: Evidence, tolerance: float) -> np.ndarray:
    """Return the numbers of examples after which learners of a mixture differ by more than the tolerance."""
    features = mixture.fitter.features(data)
    parts = [np.asarray(part.respond(seen)) for part, seen in zip(mixture.mixed.parts, features, strict=True)]
    size = (data.weights * squared(data.answers)).sum(0)
    apart = [(data.weights * squared(one - other)).sum(0) for one, other in combinations(parts, 2)]
    return np.flatnonzero((np.max(apart, 0) > tolerance * size) & (data.problems.weights > 0))


def _atoms(fitters: Sequence[Fitter], fitted: Sequence[Fitted], trial: Evidence) -> _Atoms:
    """Return the grids of all kinds without those whose predictions diverge."""
    parts = list(in_parallel(lambda one: _grid_of(*one, trial), list(zip(fitters, fitted, strict=True))))
    kind = np.concatenate([np.full(len(answers), k) for k, (_, _, answers) in enumerate(parts)])
    integers = np.concatenate([one for one, _, _ in parts])
    points = [point for _, some, _ in parts for point in some]
    answers = np.concatenate([_weighted(trial, one) for _, _, one in parts])
    with np.errstate(over="ignore", invalid="ignore"):
        sizes = np.sum(answers**2, -1)
    usable = np.flatnonzero(np.isfinite(sizes) & (sizes < _MAX_SIZE))
    return _Atoms(kind[usable], integers[usable], [points[i] for i in usable], answers[usable])


def _grid_of(
    fitter: Fitter, fitted: Fitted | None, trial: Evidence
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return integers, coordinates and predictions of one kind: a grid, and where its single fit ended, if it is given."""
    how, features = fitter.fitting, fitter.features(trial)
    points = fitter.grid(trial.problems)
    tried = {k for k in _INTEGERS if k <= how.largest} if how.integer else set()
    if fitted is not None:
        assert fitted.coordinates is not None
        points, tried = np.concatenate([points, fitted.coordinates[None]]), tried | {fitted.integer}
    integers = sorted(tried or {1})
    answers = [np.asarray(_answers(fitter, jnp.asarray(k), jnp.asarray(points), features)) for k in integers]
    shape = (len(points), *trial.answers.shape)
    found = np.concatenate([np.broadcast_to(one, shape) for one in answers])
    return np.repeat(integers, len(points)), np.tile(points, (len(integers), 1)), found


@quick_jit
def _answers(fitter: Fitter, integer: Any, points: Any, features: Any) -> Any:
    return jax.vmap(lambda at: fitter.build(at, integer).respond(features))(points)


def _weighted(evidence: Evidence, answers: np.ndarray) -> np.ndarray:
    """Return predictions (n, batch, N + 1, m) as real vectors (n, D) whose squared distances are those of a fit."""
    lengths = evidence.problems.lengths
    roots = np.sqrt(evidence.weights / evidence.size)[:, lengths, None]
    with np.errstate(over="ignore", invalid="ignore"):
        flat = (answers[:, :, lengths] * roots).reshape(len(answers), -1)
    return np.concatenate([flat.real, flat.imag], -1) if np.iscomplexobj(flat) else flat


def _pairs(atoms: _Atoms, target: np.ndarray) -> list[_Guess]:
    """Return the best pair of atoms for each pair of kinds, the nearest first."""
    gram, cross, power = atoms.answers @ atoms.answers.T, atoms.answers @ target, target @ target
    own = np.diag(gram)
    apart = own[:, None] + own - 2 * gram
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.clip((cross[:, None] - cross + own - gram) / np.where(apart > 0, apart, np.inf), 0, 1)
    rest = 1 - share
    cost = power - 2 * (share * cross[:, None] + rest * cross)
    cost += share**2 * own[:, None] + 2 * share * rest * gram + rest**2 * own
    found = []
    for one, other in combinations(np.unique(atoms.kind), 2):
        rows, columns = np.flatnonzero(atoms.kind == one), np.flatnonzero(atoms.kind == other)
        place = np.unravel_index(cost[np.ix_(rows, columns)].argmin(), (len(rows), len(columns)))
        i, j = int(rows[place[0]]), int(columns[place[1]])
        found.append(_Guess((i, j), (float(share[i, j]), float(rest[i, j])), float(cost[i, j])))
    return sorted(found, key=lambda guess: guess.cost)


def _triples(atoms: _Atoms, target: np.ndarray, pairs: Sequence[_Guess]) -> list[_Guess]:
    """Return the best extension of each pair by an atom of each other kind, the nearest first and each set of kinds once."""
    best: dict[frozenset[int], _Guess] = {}
    for i, j in (pair.atoms for pair in pairs):
        for kind in set(atoms.kind) - {atoms.kind[i], atoms.kind[j]}:
            guess = min(
                _extended(atoms, target, i, j, np.flatnonzero(atoms.kind == kind)), key=lambda one: one.cost
            )
            kinds = frozenset(int(atoms.kind[k]) for k in guess.atoms)
            if kinds not in best or guess.cost < best[kinds].cost:
                best[kinds] = guess
    return sorted(best.values(), key=lambda guess: guess.cost)


def _extended(atoms: _Atoms, target: np.ndarray, i: int, j: int, more: np.ndarray) -> Iterator[_Guess]:
    """Yield the pair with each further atom, with the best weights of sum 1, made convex by clipping."""
    base = atoms.answers[j]
    for k in map(int, more):
        steps = np.stack([atoms.answers[i] - base, atoms.answers[k] - base], -1)
        free = np.clip(np.linalg.lstsq(steps, target - base, rcond=None)[0], 0, None)
        free /= max(1.0, free.sum())
        cost = float(np.sum((target - base - steps @ free) ** 2))
        yield _Guess((i, j, k), (float(free[0]), float(1 - free.sum()), float(free[1])), cost)


def _refined(fitters: Sequence[Fitter], atoms: _Atoms, guess: _Guess, evidence: Evidence) -> FittedMixture:
    """Return the fit that starts from a guess, with the best integers near its own, and its simplest special case."""
    data = evidence.part(0, min(_TASKS, evidence.problems.tasks))
    fitter = MixtureFitter(tuple(fitters[atoms.kind[i]] for i in guess.atoms))
    points = [atoms.points[i] for i in guess.atoms]
    # a weight of 0 has no derivative by the learner's hyperparameters
    weights = np.clip(guess.weights, 0.05, None)
    start = np.concatenate([*points, (weights / weights.sum())[:-1]])
    found = fitter.fit(data, tuple(int(atoms.integers[i]) for i in guess.atoms), start)
    while better := _with_other_integers(found, data):
        found = better
    while simpler := _with_special_case(fitters, found, data):
        found = simpler
    more = evidence.problems.tasks > _TASKS
    return found.fitter.fit(evidence, found.integers, found.end.point) if more else found


def _with_other_integers(found: FittedMixture, data: Evidence) -> FittedMixture | None:
    """Return the best fit with an integer that is one larger or smaller, if it is better."""
    tried = []
    for k, part in enumerate(found.fitter.parts):
        if part.fitting.integer is None:
            continue
        for integer in (found.integers[k] - 1, found.integers[k] + 1):
            if 1 <= integer <= part.fitting.largest:
                integers = (*found.integers[:k], integer, *found.integers[k + 1 :])
                tried.append(found.fitter.fit(data, integers, found.end.point))
    best = min(tried, key=lambda one: one.end.cost, default=None)
    return best if best is not None and best.end.cost < _BETTER * found.end.cost else None


def _with_special_case(
    fitters: Sequence[Fitter], found: FittedMixture, data: Evidence
) -> FittedMixture | None:
    """Return the fit with the special case of one of its learners in its place, unless it is worse by more than chance.

    The special case is not there already, and a convex mixture stays convex.
    """
    by_name = {fitter.kind.name: fitter for fitter in fitters}
    kinds = [part.kind.name for part in found.fitter.parts]
    cuts = np.split(found.end.point, np.cumsum(found.fitter.sizes))
    for k, part in enumerate(found.fitter.parts):
        special = None if part.fitting.extends is None else by_name.get(part.fitting.extends[0])
        if special is None or special.kind.name in kinds:
            continue
        values = found.mixed.parts[k].hyperparameters
        start = np.array([s.coordinate(float(values[s.name])) for s in special.fitting.scalars])
        fitter = MixtureFitter((*found.fitter.parts[:k], special, *found.fitter.parts[k + 1 :]))
        simpler = fitter.fit(data, found.integers, np.concatenate([*cuts[:k], start, *cuts[k + 1 :]]))
        if not simpler.end.is_worse_than(found.end) and (simpler.convex or not found.convex):
            return simpler
    return None
