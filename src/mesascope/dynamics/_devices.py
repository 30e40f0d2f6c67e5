"""Batches divided among devices: accelerators, or cores of a CPU that JAX shows as devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, PartitionSpec

from ._pieces import Loss, batch_of, bytes_of

Tree = TypeVar("Tree")

_WORTHWHILE_BYTES = 8 * 2**20
"""Bytes of all intermediate values of a loss from which on another device saves time, by measurement."""

_AXIS = "batch"


def devices_to_share() -> int:
    """The number of devices for a run; one if a default device is set."""
    chosen = jax.config.jax_default_device  # type: ignore[attr-defined]  # defined at run time
    return len(jax.local_devices()) if chosen is None else 1


def number_of_devices(loss: Loss, most: int, weights: Any, sample: Any) -> int:
    """The number of devices, at most `most`, among which a sample is divided; it divides the batch."""
    if most == 1:
        return 1
    batch = batch_of(sample)
    worthwhile = max(1, min(most, bytes_of(loss, weights, sample) // _WORTHWHILE_BYTES))
    return max(n for n in range(1, worthwhile + 1) if batch % n == 0)


def on_devices(function: Callable[[Any, Any], Any], devices: int) -> Callable[[Any, Any], Any]:
    """The mean of `function(weights, part)` over the equal parts of a sample, one part per device."""
    if devices == 1:
        return function
    mesh = Mesh(np.array(jax.local_devices()[:devices]), (_AXIS,), axis_types=(AxisType.Auto,))

    def mean(weights: Any, part: Any) -> Any:
        return jax.lax.pmean(function(weights, part), _AXIS)

    whole, cut = PartitionSpec(), PartitionSpec(_AXIS)
    return jax.shard_map(mean, mesh=mesh, in_specs=(whole, cut), out_specs=whole, check_vma=False)


def on_one_device(tree: Tree) -> Tree:
    """Copy results to one device; otherwise what follows would be computed on all of them."""
    return jax.tree.map(lambda x: jnp.asarray(jax.device_get(x)), tree)
