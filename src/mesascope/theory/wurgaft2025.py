r"""Two strategies for urns of a pool, their exact losses, and the odds between them (wurgaft2025, arXiv 2506.17859).

Setting: every sequence $s_1 s_2 \dots$ consists of independent draws from one urn with probabilities $p$ of $S$ symbols. The
urn is one of a pool $p_1 \dots p_K$, each with probability $1/K$; the pool was drawn from $\mathrm{Dirichlet}(\alpha, \dots,
\alpha)$. A model predicts $s_{t+1}$ from $s_1 \dots s_t$. The memorizing strategy is the posterior mean under the pool, the
generalizing one that under the Dirichlet prior. Training prefers one of them by its posterior odds, which rest on what both
lose, and on how many bits it takes to write each down. (The paper calls the number of tasks D and the number of training
steps N.)
"""

from collections.abc import Callable
from math import comb
from typing import Any

import numpy as np

from ..core import finite_positive, finite_reals, integer_at_least
from ..specs import Number

_MOST = 2**24  # numbers of one table of counts and tasks
STRATEGIES = ("memorizing", "generalizing")
"""The paper's two predictors."""
CODE_BITS = 5000
"""Bits of a predictor without its prior: with bz2 the classes of the authors' `models.py`, without comments, take 4784 and
5376."""
NUMBER_BITS = 64
"""Bits of a number of the prior, a double."""


def memorizing(tasks: Any, counts: Any) -> np.ndarray:
    r"""Return the probabilities of the next symbol for an urn of the pool.

    $$\hat p = \sum_k q_k p_k, \qquad q_k \propto \prod_b p_k(b)^{N_b}.$$

    Args:
        tasks: the pool, rows of positive probabilities, shape (K, S).
        counts: how often each symbol was drawn, $N_b$, shape (…, S).

    Returns:
        Shape (…, S).

    Raises:
        ValueError: numbers that are no probabilities, or do not fit.

    Source: wurgaft2025, `models.py:275-361` of the authors' program (commit 7fcd0a6).
    """
    pool, counts = _pool(tasks), np.asarray(counts, float)
    if counts.shape[-1] != pool.shape[1]:
        raise ValueError(
            f"counts must have {pool.shape[1]} entries, a number for each symbol, got {counts.shape[-1]}"
        )
    scores = counts @ np.log(pool).T
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    found: np.ndarray = shares @ pool / shares.sum(-1, keepdims=True)
    return found


def generalizing(counts: Any, concentration: Number = 1.0) -> np.ndarray:
    r"""Return the probabilities of the next symbol for a new urn, $(N_b + \alpha)/(t + S\alpha)$.

    Args:
        counts: how often each of S symbols was drawn, $N_b$, shape (…, S); t is their sum.
        concentration: α > 0.

    Raises:
        TypeError, ValueError: α is not a finite number > 0.

    Source: wurgaft2025, `models.py:363-439` of the authors' program (commit 7fcd0a6).
    """
    more = np.asarray(counts, float) + float(finite_positive("concentration", concentration))
    return more / more.sum(-1, keepdims=True)


def compositions(total: int, symbols: int) -> np.ndarray:
    """Return all counts of so many draws, a row each: shape (n, S)."""
    if symbols == 1:
        return np.full((1, 1), total)
    parts = [compositions(total - first, symbols - 1) for first in range(total + 1)]
    firsts = np.repeat(np.arange(total + 1), [len(one) for one in parts])
    return np.column_stack([firsts, np.concatenate(parts)])


def losses(tasks: Any, length: int, concentration: Number = 1.0) -> dict[str, np.ndarray]:
    r"""Return what both strategies lose on sequences of the pool after $t = 0 \dots T - 1$ draws, by a sum over all counts.

    $$L_t = \frac1K \sum_k \sum_N \binom{t}{N} \prod_b p_k(b)^{N_b} \sum_b p_k(b) \log \frac{p_k(b)}{\hat p_b(N)},$$

    the expected relative entropy of the urn's probabilities and the predicted ones, in nats: the cross-entropy without the
    entropy of the urns.

    Args:
        tasks: the pool, rows of positive probabilities, shape (K, S).
        length: T ≥ 1.
        concentration: α > 0.

    Returns:
        Strategy → shape (T,).

    Raises:
        TypeError, ValueError: numbers out of range, or more counts of T draws than can be listed.
    """
    pool, length = _pool(tasks), integer_at_least("length", length, 1)
    entropy = -float(np.mean((pool * np.log(pool)).sum(1)))

    def chances(counts: np.ndarray) -> np.ndarray:
        found = np.exp(counts @ np.log(pool).T + _ways(counts)[:, None])
        return np.asarray(found @ pool / len(pool))

    return _summed(pool, length, finite_positive("concentration", concentration), chances, entropy)


