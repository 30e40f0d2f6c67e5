r"""Estimators for prompts whose tasks come from a finite pool (raventos2023, arXiv 2306.15063).

Setting: $y_k = w^\top x_k + N(0, \sigma^2)$ with $x_k \sim N(0, I_D)$ for $k = 1 \dots K$, and a model predicts every $y_k$
from $x_1, y_1, \dots, x_{k-1}, y_{k-1}, x_k$. The task $w$ is one of a pool $w^{(1)} \dots w^{(M)}$ with equal probabilities,
or new: $w \sim N(0, I_D)$. The best estimator of either law of tasks is the posterior mean. (Elsewhere in this package K is the
size of the pool, and N + 1 the number of pairs.)
"""

from typing import Any

import numpy as np

from ..core import finite_positive, finite_reals, integer_at_least
from ..specs import Number

_AT_ONCE = 2**22  # numbers in one piece of prompts, examples and tasks: some 200 MB


def dmmse(tasks: Any, x: Any, y: Any, noise_variance: Number) -> np.ndarray:
    r"""Return $\hat y_k^{dMMSE}$, the best predictions for tasks of the pool.

    $$\hat w_k = \frac{\sum_i w^{(i)} \exp\bigl(-\frac1{2\sigma^2} \sum_{j < k} (y_j - w^{(i)\top} x_j)^2\bigr)}
    {\sum_i \exp\bigl(-\frac1{2\sigma^2} \sum_{j < k} (y_j - w^{(i)\top} x_j)^2\bigr)}, \qquad \hat y_k = \hat w_k^\top x_k.$$

    $\hat w_1$ is the mean of the pool. Its memory does not grow with the pool: tasks are summed in pieces.

    Args:
        tasks: $w^{(1)} \dots w^{(M)}$, shape (M, D).
        x: inputs, shape (…, K, D).
        y: labels, shape (…, K); the last one is not used.
        noise_variance: $\sigma^2 > 0$.

    Returns:
        $\hat y_1 \dots \hat y_K$, shape (…, K).

    Raises:
        TypeError, ValueError: arrays that are not real and finite or do not fit; a variance that is not positive.

    Source: raventos2023, equation (2).
    """
    pool, (x, y) = finite_reals("tasks", tasks), _prompts(x, y)
    if pool.ndim != 2 or not len(pool) or pool.shape[1] != x.shape[-1]:
        raise ValueError(f"tasks must have shape (M, {x.shape[-1]}), a row for each task, got {pool.shape}")
    variance = _positive(noise_variance)
    least, total, weighted = np.full(y.shape, np.inf), np.zeros(y.shape), np.zeros(y.shape)
    size = max(_AT_ONCE // max(y.size, 1), 1)
    for start in range(0, len(pool), size):
        answers = x @ pool[start : start + size].T  # (…, K, tasks)
        before = _sums_before((y[..., None] - answers) ** 2, -2)
        new = np.minimum(least, before.min(-1))
        scores = np.exp((new[..., None] - before) / (2 * variance))
        kept = np.exp((new - least) / (2 * variance))  # of the sums so far, which were relative to `least`
        total, weighted, least = (
            total * kept + scores.sum(-1),
            weighted * kept + (scores * answers).sum(-1),
            new,
        )
    return np.asarray(weighted / total)


def ridge(x: Any, y: Any, noise_variance: Number) -> np.ndarray:
    r"""Return $\hat y_k^{Ridge}$, the best predictions for new tasks $w \sim N(0, I)$.

    $$\hat w_k = (X^\top X + \sigma^2 I)^{-1} X^\top y, \qquad \hat y_k = \hat w_k^\top x_k,$$

    with the rows $x_1 \dots x_{k-1}$ of $X$; $\hat w_1 = 0$.

    Args:
        x: as for `dmmse`.
        y: as for `dmmse`.
        noise_variance: $\sigma^2 > 0$.

    Returns:
        $\hat y_1 \dots \hat y_K$, shape (…, K).

    Raises:
        TypeError, ValueError: as `dmmse`.

    Source: raventos2023, equation (3).
    """
    x, y = _prompts(x, y)
    variance = _positive(noise_variance)
    seen = _sums_before(x[..., :, None] * x[..., None, :], -3)
    read = _sums_before(y[..., None] * x, -2)
    weights = np.linalg.solve(seen + variance * np.eye(x.shape[-1]), read[..., None])[..., 0]
    return np.asarray((weights * x).sum(-1))


def distance(first: Any, second: Any, dim: int) -> np.ndarray:
    r"""Return $\Delta = \frac1{K D} \sum_k (\hat y_k - \hat y'_k)^2$ of every prompt, the paper's distance of two models.

    Args:
        first: predictions $\hat y_1 \dots \hat y_K$, shape (…, K).
        second: those of the other model, or the labels, which gives the normalized loss of equation (1).
        dim: $D \ge 1$.

    Returns:
        Shape (…,); its mean over prompts is $\Delta$ of the law that they were drawn from.

    Raises:
        TypeError, ValueError: arrays that are not real and finite or of different shapes.

    Source: raventos2023, equation (4).
    """
    one, other = finite_reals("first", first), finite_reals("second", second)
    if one.ndim < 1 or not one.shape[-1]:
        raise ValueError(f"first must have shape (…, K), K ≥ 1, got {one.shape}")
    if one.shape != other.shape:
        raise ValueError(f"second must have the shape {one.shape} of first, got {other.shape}")
    return np.asarray(((one - other) ** 2).mean(-1) / integer_at_least("dim", dim, 1))


def crossing_size(sizes: Any, first: Any, second: Any) -> float:
    r"""Return the size of the pool from which on `second` is below `first`.

    With $\delta_i$, `second` minus `first` at the size $M_i$, and the last $i$ at which it is above 0,

    $$\log M = \log M_i + \frac{\delta_i}{\delta_i - \delta_{i+1}} (\log M_{i+1} - \log M_i).$$

    With $\Delta_{PT,dMMSE}$ as `first` and $\Delta_{PT,Ridge}$ as `second`, it is the size at which a model is as near to one
    estimator as to the other. With $\Delta_{PT,Ridge}$ on new tasks of models that were trained on a number of prompts as
    `first`, and of models that were trained on twice as many as `second`, it is the paper's *task diversity threshold*, beyond
    which more training brings a model nearer to ridge.

    Args:
        sizes: $M_1 \dots M_S > 0$, increasing, shape (S,), S ≥ 2.
        first: shape (S,).
        second: shape (S,).

    Returns:
        $M$.

    Raises:
        TypeError, ValueError: arrays that are not real and finite or do not fit; sizes that are not positive or do not
            increase; `second` is nowhere above `first`, or is above it at the largest size.

    Source: raventos2023, section 3.1, where the threshold is read off figures 2 and 3; the interpolation is ours.
    """
    m, one, other = (
        finite_reals(name, value) for name, value in (("sizes", sizes), ("first", first), ("second", second))
    )
    if m.ndim != 1 or len(m) < 2 or one.shape != m.shape or other.shape != m.shape:
        raise ValueError(
            f"sizes, first and second must have one shape (S,), S ≥ 2, got {m.shape}, {one.shape} and {other.shape}"
        )
    if m[0] <= 0 or (np.diff(m) <= 0).any():
        raise ValueError(f"sizes must be positive and increase, got {m.tolist()}")
    above = other - one
    places = np.flatnonzero(above > 0)
    if not len(places):
        raise ValueError(
            f"second is nowhere above first: the crossing lies below the smallest size, {m[0]:g}; add smaller sizes"
        )
    last = places[-1]
    if last == len(m) - 1:
        raise ValueError(
            f"second is above first at the largest size, {m[-1]:g}: the crossing lies above it; add larger sizes"
        )
    share = above[last] / (above[last] - above[last + 1])
    return float(m[last] * (m[last + 1] / m[last]) ** share)


def _sums_before(values: np.ndarray, axis: int) -> np.ndarray:
    """The sums of all entries before each one; nothing is subtracted, which would lose digits."""
    count = values.shape[axis]
    sums = np.cumsum(np.take(values, range(count - 1), axis), axis)
    return np.concatenate([np.zeros_like(np.take(values, [0], axis)), sums], axis)


def _positive(noise_variance: Number) -> float:
    try:
        return float(finite_positive("noise_variance", noise_variance))
    except ValueError as error:
        raise ValueError(f"{error}; give a small one, such as 1e-6, for data without noise") from None


def _prompts(x: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    x, y = finite_reals("x", x), finite_reals("y", y)
    if x.ndim < 2 or not all(x.shape[-2:]) or y.shape != x.shape[:-1]:
        raise ValueError(
            f"x must have shape (…, K, D) with K, D ≥ 1, and y (…, K), got {x.shape} and {y.shape}"
        )
    return x, y
