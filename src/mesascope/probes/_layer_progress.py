"""Comparison of every layer with the learners of a family, by their numbers of steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ._intervals import Measured, bootstrapped, check_level, ratio
from ._layers import LayerStreams, counted_stream
from ._metrics import inner, squared
from ._problems import Problems, require_problems
from ._ridge import ridge_maps, split_tasks
from ._step_family import StepFamily, family_answers
from ._table import Tabled, layer_names, table

_MAX_DISTANCE = 1e100  # replaces infinite squared distances, so that means are finite
_FAR = 0.5  # the distance above which the nearest learner explains less than half of the predictions
_COLUMNS = 12  # of a printed table; of more steps only every second, third … is shown
# Distances and similarities that differ by less are equal up to rounding; then fewer steps are preferred.
_TIED = 1e-12


class Match(NamedTuple):
    r"""The number of steps of the learner closest to each layer.

    Attributes:
        steps: the number after $\ell = 0, \dots, L$ layers, shapes (L + 1,).
        slope: slope of the least-squares line through them: steps per layer, shapes ().
    """

    steps: Measured
    slope: Measured


@dataclass(frozen=True, repr=False)
class LayerProgress(Tabled):
    r"""Comparison of the predictions of every layer with the learners of a family.

    Attributes:
        family: the learners, K of them.
        distance: distance of every layer from every learner, shapes (L + 1, K).
        similarity: similarity of errors: the mean over tasks of the cosine of the vectors of all errors, shapes (L + 1, K).
        nearest: the steps of the nearest learner, for every layer.
        most_similar: the steps of the learner with the most similar errors.
    """

    family: StepFamily
    distance: Measured
    similarity: Measured
    nearest: Match
    most_similar: Match

    def __str__(self) -> str:
        steps, rows = self.family.steps, []
        columns = slice(None, None, -(-len(steps) // _COLUMNS))
        for layer, name in enumerate(layer_names(len(self.distance.value))):
            best, low, high = (end[layer] for end in self.nearest.steps)
            cells = [f"{value:.1e}" for value in self.distance.value[layer, columns]]
            far = " far" * bool(self.distance.value[layer].min() > _FAR)
            rows.append([name, *cells, f"{best:g} [{low:g}, {high:g}]{far}"])
        slope, low, high = (float(end) for end in self.nearest.slope)
        shown = table(["after", *(str(k) for k in steps[columns]), "nearest"], rows)
        far = "; far: no learner of the family explains half of the predictions there" * (" far" in shown)
        return (
            f"distance from {self.family.name}, by its number of steps\n{shown}\n"
            f"steps per layer: {slope:.3g} [{low:.3g}, {high:.3g}]{far}"
        )


def layer_progress(
    predictions: Any, family: StepFamily, problems: Problems, *, level: float = 0.95, seed: int = 0
) -> LayerProgress:
    r"""Compare the logit lens of every layer with every learner of a family.

    The distance of layer $\ell$ from learner $k$ is $E\|f_\ell - g_k\|^2 / E\|f_L\|^2$, relative to the model's prediction.

    Args:
        predictions: f, shape (L + 1, batch, N + 1, m): `LogitLens.predictions`.
        family: learners g by their number of steps.
        problems: the problems.
        level: confidence level of the intervals.
        seed: seed of the resampling of tasks.

    Raises:
        TypeError: problems of another type.
        ValueError: predictions of another shape, no layer, or too few tasks for the level.

    Source: vonoswald2023, ahn2023 (one step per layer); fu2024 (the best matching step, by similarity of errors).
    """
    require_problems(problems)
    read = np.asarray(predictions)
    if read.ndim != 4 or read.shape[1:] != problems.targets.shape or len(read) < 2:
        raise ValueError(
            f"predictions: must have shape (layers + 1, {', '.join(map(str, problems.targets.shape))}) with at least one "
            f"layer, got {read.shape}"
        )
    check_level(level, problems.tasks)
    learners = family_answers(family, problems)
    size = squared(read[-1]) @ problems.weights
    errors = _Errors(np.asarray(problems.targets), problems.weights)
    columns = [[errors.columns(f, g, size) for g in learners] for f in read]
    return _progress(columns, family, level, seed)


def probed_progress(
    streams: LayerStreams, family: StepFamily, problems: Problems, *, level: float = 0.95, seed: int = 0
) -> LayerProgress:
    r"""Compare the linear probes of every layer, one fitted to each learner of a family, with that learner.

    The distance of layer $\ell$ from learner $k$ is $1 - R^2$ of the probe $\hat g$ of $g_k$, $E\|\hat g - g_k\|^2 / E\|g_k -
    Eg_k\|^2$, on held-out tasks; fitted and scored as in `linear_probe`.

    Args:
        streams: streams of a model: `layer_streams(model, problems)`.
        family: learners g by their number of steps, without those whose predictions are the same for all tasks, as for 0 steps.
        problems: the same problems.
        level: confidence level of the intervals.
        seed: seed of the split and the resampling of tasks.

    Raises:
        ValueError: streams of other problems, no layer, a learner that does not depend on the task, or too few tasks.
    """
    if streams.layers < 1:
        raise ValueError("streams: have no layer, only the stream after the embedding")
    split, lengths = split_tasks(problems.tasks, seed), problems.lengths
    check_level(level, len(split.held_out))
    weights = problems.weights[lengths]
    targets = family_answers(family, problems)[:, :, lengths]
    scored = targets[:, split.held_out]
    spread = squared(scored - scored.mean(1, keepdims=True)) @ weights
    _refuse_constants(spread, family)
    errors = _Errors(np.asarray(problems.targets)[split.held_out][:, lengths], weights)
    columns = []
    for stream in streams.streams:
        features = counted_stream(stream, problems)
        read = ridge_maps(features, targets, weights, split)(features[split.held_out])
        columns.append([errors.columns(*one) for one in zip(read, scored, spread, strict=True)])
    return _progress(columns, family, level, seed)


class _Errors(NamedTuple):
    """The targets (tasks, n, m) and weights (n,) of errors."""

    targets: np.ndarray
    weights: np.ndarray

    def columns(self, one: np.ndarray, other: np.ndarray, size: np.ndarray) -> np.ndarray:
        """Return for every task the squared distance, its reference size, and the cosine of errors: (tasks, 3)."""
        first, second = one - self.targets, other - self.targets
        # learners may diverge after more steps than in the fit
        with np.errstate(over="ignore", invalid="ignore"):
            sizes = np.sqrt((squared(first) @ self.weights) * (squared(second) @ self.weights))
            cosine = ratio(inner(first, second) @ self.weights, sizes)
            off = squared(one - other) @ self.weights
        off = np.minimum(np.nan_to_num(off, nan=_MAX_DISTANCE, posinf=_MAX_DISTANCE), _MAX_DISTANCE)
        return np.stack([off, size, np.where(np.isfinite(cosine), cosine, 0.0)], -1)


def _progress(
    columns: Sequence[Sequence[np.ndarray]], family: StepFamily, level: float, seed: int
) -> LayerProgress:
    values = np.stack([np.stack(row, 1) for row in columns], 1)  # (tasks, layers, K, 3)
    shape = values.shape[1:3]
    cells, layers = int(np.prod(shape)), shape[0]

    def statistic(means: np.ndarray) -> np.ndarray:
        lead = means.shape[:-1]
        off, size, similarity = np.moveaxis(means.reshape(*lead, *shape, 3), -1, 0)
        distance = ratio(off, size)
        matches = [_best_steps(-distance, family.steps), _best_steps(similarity, family.steps)]
        flat = [distance.reshape(*lead, cells), similarity.reshape(*lead, cells)]
        slopes = [_slope(steps)[..., None] for steps in matches]
        return np.concatenate([*flat, *matches, *slopes], -1)

    found = bootstrapped(values.reshape(len(values), -1), statistic, level=level, seed=seed)
    distance, similarity, *steps, one, other = found.split(np.cumsum([cells, cells, layers, layers, 1]))
    matches = (Match(*match) for match in zip(steps, (one.at(0), other.at(0)), strict=True))
    return LayerProgress(family, distance.shaped(*shape), similarity.shaped(*shape), *matches)


def _best_steps(score: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Return the smallest number of steps with the best score up to rounding: (…, layers, K) → (…, layers)."""
    return steps[np.argmax(score >= score.max(-1, keepdims=True) - _TIED, -1)].astype(float)


def _slope(steps: np.ndarray) -> np.ndarray:
    """Return steps per layer by least squares: (…, layers) → (…)."""
    centred = np.arange(steps.shape[-1]) - (steps.shape[-1] - 1) / 2
    return steps @ centred / (centred @ centred)


def _refuse_constants(spread: np.ndarray, family: StepFamily) -> None:
    constant = family.steps[~spread.any(-1)]
    if len(constant):
        raise ValueError(
            f"family: after {constant[0]} steps {family.name} predicts the same for all tasks, so that there is nothing "
            "to probe; remove these steps"
        )
