r"""Softmax attention on orthonormal features: exact losses and asymptotic rates (huang2024, arXiv 2310.05249).

Setting: prompts of $N$ examples with inputs $x_i = v_k$ with probability $p_k$, orthonormal $v_1, \dots, v_K$, labels
$y_i = w^\top x_i$ with $E w = 0$, $E w w^\top = I$; one layer of softmax attention predicts $\hat y = \sum_i \mathrm{softmax}_i
(x_i^\top Q x_q)\, y_i$. In the basis of the features, with $n_l$ examples of feature $l$ and a query of feature $k$,

$$\hat y = \sum_l A_l w_l, \qquad A_l = \frac{n_l e^{Q_{lk}}}{\sum_m n_m e^{Q_{mk}}}, \qquad
L = \sum_k p_k L_k, \quad L_k = \tfrac12 E_n \Big[ (1 - A_k)^2 + \sum_{l \ne k} A_l^2 \Big],$$

where $n$ is multinomial: $L_k$ depends only on column $k$ of $Q$, so that features are learned independently, at rates $p_k$.
"""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import scipy  # its parts are imported where they are first used: half a second, which few programs need

from ..core import finite_positive, finite_reals, integer_at_least
from ..specs import Number

_MAX_COUNTS = 2_000_000


def feature_counts(probabilities: Sequence[Number], examples: int) -> tuple[np.ndarray, np.ndarray]:
    r"""Return all vectors of counts of $N$ examples and their multinomial probabilities.

    Args:
        probabilities: $p_1, \dots, p_K$, positive with sum 1.
        examples: $N \ge 1$.

    Returns:
        Counts, shape `(M, K)` with $M = \binom{N + K - 1}{K - 1}$, and probabilities, shape `(M,)`.

    Raises:
        TypeError, ValueError: numbers that are not probabilities, or more than two million vectors.
    """
    p, n = _checked_probabilities(probabilities), integer_at_least("examples", examples, 1)
    size = len(p)
    gammaln, xlogy = scipy.special.gammaln, scipy.special.xlogy
    total = round(float(np.exp(gammaln(n + size) - gammaln(n + 1) - gammaln(size))))
    if total > _MAX_COUNTS:
        raise ValueError(
            f"{size} features and {n} examples have {total} vectors of counts; take fewer of either (at most {_MAX_COUNTS})"
        )
    bars = np.array(list(combinations(range(n + size - 1), size - 1)), int).reshape(total, size - 1)
    ends = np.concatenate([np.full((total, 1), -1), bars, np.full((total, 1), n + size - 1)], 1)
    counts = np.diff(ends) - 1
    logarithms = gammaln(n + 1) - gammaln(counts + 1).sum(1) + xlogy(counts, p).sum(1)
    return counts, np.exp(logarithms)


def losses_by_feature(scores: Any, probabilities: Sequence[Number], examples: int) -> np.ndarray:
    r"""Return $L_1, \dots, L_K$ by summing over all vectors of counts; $L = p^\top (L_1, \dots, L_K)$.

    Args:
        scores: $Q$ in the basis of the features, entry $(l, k)$ for example $l$ and query $k$, shape `(K, K)`.
        probabilities: $p$, shape `(K,)`.
        examples: $N$.

    Raises:
        TypeError, ValueError: as `feature_counts`; scores of another shape.

    Source: derived here from the setting of huang2024 (second-hand).
    """
    p, q = _checked_probabilities(probabilities), finite_reals("scores", scores)
    if q.shape != (len(p), len(p)):
        raise ValueError(f"scores must be {(len(p), len(p))} for {len(p)} features, got {q.shape}")
    counts, weights = feature_counts(probabilities, examples)
    losses = []
    for k in range(len(p)):
        powers = counts * np.exp(q[:, k] - q[:, k].max())
        attention = powers / powers.sum(1, keepdims=True)
        attention[:, k] -= 1
        losses.append(weights @ np.sum(attention**2, 1) / 2)
    return np.array(losses)


