"""Interventions: a layer of a model is replaced by another layer, and the model is evaluated again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from operator import index
from typing import Any, NamedTuple, TypeVar

import numpy as np

from mesascope.models import Layer, PromptModel, SequenceModel, Stack
from mesascope.specs import show

from ._costs import costs
from ._intervals import Measured, check_level, ratio
from ._layers import Layered, layer_streams, token_streams, unrolled
from ._metrics import inner, squared
from ._problems import Problems
from ._ridge import Split, ridge_maps, split_tasks
from ._stand_ins import Affine, FromAnotherTask, Nothing, gradient_step_layer
from ._table import Tabled, table, with_interval

Model = TypeVar("Model", bound=SequenceModel | PromptModel)
Which = int | tuple[int, int]
"""A layer ℓ in 1 … L, or a range of layers by its first and last."""


class GradientStep(NamedTuple):
    r"""The step of gradient descent that is closest to a layer.

    Attributes:
        layer: the step as a layer.
        step_size: $\eta$.
        explained: the explained share $1 - E\|u - \eta u_1\|^2 / E\|u\|^2$ of the layer's change of the read-out.
    """

    layer: Layer
    step_size: float
    explained: float


@dataclass(frozen=True, repr=False)
class Intervention(Tabled):
    r"""A model with a layer replaced, compared with the unchanged model, without the layer, and with its output shuffled.

    Attributes:
        names: "untouched", the names of the replacements, "removed" and "shuffled"; r names.
        loss: $\frac12 E\|\hat y - y\|^2$, pooled over the numbers of examples, shapes (r,).
        distance: distance of the predictions from those of the unchanged model, $E\|f - g\|^2/E\|f\|^2$, shapes (r,).
    """

    names: tuple[str, ...]
    loss: Measured
    distance: Measured

    def __str__(self) -> str:
        rows = [
            [name, with_interval(self.loss, i), with_interval(self.distance, i)]
            for i, name in enumerate(self.names)
        ]
        return table(["layer", "loss", "distance from the model"], rows)


def replace_layer(model: Model, which: Which, by: Layer) -> Model:
    """Return the same model with one layer, or a range of layers, replaced.

    Layers are counted as in `layer_streams` and include residual connections: the replacement maps the stream before the
    layer to the stream after it. The network becomes a `Stack` with one layer for every loop.

    Args:
        model: a `SequenceModel` or `PromptModel`, which is not changed.
        which: ℓ in 1 … L, or (first, last).
        by: any layer with fitting widths.

    Raises:
        TypeError: a model without layers, something that is not a layer, or not the number of a layer.
        ValueError: an unknown layer, widths that do not fit, a layer that sees later tokens in a sequence model.
    """
    layers, first, last = _located(model, which)
    return _with_network(model, [*layers[: first - 1], by, *layers[last:]])


def closest_gradient_step(model: Model, which: Which, problems: Problems) -> GradientStep:
    r"""Return the step of gradient descent that is closest to a layer in its change of the read-out of the query.

    If the layer changes it by $u$, and a step of size 1 by $u_1$, the step size is $\eta = \mathrm{Re}\, E\langle u_1, u
    \rangle / E\|u_1\|^2$, with the weights of the task. The step is that of vonoswald2023 on stacked prompts, and that of
    zheng2024 on paired tokens. Entries of the stream that are not read out may differ; `intervene` measures whether that
    matters to later layers.

    Args:
        model: a model that embeds with `StackedPrompt` or `PairedTokens`.
        which: the layer ℓ in 1 … L, or (first, last).
        problems: the problems for the fit, independent of those of the intervention.

    Raises:
        TypeError: a model without layers, or with another embedding.
        ValueError: an unknown layer; streams that the step does not change.
    """
    layers, first, last = _located(model, which)
    unit = gradient_step_layer(model.embedding, layers[first - 1], 1.0)
    streams = layer_streams(model, problems)
    before, after = streams.read(first - 1), streams.read(last)
    stepped = layer_streams(replace_layer(model, which, unit), problems).read(first)
    own, one = after - before, stepped - before
    size = float((squared(one) @ problems.weights).mean())
    if size == 0:
        raise ValueError("problems: a step of gradient descent does not change the read-out after this layer")
    step_size = float((inner(one, own) @ problems.weights).mean()) / size
    residual, total = ((squared(change) @ problems.weights).mean() for change in (own - step_size * one, own))
    step = gradient_step_layer(model.embedding, layers[first - 1], step_size)
    return GradientStep(step, step_size, 1 - float(ratio(residual, total)))


def linear_surrogate(model: Model, which: Which, problems: Problems, *, seed: int = 0) -> Affine:
    r"""Return the affine map of tokens that is closest to a layer: ridge regression from the stream before to that after it.

    It is fitted to all tokens of the longest context with positive weight, on three quarters of the tasks; the others select
    the penalty.

    Args:
        model: a `SequenceModel` or `PromptModel`.
        which: the layer ℓ in 1 … L, or (first, last).
        problems: the problems for the fit, independent of those of the intervention.
        seed: seed of the split of tasks.

    Raises:
        TypeError: a model without layers.
        ValueError: an unknown layer.
    """
    _, first, last = _located(model, which)
    streams = token_streams(model, problems, int(problems.lengths[-1]))
    before, after = (np.asarray(streams[i]) for i in (first - 1, last))
    split = split_tasks(problems.tasks, seed)
    split = Split(np.concatenate([split.training, split.held_out]), split.validation, split.held_out[:0])
    weights = np.full(before.shape[1], 1 / before.shape[1])
    fitted = ridge_maps(before, after[None], weights, split)
    return Affine(fitted.weights[0], fitted.biases[0])


def intervene(
    model: Model,
    which: Which,
    replacements: Mapping[str, Layer],
    problems: Problems,
    *,
    level: float = 0.95,
    seed: int = 0,
) -> Intervention:
    """Return the loss of a model with a layer replaced, and the change of its predictions.

    Two references show how much the layer matters: the model without it, and with its output added to another task.

    Args:
        model: a `SequenceModel` or `PromptModel`.
        which: the layer ℓ in 1 … L, or (first, last).
        replacements: layers by name, such as `{"one step": closest_gradient_step(…).layer}`; see `replace_layer`.
        problems: the problems, independent of those of the fits.
        level: confidence level of the intervals.
        seed: seed of the resampling of tasks.

    Raises:
        TypeError: a model without layers, or something that is not a layer.
        ValueError: an unknown layer, a layer whose two widths differ, widths that do not fit, a replacement with the name of
            a reference, or too few tasks for the level.
    """
    layers, first, last = _located(model, which)
    check_level(level, problems.tasks)
    chosen = layers[first - 1] if first == last else Stack(layers[first - 1 : last])
    if chosen.width != chosen.output_width:
        raise ValueError(
            f"which: layers {first} to {last} map width {chosen.width} to {chosen.output_width}, so that they cannot be "
            "removed"
        )
    references: dict[str, Layer] = {"removed": Nothing(chosen.width), "shuffled": FromAnotherTask(chosen)}
    taken = {"untouched", *references} & set(replacements)
    if taken:
        raise ValueError(
            f"replacements: {', '.join(sorted(taken))} is the name of a reference; choose another name"
        )
    others = {**replacements, **references}
    models = [model, *(replace_layer(model, which, layer) for layer in others.values())]
    found = np.stack([_answers(one, problems) for one in models])
    return Intervention(("untouched", *others), *costs(found, found[0], problems, level, seed))


def _located(model: Any, which: Which) -> tuple[tuple[Layer, ...], int, int]:
    """Return the layers of a model, and the first and last selected layer."""
    if not isinstance(model, Layered):
        raise TypeError(
            f"model: {type(model).__name__} has no layers to replace; take a SequenceModel or a PromptModel"
        )
    layers = unrolled(model.network).layers
    try:
        first, last = map(index, which if isinstance(which, tuple) else (which, which))
    except (TypeError, ValueError):
        raise TypeError(
            f"which: must be the number of a layer, or a pair (first, last), got {show(which)}"
        ) from None
    if not 1 <= first <= last <= len(layers):
        raise ValueError(f"which: must be a layer in 1 … {len(layers)}, or (first, last), got {which}")
    return layers, first, last


def _with_network(model: Model, layers: list[Layer]) -> Model:
    return type(model)(model.embedding, Stack(layers), model.readout)


def _answers(model: Layered, problems: Problems) -> np.ndarray:
    streams = layer_streams(model, problems)
    return streams.read(streams.layers)
