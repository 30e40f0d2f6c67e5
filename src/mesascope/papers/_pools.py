"""What claims about symbols share: transformers trained on them, their predictions, and Bayes' rule by brute force."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import equinox as eqx
import jax
import numpy as np

from mesascope.dynamics import Optimizer
from mesascope.models import SequenceModel, token_transformer
from mesascope.processes import NextToken, SymbolProcess

from ._recorded import Trainings, models_per_decade
from ._runs import seeds_of

FIRST = 2  # symbols before the first prediction that counts, as in training


class SymbolTraining(Trainings):
    """Transformers that are trained on symbols, with checkpoints at equal distances on a logarithmic axis."""

    symbols: int
    horizon: int
    width: int
    layers: int
    heads: int
    steps: int
    per_decade: int


def trained_on(process: SymbolProcess, settings: SymbolTraining) -> dict[int, list[SequenceModel]]:
    """Steps → one transformer per seed, trained on the process; every prediction counts."""
    sizes = (settings.symbols, settings.width, settings.layers, settings.heads, settings.horizon)
    return models_per_decade(
        lambda key: token_transformer(*sizes, key=key),
        process,
        NextToken(settings.horizon),
        seeds_of(settings),
        settings.steps,
        settings.per_decade,
        optimizer=Optimizer("adam", settings.rate),
        batch=settings.batch,
        held_out=2,
    )


def predicted(model: Any, sequences: np.ndarray) -> np.ndarray:
    """The model's probabilities after `FIRST` symbols and more, shape (n, T − FIRST, S)."""
    return np.asarray(_probabilities(model, sequences), float)


@eqx.filter_jit
def _probabilities(model: Any, sequences: Any) -> Any:
    return jax.nn.softmax(model.predictions(sequences)[:, :-1], -1)


def off_bayes(
    symbols: int,
    longest: int,
    chance: Callable[[np.ndarray], np.ndarray],
    answer: Callable[[np.ndarray], np.ndarray],
    shortest: int = 1,
) -> float:
    """The largest difference of answers from P(s₁ … s_{t+1}) / P(s₁ … s_t), over all sequences of some lengths t.

    Args:
        symbols: S.
        longest: the longest t.
        chance: sequences (n, t) → their probabilities (n,).
        answer: sequences (n, t) → the probabilities of the next symbol (n, S).
        shortest: the shortest t.
    """
    largest = 0.0
    for t in range(shortest, longest + 1):
        sequences = np.array(list(product(range(symbols), repeat=t)), int).reshape(symbols**t, t)
        after = [chance(np.insert(sequences, t, b, axis=1)) for b in range(symbols)]
        bayes = np.stack(after, 1) / chance(sequences)[:, None]
        largest = max(largest, float(np.abs(bayes - answer(sequences)).max()))
    return largest
