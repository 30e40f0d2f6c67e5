"""The logit lens: the model's own read-out applied after every layer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ._costs import costs
from ._intervals import Measured
from ._layers import LayerStreams, require_streams
from ._problems import Problems, require_problems
from ._table import Tabled, layer_names, table, with_interval


@dataclass(frozen=True, repr=False)
class LogitLens(Tabled):
    r"""The read-out of a model after $\ell = 0, \dots, L$ layers.

    Attributes:
        predictions: $f_\ell$, shape (L + 1, batch, N + 1, m); 0 where the weight is 0.
        loss: $\frac12 E\|f_\ell - y\|^2$, pooled over the numbers of examples with their weights, shapes (L + 1,). For
            symbols $f$ are probabilities and $y$ one-hot vectors.
        distance: distance from the model's prediction, $E\|f_\ell - f_L\|^2 / E\|f_L\|^2$, pooled, shapes (L + 1,).
    """

    predictions: np.ndarray
    loss: Measured
    distance: Measured

    def __str__(self) -> str:
        names = layer_names(len(self.predictions))
        rows = [
            [name, with_interval(self.loss, i), with_interval(self.distance, i)]
            for i, name in enumerate(names)
        ]
        return table(["after", "loss", "distance from the answer"], rows)


def logit_lens(streams: LayerStreams, problems: Problems, *, level: float = 0.95, seed: int = 0) -> LogitLens:
    """Apply the read-out of a model to the stream after every layer.

    Args:
        streams: streams of a model, with its read-out: `layer_streams(model, problems)`.
        problems: the same problems.
        level: confidence level of the intervals.
        seed: seed of the resampling of tasks.

    Raises:
        TypeError: streams or problems of another type, or streams without a read-out.
        ValueError: a read-out that does not accept the stream after some layer, or too few tasks for the level.
    """
    require_streams(streams)
    require_problems(problems)
    read = np.stack([streams.read(layer) for layer in range(streams.layers + 1)])
    loss, distance = costs(read, read[-1], problems, level, seed)
    return LogitLens(read, loss, distance)
