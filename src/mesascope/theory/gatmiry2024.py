r"""One looped layer of linear attention: gradient descent with one preconditioner (gatmiry2024, arXiv 2410.08292).

Setting: prompts with $x_i \sim N(0, \Sigma)$, $w \sim N(0, \Sigma^{-1})$, $y_i = w^\top x_i$, $n$ examples and a query
$(x_q, 0)$; one layer with weights $A$, shape `(d, d)`, and $u$, shape `(d,)`, is applied $L$ times, and the prediction is
minus the label entry of the query. With $S = \frac1n \sum_i x_i x_i^\top$ the loss is

$$L(A, u) = E (\hat y - y)^2 = E \|(I - M \hat S)^L\|_F^2 + E \|((I - M \hat S)^L - I)\, \Sigma^{1/2} u\|^2, \qquad
M = \Sigma^{1/2} A \Sigma^{1/2}, \quad \hat S = \Sigma^{-1/2} S \Sigma^{-1/2},$$

without the factor ½ of other losses of this package. $n \hat S$ is a Wishart matrix for every $\Sigma$; the second term
is minimal at $u = 0$ for every $A$ (derived here).
"""

from fractions import Fraction
from math import comb
from typing import Any

import numpy as np
import scipy  # its parts are imported where they are first used: half a second, which few programs need

from ..core import (
    covariance_matrix,
    exact,
    finite_number,
    finite_positive,
    finite_reals,
    integer_at_least,
    mean_of_polynomial,
    square_matrix,
)
from ._construction import Construction
from .zhang2024 import layer


def looped_layer(preconditioner: Any, direction: Any = None) -> Construction:
    r"""Return the layer whose loops are steps of preconditioned gradient descent.

    $Q = -\mathrm{diag}(A^\top, 0)$ and $P$ with the last row $(u^\top, 1)$ and zeros elsewhere, with a residual connection,
    a sum over the $n$ examples only and $\rho = n$: label entries change by $y_j \leftarrow y_j - x_j^\top A \frac1n \sum_i
    x_i (y_i + u^\top x_i)$, inputs do not change. At $u = 0$ a loop is $w \leftarrow w - A \nabla \frac1{2n} \sum_i
    (w^\top x_i - y_i)^2$ from $w = 0$.

    Args:
        preconditioner: $A$, shape `(d, d)`, symmetric or not.
        direction: $u$, shape `(d,)`; by default 0.

    Returns:
        Weights of one layer, shape `(1, d + 1, d + 1)`.

    Raises:
        TypeError, ValueError: arrays that are not real and finite, or of another shape.

    Source: gatmiry2024, section 2 (looped linear attention with shared $A$, $u$); the transpose is for asymmetric $A$.
    """
    a = square_matrix("preconditioner", preconditioner)
    step = layer(-a.T, 1)
    step.w_pv[0, -1, :-1] = _direction(direction, len(a))
    return step


def error_after_loops(
    preconditioner: Any, moments: Any, weights: Any, loops: int, direction: Any = None
) -> np.ndarray:
    r"""Return the error $v_L$ of $L$ loops of `looped_layer`: $y - \hat y = x_q^\top v_L$.

    A loop is $v \leftarrow v - A S (v + u)$, with $v_0 = w$, so that $v_L = (I - A S)^L (w + u) - u$.

    Args:
        preconditioner: $A$, shape `(d, d)`.
        moments: $S = \frac1n \sum_i x_i x_i^\top$, shape `(…, d, d)`.
        weights: $w$, shape `(…, d)`.
        loops: $L \ge 0$.
        direction: $u$, shape `(d,)`; by default 0.

    Returns:
        Shape `(…, d)`.

    Raises:
        TypeError, ValueError: arrays that are not real and finite, or of other shapes; loops that are not an integer ≥ 0.

    Source: derived here, for gatmiry2024, section 2.
    """
    a, count = square_matrix("preconditioner", preconditioner), integer_at_least("loops", loops, 0)
    dim = len(a)
    s, w = finite_reals("moments", moments), finite_reals("weights", weights)
    u = _direction(direction, dim)
    if s.shape[-2:] != (dim, dim) or w.shape[-1:] != (dim,):
        raise ValueError(
            f"moments must have shape (…, {dim}, {dim}) and weights (…, {dim}), got {s.shape} and {w.shape}"
        )
    contraction = np.linalg.matrix_power(np.eye(dim) - a @ s, count)
    return np.asarray(np.einsum("...ij,...j->...i", contraction, w + u) - u)


