"""One layer applied repeatedly."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
from jax import Array

from mesascope.core import integer_at_least

from ._batch_last_layer import BatchLastLayer
from ._kernels import batch_first, batch_last
from ._layer import AroundLayer, Layer, checked_stream, repeatable_layer


class Looped(AroundLayer):
    """The same layer several times: z ← layer(z).

    The layer is compiled once for any number of loops. It should have its own residual connection: `LinearAttentionStack`
    has one, other layers need `Residual`.

    Attributes:
        layer: any layer whose two widths are equal.
        loops: number of loops ≥ 1, unless a call gives another.

    Raises:
        TypeError: for something that is not a layer, or loops that are not an integer.
        ValueError: for a layer whose two widths differ, or loops below 1.

    Source: gatmiry2024, section 2; vonoswald2023 (two looped layers).
    """

    layer: Layer
    loops: int = eqx.field(static=True)

    def __init__(self, layer: Layer, loops: int):
        self.layer = repeatable_layer("Looped", layer)
        self.loops = integer_at_least("loops", loops, 1)

    def __call__(self, stream: Any, *, loops: int | None = None) -> Array:
        """Return the stream after all loops: (…, n, width) → (…, n, width)."""
        last, _ = self._run(stream, self._count(loops), keep=False)
        return last

    def outputs(self, stream: Any, *, loops: int | None = None) -> tuple[Array, ...]:
        """Return the streams after every loop, each (…, n, width)."""
        return tuple(self._run(stream, self._count(loops), keep=True)[1])

    def _count(self, loops: int | None) -> int:
        return self.loops if loops is None else integer_at_least("loops", loops, 1)

    @eqx.filter_jit
    def _run(self, stream: Any, loops: int, keep: bool) -> tuple[Array, Any]:
        """Return the last stream, and with `keep` the streams after every loop, shape (loops, …, n, width)."""
        stream = checked_stream(self, stream)
        if not isinstance(self.layer, BatchLastLayer):
            return _repeated(self.layer, stream, loops, keep)
        last, every = _repeated(self.layer.on_batch_last, batch_last(stream), loops, keep)
        lead = stream.shape[:-2]
        return batch_first(last, lead), jax.vmap(lambda z: batch_first(z, lead))(every) if keep else None


def _repeated(step: Any, stream: Array, loops: int, keep: bool) -> tuple[Array, Any]:
    def once(now: Array, _: None) -> tuple[Array, Array | None]:
        after = step(now)
        return after, after if keep else None

    # Weights of another precision, or complex weights, change the type in the first loop, which a scan does not allow.
    start = stream.astype(jax.eval_shape(step, stream).dtype)
    return jax.lax.scan(once, start, None, length=loops)
