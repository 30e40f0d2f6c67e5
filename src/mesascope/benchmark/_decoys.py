"""Functions of examples and a query that are none of the learners, and near to none."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Decoy = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""Inputs (batch, n, p), outputs (batch, n, m) and a query (batch, p) to a prediction (batch, m)."""

_PENALTY, _CONCENTRATION = 0.5, 0.5


def _ridge(x: np.ndarray, y: np.ndarray, query: np.ndarray) -> np.ndarray:
    gram = np.einsum("bip,biq->bpq", x, x) + _PENALTY * np.eye(x.shape[-1])
    weights = np.linalg.solve(gram, np.einsum("bip,bim->bpm", x, y))
    return np.einsum("bp,bpm->bm", query, weights)


def _squares(x: np.ndarray) -> np.ndarray:
    """Return the products x_i x_j, i ≤ j, of the entries of vectors."""
    rows, columns = np.triu_indices(x.shape[-1])
    return x[..., rows] * x[..., columns]


def squashed_ridge(x: np.ndarray, y: np.ndarray, query: np.ndarray) -> np.ndarray:
    """Return tanh(3 ŷ)/2 of ridge regression's ŷ."""
    return np.asarray(np.tanh(3 * _ridge(x, y, query)) / 2)


def amplified_ridge(x: np.ndarray, y: np.ndarray, query: np.ndarray) -> np.ndarray:
    """Return 1.6 times the prediction of ridge regression."""
    return 1.6 * _ridge(x, y, query)


def quadratic_ridge(x: np.ndarray, y: np.ndarray, query: np.ndarray) -> np.ndarray:
    """Return the prediction of ridge regression on the products of the entries."""
    return _ridge(_squares(x), y, _squares(query))


def farthest_neighbour(x: np.ndarray, y: np.ndarray, query: np.ndarray) -> np.ndarray:
    """Return the output of the example whose input is farthest from the query."""
    if x.shape[1] == 0:
        return np.zeros((len(x), y.shape[-1]))
    place = ((x - query[:, None]) ** 2).sum(-1).argmax(1)
    return np.asarray(y[np.arange(len(y)), place])


def median_output(x: np.ndarray, y: np.ndarray, query: np.ndarray) -> np.ndarray:
    """Return the median of every entry of the outputs."""
    return np.asarray(np.median(y, 1)) if y.shape[1] else np.zeros((len(y), y.shape[-1]))


def first_half(x: np.ndarray, y: np.ndarray, query: np.ndarray) -> np.ndarray:
    """Return the prediction of ridge regression from the first half of the examples."""
    half = (x.shape[1] + 1) // 2
    return _ridge(x[:, :half], y[:, :half], query)


def one_coordinate(x: np.ndarray, y: np.ndarray, query: np.ndarray) -> np.ndarray:
    """Return the prediction of ridge regression from the first entry of the inputs."""
    return _ridge(x[..., :1], y, query[..., :1])


def signs_of_outputs(x: np.ndarray, y: np.ndarray, query: np.ndarray) -> np.ndarray:
    """Return the prediction of ridge regression on the signs of the outputs."""
    return _ridge(x, np.sign(y), query)


def _after(before: np.ndarray, after: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Return the probabilities of what followed a symbol, with added counts; before, after (batch, n, S), last (batch, S)."""
    counts = np.einsum("bni,bnj,bi->bj", before, after, last) + _CONCENTRATION
    return np.asarray(counts / counts.sum(-1, keepdims=True))


def sharpened_bigrams(x: np.ndarray, y: np.ndarray, query: np.ndarray) -> np.ndarray:
    """Return probabilities proportional to the cubes of those of bigram counts."""
    odds = _after(x, y, query) ** 3
    return np.asarray(odds / odds.sum(-1, keepdims=True))


def skipped_bigrams(x: np.ndarray, y: np.ndarray, query: np.ndarray) -> np.ndarray:
    """Return the probabilities of what stood two places behind the symbol before the last."""
    last = x[:, -1] if x.shape[1] else np.full(query.shape, 1 / query.shape[-1])
    return _after(x[:, :-1], y[:, 1:], last)


def shifted_bigrams(x: np.ndarray, y: np.ndarray, query: np.ndarray) -> np.ndarray:
    """Return the probabilities of bigram counts, each for the next symbol of the alphabet."""
    return np.roll(_after(x, y, query), 1, -1)


OF_VECTORS: tuple[Decoy, ...] = (
    squashed_ridge,
    amplified_ridge,
    quadratic_ridge,
    farthest_neighbour,
    median_output,
    first_half,
    one_coordinate,
    signs_of_outputs,
)
"""Decoys of tokens and prompts."""
OF_SYMBOLS: tuple[Decoy, ...] = (sharpened_bigrams, skipped_bigrams, shifted_bigrams)
"""Decoys of symbols: they answer with probabilities."""
DECOYS: dict[str, Decoy] = {one.__name__.replace("_", "-"): one for one in OF_VECTORS + OF_SYMBOLS}
"""All decoys by name."""