def equal_gap_loss(gap: float, feature: int, probabilities: Sequence[Number], examples: int) -> float:
    r"""Return $L_k$ if all other features have the same score, $\delta$ below that of feature $k$.

    Then $A_k = j e^\delta/(j e^\delta + N - j)$ with the binomial count $j$ of feature $k$, and the other $A_l$ are
    proportional to the counts, $E \sum_{l \ne k} n_l^2 = (N - j)(1 + (N - j - 1) \rho_k)$ with $\rho_k = \sum_{l \ne k}
    (p_l/(1 - p_k))^2$:

    $$L_k = \tfrac12 E_j \frac{(N - j)^2 + (N - j)(1 + (N - j - 1) \rho_k)}{(j e^\delta + N - j)^2}.$$

    Args:
        gap: $\delta$; infinity gives `least_losses`.
        feature: $k$, from 0.
        probabilities: $p$, shape `(K,)`, $K \ge 2$.
        examples: $N$.

    Raises:
        TypeError, ValueError: as `feature_counts`; a feature out of range, or only one feature.

    Source: derived here.
    """
    p, n = _checked_probabilities(probabilities), integer_at_least("examples", examples, 1)
    k = integer_at_least("feature", feature, 0)
    if len(p) < 2 or k >= len(p):
        raise ValueError(f"feature must be one of 0 to {len(p) - 1}, of at least two, got {k} of {len(p)}")
    gammaln, xlogy = scipy.special.gammaln, scipy.special.xlogy
    j = np.arange(n + 1)
    chances = np.exp(
        gammaln(n + 1) - gammaln(j + 1) - gammaln(n - j + 1) + xlogy(j, p[k]) + xlogy(n - j, 1 - p[k])
    )
    others = np.delete(p, k) / (1 - p[k])
    rest = n - j
    top = rest**2 + rest * (1 + (rest - 1) * np.sum(others**2))
    away = np.exp(-float(gap))
    # both sides times e^(−2δ), which is finite for every gap ≥ 0; the term of j = 0 does not depend on the gap
    shares = np.where(j == 0, top / n**2, top * away**2 / (np.maximum(j, 1) + rest * away) ** 2)
    return float(chances @ shares / 2)


def least_losses(probabilities: Sequence[Number], examples: int) -> np.ndarray:
    r"""Return the limit of every $L_k$ for $\delta \to \infty$, when attention selects only the feature of the query.

    $\tfrac12 (1 - p_k)^N (1 + \frac1N (1 + (N - 1) \rho_k))$: the query's feature is not among the examples.
    Unequal scores of the other features can give a slightly lower loss if they are not balanced.

    Arguments and errors as in `equal_gap_loss`. Source: derived here.
    """
    size = len(_checked_probabilities(probabilities))
    return np.array([equal_gap_loss(np.inf, k, probabilities, examples) for k in range(size)])


def late_excess(time: Any, features: int) -> np.ndarray:
    r"""Return $L - L_\infty \simeq \frac{K - 1}{4 t}$, the asymptotic decay in the gradient flow of $Q$ on balanced features.

    With the gap $\delta$, $L_k - L_{k,\infty} \simeq c\, e^{-2\delta}$ for some $c(N, K)$; the flow $Q' = -\nabla L$ changes
    the diagonal and, $K - 1$ times slower, all other entries, $\delta' = \frac1K \frac K{K-1} 2 c e^{-2\delta}$, so that
    $e^{2\delta} \simeq \frac{4 c t}{K - 1}$ and $c$ cancels: for every $N$, the excess $\epsilon$ is reached after time
    $\frac{K-1}{4\epsilon}$.

    Args:
        time: flow time $t > 0$, any shape.
        features: $K \ge 2$.

    Raises:
        TypeError, ValueError: a time that is not positive, `features` below 2.

    Source: derived here; huang2024 (abstract) has near-zero error in finite time, in two phases.
    """
    times = finite_reals("time", time)
    if np.any(times <= 0):
        raise ValueError(f"time must be greater than 0, got {times.min():g}")
    return np.asarray((integer_at_least("features", features, 2) - 1) / (4 * times))


