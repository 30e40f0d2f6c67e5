r"""Predictors of Markov chains in context, and their exact losses (edelman2024, arXiv 2402.11004).

Setting: every sequence $s_1 s_2 \dots$ of $S$ symbols is a Markov chain whose transition matrix is drawn for it, with
independent rows from $\mathrm{Dirichlet}(\alpha, \dots, \alpha)$; the first symbol is uniform. A model predicts $s_{t+1}$
from $s_1 \dots s_t$. The paper has $\alpha = 1$; its predictors add 1 to every count.
"""

from itertools import product

import numpy as np

from ..core import finite_positive, integer_at_least
from ..specs import Number, show

_MOST = 2**22  # sequences that are enumerated
STRATEGIES = ("uniform", "unigram", "bigram")
"""The predictors of the paper, in the order in which transformers learn them."""


def probabilities(strategy: str, sequences: np.ndarray, symbols: int, concentration: Number) -> np.ndarray:
    r"""Return the probabilities that a predictor gives to every symbol after the last one of sequences.

    - uniform: $1/S$.
    - unigram: $(N_b + \alpha)/(t + S\alpha)$, with $N_b$ the number of times that b stands in $s_1 \dots s_t$.
    - bigram: $(N_{ab} + \alpha)/(\sum_{b'} N_{ab'} + S\alpha)$, with $a = s_t$ and $N_{ab}$ the number of times that b
      followed a.

    Args:
        strategy: one of `STRATEGIES`.
        sequences: integers from 0 to S − 1, shape (n, t).
        symbols: S.
        concentration: α.

    Returns:
        Shape (n, S).

    Raises:
        ValueError: an unknown strategy.

    Source: edelman2024, `utils.py:40-53` of the authors' program (commit 3ab0b29).
    """
    alpha = float(concentration)
    if strategy == "uniform":
        return np.full((len(sequences), symbols), 1 / symbols)
    if strategy == "unigram":
        numbers = np.stack([(sequences == b).sum(1) for b in range(symbols)], 1)
    elif strategy == "bigram":
        follows = sequences[:, :-1] == sequences[:, -1:]
        numbers = np.stack([(follows & (sequences[:, 1:] == b)).sum(1) for b in range(symbols)], 1)
    else:
        raise ValueError(f"strategy must be one of {', '.join(STRATEGIES)}, got {show(strategy)}")
    return (numbers + alpha) / (numbers.sum(1, keepdims=True) + symbols * alpha)


def likelihoods(sequences: np.ndarray, symbols: int, concentration: Number) -> np.ndarray:
    r"""Return the probability of every sequence, the mean over transition matrices: shape (n, t) → (n,).

    $$P(s) = \frac1S \prod_a \frac{\Gamma(S\alpha)}{\Gamma(N_a + S\alpha)}
    \prod_b \frac{\Gamma(N_{ab} + \alpha)}{\Gamma(\alpha)},$$

    with $N_{ab}$ the number of times that b follows a, and $N_a = \sum_b N_{ab}$: the moments of the rows.
    """
    from scipy.special import gammaln

    alpha, total = float(concentration), np.full(len(sequences), -np.log(symbols))
    for a in range(symbols):
        follows = sequences[:, :-1] == a
        numbers = np.stack([(follows & (sequences[:, 1:] == b)).sum(1) for b in range(symbols)], 1)
        total += gammaln(symbols * alpha) - gammaln(numbers.sum(1) + symbols * alpha)
        total += (gammaln(numbers + alpha) - gammaln(alpha)).sum(1)
    return np.exp(total)


def losses(symbols: int, length: int, concentration: Number = 1.0) -> dict[str, np.ndarray]:
    r"""Return the expected cross-entropy of each predictor after $t = 1 \dots T - 1$ symbols, by a sum over all sequences.

    $$L_t = -\sum_{s_1 \dots s_{t+1}} P(s_1 \dots s_{t+1}) \log \hat p(s_{t+1} \mid s_1 \dots s_t).$$

    Args:
        symbols: S ≥ 2.
        length: T ≥ 2; at most 2²² sequences of T symbols.
        concentration: α > 0.

    Returns:
        Strategy → shape (T − 1,).

    Raises:
        TypeError, ValueError: numbers out of range.
    """
    symbols, length = integer_at_least("symbols", symbols, 2), integer_at_least("length", length, 2)
    alpha = finite_positive("concentration", concentration)
    if symbols**length > _MOST:
        raise ValueError(
            f"length: {symbols}^{length} sequences are more than {_MOST}; take fewer symbols or shorter sequences"
        )
    found: dict[str, list[float]] = {name: [] for name in STRATEGIES}
    for t in range(1, length):
        sequences = np.array(list(product(range(symbols), repeat=t)))
        weights = [likelihoods(np.insert(sequences, t, b, axis=1), symbols, alpha) for b in range(symbols)]
        for name in STRATEGIES:
            predicted = probabilities(name, sequences, symbols, alpha)
            found[name].append(float(-np.sum(np.stack(weights, 1) * np.log(predicted))))
    return {name: np.array(values) for name, values in found.items()}
