"""Linear probes: affine maps fitted to the stream after every layer, scored on other tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ._intervals import Measured, bootstrapped, check_level, ratio
from ._layers import LayerStreams, counted_stream, require_streams
from ._metrics import squared
from ._problems import Problems, require_problems
from ._ridge import AffineMaps, ridge_maps, split_tasks
from ._table import Tabled, layer_names, table, with_interval

_CONTROLS = 4  # draws of the control task: their mean score is compared


@dataclass(frozen=True, repr=False)
class LinearProbe(Tabled):
    r"""The scores of linear probes of the stream after $\ell = 0, \dots, L$ layers, with intervals over held-out tasks.

    Attributes:
        r_squared: $1 - E\|\hat y - y\|^2 / E\|y - Ey\|^2$, pooled over the numbers of examples, shapes (L + 1,); the mean
            $Ey$ is that over tasks after the same number of examples.
        control: the same for the control task.
        selectivity: their difference.
        lengths: the numbers of examples with positive weight, shape (k,).
        each: $R^2$ after each of them, shapes (L + 1, k); nan if the target is the same for all tasks.
        maps: the fitted affine map of every layer, in one group.
        held_out: the tasks of the scores.
    """

    r_squared: Measured
    control: Measured
    selectivity: Measured
    lengths: np.ndarray
    each: Measured
    maps: tuple[AffineMaps, ...]
    held_out: np.ndarray

    def __str__(self) -> str:
        measured = (self.r_squared, self.control, self.selectivity)
        rows = [
            [name, *(with_interval(m, i) for m in measured), f"{self.maps[i].penalties[0]:.0e}"]
            for i, name in enumerate(layer_names(len(self.maps)))
        ]
        return table(["after", "R²", "control", "selectivity", "penalty"], rows)


def linear_probe(
    streams: LayerStreams,
    problems: Problems,
    targets: Any = None,
    *,
    identities: Any = None,
    level: float = 0.95,
    seed: int = 0,
) -> LinearProbe:
    r"""Fit $\hat y = A z + b$ to the stream $z$ after every layer, and score it on other tasks.

    One map is used for all numbers of examples. It is fitted by ridge regression on half of the tasks, with entries
    standardized to mean 0 and variance 1; a quarter selects the penalty; the last quarter gives the score. Maps of complex
    streams are complex.

    The control task measures how well maps can be fitted to unrelated targets: its targets are those of another random task.
    If things such as symbols recur in many tasks, give their `identities`: the control is then a fixed random function of
    them, which a map can memorize. Selectivity is the score minus that of the control.

    Args:
        streams: streams of a model, or of any function: `layer_streams(model, problems)`.
        problems: the same problems.
        targets: y, shape (batch, N + 1, k), or (batch, k) if they do not depend on the number of examples, such as the
            entries of `implicit_weights`; by default the true next token or label. The predictions of a
            learner are `learners.predictions(learner, problems.x, problems.y, problems.queries)`.
        identities: integers (batch, N + 1), equal for identical things.
        level: confidence level of the intervals.
        seed: seed of the split, the control and the resampling of tasks.

    Raises:
        TypeError: streams or problems of another type, targets that are not numbers, identities that are not integers.
        ValueError: targets of another shape, not finite or the same for all tasks; too few tasks for the level.

    Source: hewitt2019 (control tasks, selectivity); vonoswald2024 (probes of targets, of
        tokens before and of preconditioned inputs).
    """
    require_streams(streams)
    require_problems(problems)
    wanted = _checked_targets(targets, problems)[:, problems.lengths]
    weights = problems.weights[problems.lengths]
    split = split_tasks(problems.tasks, seed)
    try:
        check_level(level, len(split.held_out))
    except ValueError as error:
        raise ValueError(f"{error} (a quarter of the {problems.tasks} tasks is scored)") from None
    controls = _controls(wanted, _checked_identities(identities, problems), seed)
    groups = np.stack([wanted, *controls])
    maps, columns = [], []
    for stream in streams.streams:
        features = counted_stream(stream, problems)
        fitted = ridge_maps(features, groups, weights, split)
        columns.append(_columns(fitted, features, groups, split.held_out))
        maps.append(AffineMaps(*(part[:1] for part in fitted)))
    scores = _scores(np.stack(columns, 1), weights, level, seed)
    return LinearProbe(*scores[:3], problems.lengths, scores.each, tuple(maps), split.held_out)


class _Scores(NamedTuple):
    r_squared: Measured
    control: Measured
    selectivity: Measured
    each: Measured


def _columns(maps: AffineMaps, features: np.ndarray, groups: np.ndarray, held_out: np.ndarray) -> np.ndarray:
    """Return numerators and denominators of scores of target and control: errors and spreads, (held-out tasks, 4, n)."""
    wanted = groups[:, held_out]
    errors = squared(maps(features[held_out]) - wanted)
    spread = squared(wanted - wanted.mean(1, keepdims=True))
    return np.stack([errors[0], spread[0], errors[1:].mean(0), spread[1:].mean(0)], 1)


def _scores(columns: np.ndarray, weights: np.ndarray, level: float, seed: int) -> _Scores:
    """Return scores with intervals from columns (tasks, layers, 4, n)."""
    shape = columns.shape[1:]
    layers, _, lengths = shape

    def statistic(means: np.ndarray) -> np.ndarray:
        parts = means.reshape(*means.shape[:-1], *shape)
        error, spread, control_error, control_spread = np.moveaxis(parts @ weights, -1, 0)
        score, control = 1 - ratio(error, spread), 1 - ratio(control_error, control_spread)
        each = np.where(parts[..., 1, :] > 0, 1 - ratio(parts[..., 0, :], parts[..., 1, :]), np.nan)
        return np.concatenate(
            [score, control, score - control, each.reshape(*means.shape[:-1], layers * lengths)], -1
        )

    found = bootstrapped(columns.reshape(len(columns), -1), statistic, level=level, seed=seed)
    score, control, selectivity, each = found.split([layers, 2 * layers, 3 * layers])
    return _Scores(score, control, selectivity, each.shaped(layers, lengths))


def _controls(targets: np.ndarray, identities: np.ndarray | None, seed: int) -> list[np.ndarray]:
    """Return targets (tasks, n, k) of several random control tasks."""
    rng = np.random.default_rng(seed)
    if identities is None:
        return [targets[rng.permutation(len(targets))] for _ in range(_CONTROLS)]
    return [_random_function(targets, identities, rng) for _ in range(_CONTROLS)]


def _random_function(targets: np.ndarray, identities: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a random target for every identity, with the mean and variance of the targets."""
    kinds, which = np.unique(identities, return_inverse=True)
    rows = targets.reshape(-1, targets.shape[-1])
    drawn = rows[rng.choice(len(rows), len(kinds), replace=len(kinds) > len(rows))]
    values = drawn[which.reshape(-1)]
    values = values - values.mean(0)
    matched = values * ratio(rows.std(0), values.std(0)) + rows.mean(0)
    return matched.reshape(targets.shape)


