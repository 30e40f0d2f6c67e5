"""Layers on stacked prompts whose only weights are preconditioners, or the sizes of steps along given ones."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from mesascope.core import split_keys, square_matrix
from mesascope.specs import PROMPTS, Depth, Matrix, Numbers, Positive, Size, SpecError, error_path

from ._model import model

if TYPE_CHECKING:
    from jax import Array

    from mesascope.models import PromptModel
    from mesascope.models._batch_last_layer import BatchLastLayer

    Matrices = Any  # any array will do
else:
    Matrices = Annotated[tuple[Matrix, ...], Field(min_length=1)]


def _refuse_another_depth(spec: Any) -> None:
    if spec.start is not None and len(spec.start) != spec.layers:
        raise SpecError(
            f"has {len(spec.start)} entries, but layers is {spec.layers}; make them equal", "start"
        )


@model("preconditioned-linear-transformer", reads=PROMPTS, refuse=_refuse_another_depth, layers=2)
def preconditioned_linear_transformer(
    dim: int,
    layers: Depth,
    loops: Size = 1,
    scale: Positive = 0.1,
    *,
    key: Array,
    start: Matrices | None = None,
) -> PromptModel:
    """Steps of preconditioned gradient descent as layers: `prompt_linear_transformer` whose only weights are A_1 … A_L.

    Its expected loss is exact up to three steps, layers times loops. Source: ahn2023, section 4; gatmiry2024, section 2.

    Args:
        dim: dimension of the inputs.
        layers: number of layers.
        loops: how often the layers are applied, one after the other.
        scale: standard deviation > 0 of the weights.
        key: random key.
        start: the matrices A of the layers at the start, each d × d, instead of random ones.
    """
    from mesascope.models import PreconditionedLinearAttention

    if start is None:
        keys = split_keys(key, layers)
        each = [PreconditionedLinearAttention.gaussian(dim + 1, scale, key=k) for k in keys]
    else:
        with error_path("start"):
            each = [PreconditionedLinearAttention(a) for a in start]
            if len(each) != layers or any(one.width != dim + 1 for one in each):
                raise ValueError(f"must be {layers} matrices of shape ({dim}, {dim}), one for each layer")
    return _steps(each, dim, loops)


@model("step-size-transformer", reads=PROMPTS, refuse=_refuse_another_depth, layers=2)
def step_size_transformer(
    dim: int,
    layers: Depth,
    loops: Size = 1,
    scale: Positive = 0.1,
    *,
    key: Array,
    metric: Matrix | None = None,
    start: Numbers | None = None,
) -> PromptModel:
    """Steps of gradient descent as layers whose only weights are their sizes: A_ℓ = a_ℓ B, with one matrix B for all.

    Its expected loss is exact up to three steps, layers times loops, and up to 48 where B is a multiple of the inverse
    covariance of the inputs. Source: ahn2023, Theorem 3.

    Args:
        dim: dimension of the inputs.
        layers: number of layers.
        loops: how often the layers are applied, one after the other.
        scale: standard deviation > 0 of the step sizes.
        key: random key.
        metric: B, d × d, which stays as it is; by default the identity.
        start: the step sizes at the start, instead of random ones.
    """
    import numpy as np

    from mesascope.models import StepSizeAttention

    given = np.eye(dim) if metric is None else square_matrix("metric", metric)
    if len(given) != dim:
        raise SpecError(f"must have the shape ({dim}, {dim})", "metric")
    if start is None:
        keys = split_keys(key, layers)
        return _steps([StepSizeAttention.gaussian(given, scale, key=k) for k in keys], dim, loops)
    with error_path("start"):
        if len(start) != layers:
            raise ValueError(f"must be {layers} step sizes, one for each layer")
        each = [StepSizeAttention(float(a) if isinstance(a, Fraction) else a, given) for a in start]
    return _steps(each, dim, loops)


def _steps(layers: Sequence[BatchLastLayer], dim: int, loops: int) -> PromptModel:
    """The model of these steps on stacked prompts, whose answer is minus the last entry."""
    from mesascope.models import LastEntry, LinearAttentionStack, Looped, PromptModel, StackedPrompt

    stack = LinearAttentionStack(layers)
    return PromptModel(StackedPrompt(dim), stack if loops == 1 else Looped(stack, loops), LastEntry(-1))