def one_loop_loss(preconditioner: Any, covariance: Any, examples: int, direction: Any = None) -> float:
    r"""Return $L(A, u)$ for one loop.

    $$d - 2\, \mathrm{tr} M + \left(1 + \tfrac{d + 1}n\right) \|M\|_F^2 + \left(1 + \tfrac1n\right) \|M v\|^2 + \tfrac1n
    \|M\|_F^2 \|v\|^2, \qquad v = \Sigma^{1/2} u,$$

    from $E \hat S B \hat S = (1 + \frac1n) B + \frac{\mathrm{tr} B}n I$ for symmetric $B$.

    Args:
        preconditioner: $A$, shape `(d, d)`.
        covariance: $\Sigma$, symmetric positive definite, shape `(d, d)`.
        examples: $n \ge 1$.
        direction: $u$, shape `(d,)`; by default 0.

    Raises:
        TypeError, ValueError: arrays that are not real and finite, of another shape, or a $\Sigma$ that is not positive
            definite; `examples` is not an integer ≥ 1.

    Source: derived here, for the minimiser of gatmiry2024.
    """
    sigma, n = covariance_matrix("covariance", covariance), integer_at_least("examples", examples, 1)
    a = square_matrix("preconditioner", preconditioner)
    if a.shape != sigma.shape:
        raise ValueError(f"preconditioner must have the shape {sigma.shape} of the covariance, got {a.shape}")
    values, vectors = np.linalg.eigh(sigma)
    root = (vectors * values**0.5) @ vectors.T
    m, v = root @ a @ root, root @ _direction(direction, len(a))
    size = float(np.sum(m**2))
    first = len(a) - 2 * float(np.trace(m)) + (1 + (len(a) + 1) / n) * size
    return first + (1 + 1 / n) * float(np.sum((m @ v) ** 2)) + size * float(v @ v) / n


def one_loop_minimum(dim: int, examples: int) -> tuple[Fraction, Fraction]:
    r"""Return $a = \frac n{n + d + 1}$ of the best $A = a \Sigma^{-1}$ for one loop, and its loss $\frac{d(d+1)}{n+d+1}$.

    `one_loop_loss` is strictly convex in $A$ at $u = 0$, and for $A \ne 0$ it is larger for every other $u$.

    Raises:
        TypeError, ValueError: a size that is not an integer ≥ 1.

    Source: derived here, for the minimiser of gatmiry2024.
    """
    d, n = integer_at_least("dim", dim, 1), integer_at_least("examples", examples, 1)
    return Fraction(n, n + d + 1), Fraction(d * (d + 1), n + d + 1)


def multiple_loss(multiple: float, dim: int, examples: int, loops: int) -> float:
    r"""Return $L(a \Sigma^{-1}, 0) = E \sum_k (1 - a s_k)^{2L}$, with the eigenvalues $s_k$ of $\hat S$, for every $\Sigma$.

    Exact up to the rounding of the result, at every depth: the polynomial is summed in rational numbers.

    Args:
        multiple: $a$, finite.
        dim: $d \ge 1$.
        examples: $n \ge 1$.
        loops: $L \ge 1$.

    Raises:
        TypeError, ValueError: numbers out of range.

    Source: derived here, for gatmiry2024.
    """
    a, n, count = _numbers(multiple, examples, loops)
    return float(mean_of_polynomial(_power(a, 2 * count), dim, n))


def multiple_slope(multiple: float, dim: int, examples: int, loops: int) -> float:
    r"""Return $\frac{d}{da} L(a \Sigma^{-1}, 0) = -2L\, E \sum_k s_k (1 - a s_k)^{2L - 1}$.

    By symmetry $\nabla_M L$ is the multiple slope$/d$ of $I$ there: $\|\nabla_M L\|_F^2 = \mathrm{slope}^2/d$.

    Arguments, errors and source as in `multiple_loss`.
    """
    a, n, count = _numbers(multiple, examples, loops)
    return float(-2 * count * mean_of_polynomial([0, *_power(a, 2 * count - 1)], dim, n))


def best_multiple(dim: int, examples: int, loops: int) -> float:
    r"""Return the $a$ that minimizes `multiple_loss`, the zero of its increasing derivative.

    The whole gradient $\nabla_A L$ is zero at $A = a \Sigma^{-1}$, $u = 0$, not only its component along multiples.
    $a \to 1$ for $n \to \infty$.

    Raises:
        TypeError, ValueError: numbers out of range.

    Source: derived here, for the minimiser of gatmiry2024.
    """
    end = 1.0
    while multiple_slope(end, dim, examples, loops) < 0:
        end *= 2
    found = scipy.optimize.brentq(lambda a: multiple_slope(a, dim, examples, loops), 0.0, end, xtol=1e-12)
    return float(found)