def _checked_targets(targets: Any, problems: Problems) -> np.ndarray:
    """Return targets (tasks, N + 1, k)."""
    given = np.asarray(problems.targets if targets is None else targets)
    shape = (problems.tasks, len(problems.weights))
    if not np.issubdtype(given.dtype, np.number):
        raise TypeError(f"targets: must be an array of numbers, got {given.dtype}")
    if given.ndim == 2 and len(given) == problems.tasks:
        given = np.broadcast_to(given[:, None], (*shape, given.shape[-1]))
    if given.ndim != 3 or given.shape[:2] != shape:
        raise ValueError(
            f"targets: must have shape {shape[:1]} + (k,) or {shape} + (k,) like the problems, got {given.shape}"
        )
    counted = given[:, problems.lengths]
    if not np.isfinite(counted).all():
        raise ValueError("targets: are infinite or nan; take learners that do not diverge on these problems")
    if not np.ptp(counted, 0).any():
        raise ValueError("targets: are the same for all tasks, so that there is nothing to probe")
    return given


def _checked_identities(identities: Any, problems: Problems) -> np.ndarray | None:
    if identities is None:
        return None
    given, wanted = np.asarray(identities), (problems.tasks, len(problems.weights))
    if not np.issubdtype(given.dtype, np.integer):
        raise TypeError(f"identities: must be integers, got {given.dtype}; number the things with np.unique")
    if given.shape != wanted:
        raise ValueError(f"identities: must have shape {wanted} like the problems, got {given.shape}")
    counted = given[:, problems.lengths]
    if np.ptp(counted) == 0:
        raise ValueError(
            "identities: are all the same, so that a random function of them is constant; leave them out"
        )
    return counted
