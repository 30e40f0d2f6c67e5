"""Predictors that give the predictions after every number of examples in one pass of the model."""

from __future__ import annotations

import abc
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Predictor = Callable[..., np.ndarray]
"""A model as a function of NumPy arrays: contexts, or x and y of prompts, to predictions."""
_TOLERANCE = 1e-3  # of a sum of probabilities


@dataclass(frozen=True)
class EveryPosition(abc.ABC):
    """A predictor that predicts at every position of its context from what stands before it.

    Called as any other it predicts at the last position.

    Args:
        function: the model as a function of arrays.
    """

    function: Predictor

    @abc.abstractmethod
    def every(self, *arrays: np.ndarray) -> np.ndarray | None:
        """Return the predictions at all positions; None if the positions of the model are not those of the context.

        Sequences (batch, t, d) or symbols (batch, t) → (batch, t, m); prompts x (batch, n + 1, d) and y (batch, n) →
        (batch, n + 1).
        """

    def __call__(self, *arrays: np.ndarray) -> np.ndarray:
        """Return the prediction at the last position, (batch, m) or (batch,)."""
        found = self.every(*arrays)
        if found is None:
            raise ValueError(
                "model: gives no prediction at the last position; wrap it in a function that does"
            )
        return found[:, -1]


class XsYs(EveryPosition):
    """A model that predicts every label of a prompt.

    Args:
        function: xs (batch, n + 1, d) and ys (batch, n + 1) to predictions of ys, (batch, n + 1) or (batch, n + 1, 1). It is
            given 0 as the last label.
    """

    def every(self, *arrays: np.ndarray) -> np.ndarray:
        """Return the predictions of all labels, shape (batch, n + 1).

        Raises:
            TypeError: the data are not prompts.
            ValueError: the function gave an array of another shape.
        """
        if len(arrays) != 2:
            raise TypeError(
                "model: forward(xs, ys) reads prompts, and these data are sequences; take a process of prompts, or "
                'as_callable(model, interface="context")'
            )
        x, y = arrays
        return self.from_labels(x, np.pad(y, ((0, 0), (0, 1))))

    def from_labels(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the predictions of all labels, given all of them, (batch, n + 1).

        Raises:
            ValueError: the function gave an array of another shape.
        """
        found = self.function(x, y)
        wanted = x.shape[:2]
        if found.shape not in (wanted, (*wanted, 1)):
            raise ValueError(
                f"model: forward(xs, ys) must give a prediction at every position, shape {wanted} for xs {x.shape}, gave "
                f"{found.shape}"
            )
        return found.reshape(wanted)


class TokenLogits(EveryPosition):
    """A causal language model: symbols to the logits of the next symbol at every position.

    Args:
        function: symbols (batch, t), integers, to logits (batch, t, S).
    """

    def every(self, *arrays: np.ndarray) -> np.ndarray:
        """Return the probabilities of the next symbol, shape (batch, t, S), in the precision of the logits.

        Raises:
            TypeError: the data are not symbols.
            ValueError: the function gave an array of another shape, or probabilities.
        """
        tokens = arrays[0]
        if len(arrays) != 1 or tokens.ndim != 2:
            raise TypeError(
                "model: forward(input_ids) reads symbols, and these data are vectors; take a process of symbols, embed them by "
                'as_callable(model, embed=…, readout=…), or set interface="context" if it reads vectors'
            )
        logits = self.function(tokens)
        if logits.dtype.kind not in "fiu" or (logits.ndim == 3 and logits.shape[-1] == 0):
            raise TypeError(
                f"model: forward(input_ids) must give real logits at every position, shape {(*tokens.shape, 'S')}, gave "
                f"{logits.dtype} of shape {logits.shape}"
            )
        if logits.shape[:-1] != tokens.shape:
            raise ValueError(
                f"model: forward(input_ids) must give logits at every position, shape {(*tokens.shape, 'S')}, gave "
                f'{logits.shape}; set interface="context" if it predicts from the last position only'
            )
        if (logits >= 0).all() and np.abs(logits.sum(-1) - 1).max() < _TOLERANCE:
            raise ValueError(
                "model: forward(input_ids) gave probabilities; return their logarithms, the logits"
            )
        precision = logits.dtype if logits.dtype.kind == "f" else np.dtype(float)
        wide = logits.astype(
            np.promote_types(precision, np.float32)
        )  # differences of the largest halves overflow
        odds = np.exp(wide - wide.max(-1, keepdims=True))
        probabilities: np.ndarray = (odds / odds.sum(-1, keepdims=True)).astype(precision)
        return probabilities


class Embedded(EveryPosition):
    """A causal model of embedded tokens: one for each token of a sequence, or x_1, y_1, …, x_{n+1} of a prompt.

    Other embeddings, and models that are not causal, are called once for each number of examples (see `answers`).

    Args:
        function: the context to the read-outs at all positions, (batch, length) or (batch, length, m).
    """

    def every(self, *arrays: np.ndarray) -> np.ndarray | None:
        """Return the predictions at the positions of the inputs; None for another number of tokens."""
        found, inputs = self._read(arrays), arrays[0].shape[1]
        if len(arrays) == 1:
            return found if found.shape[1] == inputs else None
        return found[:, ::2] if found.shape[1] == 2 * inputs - 1 else None

    def __call__(self, *arrays: np.ndarray) -> np.ndarray:
        """Return the prediction at the last position."""
        last: np.ndarray = self._read(arrays)[:, -1]
        return last

    def _read(self, arrays: tuple[np.ndarray, ...]) -> np.ndarray:
        """Return the read-outs at all positions; those of prompts, numbers, without an axis of length 1."""
        found = self.function(*arrays)
        return found[..., 0] if len(arrays) == 2 and found.ndim == 3 and found.shape[-1] == 1 else found