def loss_and_gradient(preconditioner: Any, moments: Any, loops: int) -> tuple[float, np.ndarray]:
    r"""Return the mean of $\|R^L\|_F^2$, $R = I - M \hat S$, over given $\hat S$, and its gradient in $M$.

    $$\nabla_M \|R^L\|_F^2 = -2 \sum_{j < L} (R^j)^\top R^L (R^{L - 1 - j})^\top \hat S.$$

    Args:
        preconditioner: $M$, which is $A$ for $\Sigma = I$, shape `(d, d)`; $\nabla_A = \Sigma^{1/2} \nabla_M \Sigma^{1/2}$.
        moments: $\hat S$ of sampled prompts, shape `(prompts, d, d)`.
        loops: $L \ge 1$.

    Raises:
        TypeError, ValueError: arrays that are not real and finite, or of other shapes; loops that are not an integer ≥ 1.

    Source: derived here, for gatmiry2024, the gradient in its inequality on gradient dominance.
    """
    m, s = square_matrix("preconditioner", preconditioner), finite_reals("moments", moments)
    count = integer_at_least("loops", loops, 1)
    if s.ndim != 3 or s.shape[1:] != m.shape or not len(s):
        raise ValueError(f"moments must have shape (prompts, {len(m)}, {len(m)}), got {s.shape}")
    error = np.eye(len(m)) - m @ s
    powers = [np.broadcast_to(np.eye(len(m)), s.shape)]
    for _ in range(count):
        powers.append(powers[-1] @ error)
    transposed = [np.swapaxes(power, 1, 2) for power in powers]
    product_rule = sum(transposed[j] @ powers[count] @ transposed[count - 1 - j] for j in range(count))
    loss = float(np.mean(np.sum(powers[count] ** 2, (1, 2))))
    return loss, np.asarray(-2 * np.mean(product_rule @ s, 0))


def dominated_time(loss: Any, start: float, loops: int) -> np.ndarray:
    r"""Return the longest time in which a flow whose gradient dominates its loss comes from one loss to a lower one.

    From $\|\nabla \ell\|^2 \ge \frac1{16} \ell^{(2L - 1)/L}$ along $A' = -\nabla \ell$ follows $\ell' \le -\frac1{16}
    \ell^{2 - 1/L}$, so that $\ell$ is reached at the latest after

    $$16 \log \frac{\ell_0}{\ell} \quad (L = 1), \qquad
    \frac{16 L}{L - 1} \Big( \ell^{-(L - 1)/L} - \ell_0^{-(L - 1)/L} \Big) \quad (L > 1).$$

    Args:
        loss: $\ell$, positive and at most $\ell_0$, any shape.
        start: $\ell_0 > 0$.
        loops: $L \ge 1$.

    Raises:
        TypeError, ValueError: numbers out of range.

    Source: derived here, from the inequality of gatmiry2024 on gradient dominance (Theorem 3.4 of arXiv v1, second-hand).
    """
    losses, first = finite_reals("loss", loss), float(finite_positive("start", start))
    count = integer_at_least("loops", loops, 1)
    if np.any(losses <= 0) or np.any(losses > first):
        raise ValueError(
            f"loss must be between 0 and start, {first:g}, got {losses.min():g} to {losses.max():g}"
        )
    if count == 1:
        return np.asarray(16 * np.log(first / losses))
    power = (count - 1) / count
    return np.asarray(16 / power * (losses**-power - first**-power))


def _direction(direction: Any, dim: int) -> np.ndarray:
    u = np.zeros(dim) if direction is None else finite_reals("direction", direction)
    if u.shape != (dim,):
        raise ValueError(f"direction must have shape ({dim},), got {u.shape}")
    return u


def _numbers(multiple: Any, examples: int, loops: int) -> tuple[Fraction, int, int]:
    n, count = integer_at_least("examples", examples, 1), integer_at_least("loops", loops, 1)
    return exact(finite_number("multiple", multiple)), n, count


def _power(multiple: Fraction, count: int) -> list[Fraction]:
    """The coefficients of (1 − a s)^count."""
    return [comb(count, k) * (-multiple) ** k for k in range(count + 1)]