def endless_time(attention: Any, features: int) -> np.ndarray:
    r"""Return the time at which attention on the matching feature is $A$, for balanced features and $N \to \infty$.

    With one gap $\delta$ and endless prompts $A = e^\delta/(e^\delta + K - 1)$ and $L_k = \frac{K}{2 (K - 1)} (1 - A)^2$; the
    flow $Q' = -\nabla L$ from $0$ keeps one gap, with $\delta' = -L_k'(\delta)/(K - 1)$, so that $A' = \frac{K}{(K - 1)^2}
    A^2 (1 - A)^3$ and

    $$t = \frac{(K - 1)^2}K \Big[ F(A) - F\big(\tfrac1K\big) \Big], \qquad
    F(A) = -\frac1A + 3 \log \frac A{1 - A} + \frac2{1 - A} + \frac1{2 (1 - A)^2}.$$

    For $A = \frac12$ this is $K^2 + O(K \log K)$, the first phase; late, with $L \simeq \frac{K}{2 (K - 1)} (1 - A)^2$, it is
    $\frac{K - 1}{4 L}$, the inverse of `late_excess`.

    Args:
        attention: $A$, from $1/K$ to below 1, any shape.
        features: $K \ge 2$.

    Raises:
        TypeError, ValueError: numbers out of range.

    Source: derived here; huang2024 (reviews, second-hand) bounds the times of two phases by terms that grow with $K^2$.
    """
    a, k = finite_reals("attention", attention), integer_at_least("features", features, 2)
    if np.any(a < 1 / k) or np.any(a >= 1):
        raise ValueError(f"attention must be from 1/{k} to below 1, got {a.min():g} to {a.max():g}")

    def reached(at: Any) -> Any:
        return -1 / at + 3 * np.log(at / (1 - at)) + 2 / (1 - at) + 1 / (2 * (1 - at) ** 2)

    return np.asarray((k - 1) ** 2 / k * (reached(a) - reached(1 / k)))


def one_gap_time(gap: float, features: int, examples: int) -> float:
    r"""Return the time at which the gap is $\delta$ in the gradient flow of $Q$ from 0, for balanced features and any $N$.

    $$t = (K - 1) \int_0^\delta \frac{d\gamma}{-L_k'(\gamma)}, \qquad
    -L_k'(\gamma) = E_j \frac{j e^\gamma\, T_j}{(j e^\gamma + N - j)^3}, \quad
    T_j = (N - j)^2 + (N - j) \Big(1 + \frac{N - j - 1}{K - 1}\Big),$$

    the derivative of `equal_gap_loss`, with the binomial count $j$ of a feature. By Gauss's rule on unit intervals.

    Args:
        gap: $\delta > 0$.
        features: $K \ge 2$.
        examples: $N \ge 2$.

    Raises:
        TypeError, ValueError: numbers out of range.

    Source: derived here.
    """
    end, k = float(finite_positive("gap", gap)), integer_at_least("features", features, 2)
    n = integer_at_least("examples", examples, 2)
    j = np.arange(n + 1)
    chances = scipy.stats.binom.pmf(j, n, 1 / k)
    rest = n - j
    top = rest**2 + rest * (1 + (rest - 1) / (k - 1))
    points, weights = np.polynomial.legendre.leggauss(20)
    edges = np.linspace(0, end, 1 + int(np.ceil(end)))
    half = np.diff(edges)[:, None] / 2
    at = (half * (points + 1) + edges[:-1, None]).ravel()
    grown = j * np.exp(at)[:, None]
    slope = (chances * grown * top / (grown + rest) ** 3).sum(1)
    return float((k - 1) * np.sum((half * weights).ravel() / slope))


def _checked_probabilities(probabilities: Sequence[Number]) -> np.ndarray:
    p = np.array([float(finite_positive(f"probabilities[{k}]", q)) for k, q in enumerate(probabilities)])
    if abs(p.sum() - 1) > 1e-9:
        raise ValueError(f"probabilities must sum to 1, not {p.sum():g}")
    return p
