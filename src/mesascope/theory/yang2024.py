r"""The delta rule (yang2024, arXiv 2406.06484): its chunkwise form, and what it recalls of random keys.

$$M_t = M_{t-1} (I - \beta_t k_t k_t^\top) + \beta_t v_t k_t^\top, \qquad M_0 = 0, \qquad o_t = M_t q_t.$$

The chunkwise form is that of the authors' program (`fla/ops/delta_rule/naive.py` of fla-org/flash-linear-attention at commit
bc3b101), without its factor of queries. The errors of recall are derived here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy  # its parts are imported where they are first used

from ..core import finite_number, finite_reals, integer_at_least
from ..specs import Number


def chunkwise(keys: Any, values: Any, queries: Any, rates: Any, size: int) -> np.ndarray:
    r"""Return the answers $o_t$ of the delta rule, computed chunk by chunk from matrix products.

    In a chunk with the keys $K$ (rows), values $V$, queries $Q$ and $B = \mathrm{diag}(\beta)$, and the memory $M$ before it,

    $$T = (I + \mathrm{tril}(B K K^\top, -1))^{-1} B, \quad U = T V - T K M^\top, \quad
    O = Q M^\top + \mathrm{tril}(Q K^\top) U, \quad M \leftarrow M + U^\top K.$$

    The rows of $U$ are the values that a sum $\sum u_t k_t^\top$ needs to be the memory of the delta rule: the WY
    representation of a product of Householder matrices.

    Args:
        keys: shape (n, w).
        values: shape (n, m).
        queries: shape (n, w).
        rates: $\beta$, shape (n,).
        size: tokens of a chunk ≥ 1; the last one may be shorter.

    Returns:
        Shape (n, m).

    Raises:
        TypeError, ValueError: for arrays that do not fit, or size < 1.

    Source: yang2024, chunkwise parallel form, as in the authors' program.
    """
    k, v, q, beta = (
        finite_reals(name, given)
        for name, given in (("keys", keys), ("values", values), ("queries", queries), ("rates", rates))
    )
    if k.ndim != 2 or v.ndim != 2 or q.shape != k.shape or len(v) != len(k) or beta.shape != (len(k),):
        raise ValueError(
            f"keys {k.shape}, values {v.shape}, queries {q.shape} and rates {beta.shape} do not fit; "
            "use (n, w), (n, m), (n, w) and (n,)"
        )
    width, memory, answers = integer_at_least("size", size, 1), np.zeros((v.shape[1], k.shape[1])), []
    for start in range(0, len(k), width):
        part = slice(start, start + width)
        keys_now, queries_now, rate = k[part], q[part], beta[part, None]
        system = np.eye(len(rate)) + np.tril(rate * (keys_now @ keys_now.T), -1)
        written = scipy.linalg.solve_triangular(
            system, rate * (v[part] - keys_now @ memory.T), lower=True, unit_diagonal=True
        )
        answers.append(queries_now @ memory.T + np.tril(queries_now @ keys_now.T) @ written)
        memory = memory + written.T @ keys_now
    return np.concatenate(answers)


def recall_moments(dim: int, pairs: int, rate: Number) -> tuple[float, float]:
    r"""Return $E |M k_j|^2$ and $E\, v_j^\top M k_j$ for the delta rule with a constant rate, over a stored pair $j$.

    $N$ keys are independent and uniform on the unit sphere of $R^d$; values are independent of them and of each other, with
    mean 0 and $E |v|^2 = 1$. $j$ is uniform on $1 \dots N$. The error of recall with a gain $\kappa$,
    $E |\kappa M k_j - v_j|^2$, is $\kappa^2$ times the first, minus $2 \kappa$ times the second, plus 1.

    Given $k_j$ the second moment of the memory is $E M^\top M = p\, k_j k_j^\top + q (I - k_j k_j^\top)$, and
    $E\, v_j^\top M = r k_j^\top$. Every later pair maps $p$ to $p (1 - 2\beta/d) + \beta^2 (2p + p + (d-1) q)/(d (d + 2)) +
    \beta^2/d$, $q$ likewise, and $r$ to $r (1 - \beta/d)$; before pair $j$ is written, $p = q$.

    Args:
        dim: $d \ge 1$.
        pairs: $N \ge 1$.
        rate: $\beta$.

    Raises:
        TypeError, ValueError: for other values.
    """
    d, count = integer_at_least("dim", dim, 1), integer_at_least("pairs", pairs, 1)
    beta = float(finite_number("rate", rate))
    along, across, product, before = np.zeros((4, count))  # before: p = q without pair j
    for now in range(count):
        along, across = _later_pair(along, across, beta, d)
        product = product * (1 - beta / d)
        along[now], across[now] = (1 - beta) ** 2 * before[now] + beta**2, before[now]
        product[now] = beta
        before = _later_pair(before, before, beta, d)[0]
    return float(along.mean()), float(product.mean())


def _later_pair(along: np.ndarray, across: np.ndarray, beta: float, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Return p and q after one more pair."""
    trace = along + (d - 1) * across
    first, second = (
        one * (1 - 2 * beta / d) + beta**2 * ((2 * one + trace) / (d * (d + 2)) + 1 / d)
        for one in (along, across)
    )
    return first, second


def sum_recall_moments(dim: int, pairs: int) -> tuple[float, float]:
    r"""Return the same two for linear attention, $M = \sum_i v_i k_i^\top$: $1 + (N - 1)/d$ and 1.

    Args:
        dim: $d \ge 1$.
        pairs: $N \ge 1$.

    Raises:
        TypeError, ValueError: for other values.
    """
    d, count = integer_at_least("dim", dim, 1), integer_at_least("pairs", pairs, 1)
    return 1 + (count - 1) / d, 1.0


def recall_error(moments: tuple[float, float], gain: Number | None = None) -> float:
    r"""Return $E |\kappa M k_j - v_j|^2$, by default with the gain that is best.

    Args:
        moments: of `recall_moments` or `sum_recall_moments`.
        gain: $\kappa$.

    Raises:
        TypeError, ValueError: the gain is not a finite number.
    """
    square, product = moments
    if gain is None:
        return 1 - product**2 / square
    kappa = float(finite_number("gain", gain))
    return kappa**2 * square - 2 * kappa * product + 1


def least_recall_error(dim: int, pairs: int) -> float:
    r"""Return the error of recall of least squares, $\max(0, 1 - d/N)$, below which no matrix gets.

    The $N$ values are replaced by their projection on the row space of the keys, of dimension $\min(d, N)$.

    Args:
        dim: $d \ge 1$.
        pairs: $N \ge 1$.

    Raises:
        TypeError, ValueError: for other values.
    """
    d, count = integer_at_least("dim", dim, 1), integer_at_least("pairs", pairs, 1)
    return max(0.0, 1 - d / count)
