"""One step of gradient descent, and one block more, by their moments; trained layers beside them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from mesascope.core import named_key
from mesascope.models import LinearAttention

from .._runs import seeds_of
from .._shared import shared
from ._common import errors_by_length
from ._layer import Drawn, LayerTraining, sequences, trained_layers


def block_layer(dim: int, normalizer: str, step: float, other: float, old: float = 0.0) -> LinearAttention:
    """Token i weighs `step` times s_{i−1}·s_t plus `other` times s_i·s_{t−1}; it adds s_i − `old` s_{i−1}."""
    w_kq, w_pv = np.zeros((2 * dim, 2 * dim)), np.zeros((dim, 2 * dim))
    w_kq[dim:, :dim], w_kq[:dim, dim:] = step * np.eye(dim), other * np.eye(dim)
    w_pv[:, :dim], w_pv[:, dim:] = np.eye(dim), -old * np.eye(dim)
    return LinearAttention(w_kq, w_pv, normalizer)


def _moments(settings: Drawn, key: Any) -> np.ndarray:
    """Products of the answers of both blocks, of what a start Φ₀ = cI adds, and of s_{t+1}, shape (5, 5)."""
    tokens = sequences(settings, key)
    step, other, shifted = (
        np.asarray(block_layer(settings.dim, settings.normalizer, *numbers).predictions(tokens[:, :-1]))
        for numbers in ((1.0, 0.0), (0.0, 1.0), (1.0, 0.0, 1.0))
    )
    rows = np.stack([step, other, step - shifted, tokens[:, 1:-1], tokens[:, 2:]]).reshape(5, -1)
    return np.asarray(rows @ rows.T / rows.shape[1])


_STEP, _PAIR, _STARTED = (0,), (0, 1), (0, 2, 3)  # which of the columns have a number of their own


def _fitted(moments: np.ndarray, columns: tuple[int, ...]) -> np.ndarray:
    """The best numbers of these columns, in closed form; others 0, with −1 for the target, shape (5,)."""
    chosen = list(columns)
    numbers = np.zeros(5)
    numbers[chosen] = np.linalg.solve(moments[np.ix_(chosen, chosen)], moments[chosen, 4])
    numbers[4] = -1.0
    return numbers


def _loss(moments: np.ndarray, numbers: np.ndarray) -> float:
    return float(numbers @ moments @ numbers)


class Fits(Drawn):
    """How often sequences are drawn for moments."""

    samples: int = 20
    seed: int = 0


class Layer(LayerTraining, Fits):
    """A trained layer, compared with the fits."""


@shared(Fits)
def fits(settings: Fits) -> dict[str, Any]:
    """The best numbers on the first half of the draws, the value of more than the step on the others, and every draw's own.

    Returns:
        `step`, `pair` and `started`: shape (5,). `gains` and `started_gains`: 1 less the ratio of the losses, one per draw.
        `others`: the second number of every draw's own best pair.
    """
    keys = (named_key(settings.seed, "moments", str(number)) for number in range(settings.samples))
    moments = [_moments(settings, key) for key in keys]
    half = len(moments) // 2
    mean = np.mean(moments[:half], 0)
    step, pair, started = (_fitted(mean, columns) for columns in (_STEP, _PAIR, _STARTED))
    return {
        "step": step,
        "pair": pair,
        "started": started,
        "gains": [1 - _loss(one, pair) / _loss(one, step) for one in moments[half:]],
        "started_gains": [1 - _loss(one, started) / _loss(one, step) for one in moments[half:]],
        "others": [float(_fitted(one, _PAIR)[1]) for one in moments],
    }


def beside(settings: Layer, names: Iterable[str] = ("step", "pair")) -> dict[str, list[list[float]]]:
    """By rival: mean squared errors of the layers relative to the rival's, minus 1, half way and at the end, by seed."""
    found = fits(settings)
    rivals = {
        name: block_layer(settings.dim, settings.normalizer, *map(float, found[name][:2])) for name in names
    }
    tests = [sequences(settings, named_key(seed, "test sequences")) for seed in seeds_of(settings)]

    def losses(models: Iterable[Any]) -> np.ndarray:
        return np.array([errors_by_length(one, t).mean() for one, t in zip(models, tests, strict=True)])

    made = [losses(models) for models in trained_layers(settings).values()]
    own = {name: losses([rival] * len(tests)) for name, rival in rivals.items()}
    return {name: [(each / wanted - 1).tolist() for each in made] for name, wanted in own.items()}