def losses_on_new(tasks: Any, length: int, concentration: Number = 1.0) -> dict[str, np.ndarray]:
    r"""Return what both strategies lose on sequences of new urns, drawn from the Dirichlet prior, by a sum over all counts.

    As `losses`, with the mean over new urns in place of that over the pool: the probability of counts is that of Pólya's urn.

    Args:
        tasks: the pool that is memorized, shape (K, S).
        length: as for `losses`.
        concentration: as for `losses`.

    Raises:
        TypeError, ValueError: as `losses`.
    """
    from scipy.special import digamma, gammaln

    pool, length = _pool(tasks), integer_at_least("length", length, 1)
    alpha, symbols = float(finite_positive("concentration", concentration)), pool.shape[1]
    entropy = float(digamma(symbols * alpha + 1) - digamma(alpha + 1))  # the mean over urns

    def chances(counts: np.ndarray) -> np.ndarray:
        total = gammaln(symbols * alpha) - gammaln(symbols * alpha + counts.sum(1))
        found = np.exp(_ways(counts) + total + (gammaln(alpha + counts) - gammaln(alpha)).sum(1))
        return np.asarray(found[:, None] * generalizing(counts, alpha))

    return _summed(pool, length, alpha, chances, entropy)


def _summed(
    pool: np.ndarray,
    length: int,
    alpha: Number,
    chances: Callable[[np.ndarray], np.ndarray],
    entropy: float,
) -> dict[str, np.ndarray]:
    """The losses, from the probabilities of counts together with the next symbol."""
    symbols = pool.shape[1]
    if (rows := comb(length + symbols - 2, symbols - 1)) * len(pool) > _MOST:
        raise ValueError(
            f"length: {rows} counts of {length - 1} draws are too many; take fewer symbols, draws or tasks"
        )
    found: dict[str, list[float]] = {name: [] for name in STRATEGIES}
    for t in range(length):
        counts = compositions(t, symbols)
        next_one = chances(counts)
        predicted = memorizing(pool, counts), generalizing(counts, alpha)
        for name, one in zip(STRATEGIES, predicted, strict=True):
            found[name].append(float(-np.sum(next_one * np.log(one))) - entropy)
    return {name: np.array(values) for name, values in found.items()}


def _ways(counts: np.ndarray) -> np.ndarray:
    """The logarithm of the number of sequences with these counts."""
    from scipy.special import gammaln

    return np.asarray(gammaln(counts.sum(1) + 1) - gammaln(counts + 1).sum(1))


def complexities(tasks: int, symbols: int) -> dict[str, int]:
    """Return the bits of both strategies: their code, and the numbers of their priors.

    The pool has K S numbers, the Dirichlet prior S.

    Args:
        tasks: K ≥ 1.
        symbols: S ≥ 2.

    Raises:
        TypeError, ValueError: numbers out of range.

    Source: wurgaft2025, `analysis_utils.py:917-942` of the authors' program (commit 7fcd0a6), where both are compressed.
    """
    size = integer_at_least("tasks", tasks, 1) * integer_at_least("symbols", symbols, 2)
    return {"memorizing": CODE_BITS + NUMBER_BITS * size, "generalizing": CODE_BITS + NUMBER_BITS * symbols}


def log_odds(
    steps: Any,
    loss_gap: Any,
    bits: Any,
    bits_of_generalizing: Any,
    alpha: Number,
    beta: Number,
    gamma: Number,
) -> np.ndarray:
    r"""Return the log posterior odds of memorizing over generalizing after so many steps of training.

    $$\eta = \gamma N^{1-\alpha} (L_G - L_M) - \log 2\, (C_M^\beta - C_G^\beta).$$

    Training sees less evidence than $N$ batches hold, $N^{1-\alpha}$ of it, and a strategy of $C$ bits has the prior
    probability $2^{-C^\beta}$. Behaviour is predicted to be $\sigma(\eta)$ of memorizing, the rest of generalizing.

    Args:
        steps: N > 0.
        loss_gap: $L_G - L_M$, what generalizing loses more on the pool.
        bits: $C_M$ > 0.
        bits_of_generalizing: $C_G$ > 0.
        alpha: α.
        beta: β.
        gamma: γ.

    Source: wurgaft2025, `models.py:898-938` of the authors' program (commit 7fcd0a6).
    """
    evidence = float(gamma) * np.asarray(steps, float) ** (1 - float(alpha)) * np.asarray(loss_gap, float)
    more = np.asarray(bits, float) ** float(beta) - np.asarray(bits_of_generalizing, float) ** float(beta)
    found: np.ndarray = evidence - np.log(2) * more
    return found


def _pool(tasks: Any) -> np.ndarray:
    pool = finite_reals("tasks", tasks)
    if pool.ndim != 2 or not pool.size or pool.min() <= 0 or abs(pool.sum(1) - 1).max() > 1e-9:
        raise ValueError(
            f"tasks must be rows of positive probabilities with the sum 1, of shape (K, S), got {pool.shape}"
        )
    return pool
