"""The least memory that a run needs, checked before it is allocated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp

from mesascope.objectives import Task, refuse_large_batches, task_length

from ._held_out import in_precision
from ._pieces import inner_jaxprs, output_bytes
from ._training_settings import TrainingSettings

_LARGEST = 4 * 2**30


def refuse_large_networks(model: Any, settings: TrainingSettings, runs: int = 1) -> None:
    """Refuse networks that take more than 4 GiB: weights, gradient, average and state of the optimizer.

    Args:
        model: the model, or its shapes, as `equinox.filter_eval_shape` gives them.
        settings: the settings of the training.
        runs: the number of models trained at once.

    Raises:
        ValueError: says how many weights there are, and how large all of it would be.
    """
    weights = sum(
        leaf.size * (2 if jnp.issubdtype(leaf.dtype, jnp.complexfloating) else 1)
        for leaf in jax.tree.leaves(model)
        if hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jnp.inexact)
    )
    vector = jax.ShapeDtypeStruct((weights,), jnp.float32)
    inner = sum(leaf.size for leaf in jax.tree.leaves(jax.eval_shape(settings.transformation().init, vector)))
    numbers = inner + weights * (2 if settings.average is None else 3)
    size = runs * numbers * (8 if settings.precision == "float64" else 4)
    if size > _LARGEST:
        many, fewer = ("", "heads") if runs == 1 else (f" of {runs} runs at once", "seeds")
        raise ValueError(
            f"{weights:,} weights{many} take {size / 2**30:.3g} GiB with their gradient and the state of the optimizer, "
            f"more than {_LARGEST // 2**30}; take a smaller width, fewer layers or fewer {fewer}"
        )


def refuse_large_samples(process: Any, task: Task, batch: int, precision: str) -> None:
    """Refuse batches that need arrays above 4 GiB: samples, or intermediate arrays such as all transitions.

    Raises:
        ValueError: says how large they would be.
    """
    refuse_large_batches(process, task, batch)

    def draw(key: Any) -> Any:
        return process.sample(key, task_length(task), batch)

    with in_precision(precision):
        size = max(_array_bytes(jax.make_jaxpr(draw)(jax.random.key(0)).jaxpr), default=0)
    if size > _LARGEST:
        raise ValueError(
            f"{batch} samples of {type(process).__name__} take an array of {size / 2**30:.3g} GiB while they are drawn; "
            "take a smaller batch or smaller dimensions"
        )


def _array_bytes(jaxpr: Any) -> Iterator[int]:
    """Bytes of every intermediate array."""
    for equation in jaxpr.eqns:
        yield from output_bytes(equation)
        for inner in inner_jaxprs(equation):
            yield from _array_bytes(inner)
