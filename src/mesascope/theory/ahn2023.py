r"""Preconditioned gradient descent in the forward pass of linear attention (ahn2023, arXiv 2306.00297).

Setting: tokens $(x_i, y_i) \in \mathbb{R}^{d+1}$, $i = 1, \dots, n$, and a query $(x_{n+1}, 0)$ are the columns of
$Z$; layer $\ell$ is $Z \leftarrow Z + \frac1n P_\ell Z M (Z^\top Q_\ell Z)$ with $M = \mathrm{diag}(I_n, 0)$, that
is $W^{PV} = P_\ell$, $W^{KQ} = Q_\ell$, a sum over the $n$ examples only and $\rho = n$. The prediction is minus
the last entry of the query token, and $R(w) = \frac1{2n} \sum_i (w^\top x_i - y_i)^2$.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from ..core import (
    covariance_matrix,
    exact,
    finite_number,
    finite_reals,
    integer_at_least,
    mean_of_polynomial,
)
from ._construction import Construction, Matrices, construction


@construction("preconditioned", preconditioners=[[[0.1]]])
def preconditioned_gradient_descent(
    preconditioners: Matrices, input_updates: Matrices | None = None
) -> Construction:
    r"""Return layers that are steps of preconditioned gradient descent from $w_0 = 0$.

    $w_{\ell+1} = w_\ell - A_\ell \nabla R(w_\ell)$, and with input updates $B_\ell \ne 0$

    $$x_j \leftarrow (I - B_\ell S A_\ell^\top) x_j, \qquad
    y_j \leftarrow y_j - \frac1n \sum_i y_i x_i^\top A_\ell^\top x_j, \qquad S = \frac1n \sum_{i \le n} x_i x_i^\top$$

    for examples and query; the right sides and $S$ are evaluated before the layer. $Q_\ell =
    -\mathrm{diag}(A_\ell^\top, 0)$ computes $-x_i^\top A_\ell^\top x_j$ and $P_\ell = \mathrm{diag}(B_\ell, 1)$ adds
    both sums. Labels are the residuals $y_j - w_\ell^\top x_j$, whose gradient step is $A_\ell \frac1n \sum_i y_i
    x_i$. The paper's $A_\ell$ is the transpose of this one, the same for symmetric matrices.

    Args:
        preconditioners: $A_0, \dots, A_{L-1}$, shape `(L, d, d)`.
        input_updates: $B_0, \dots, B_{L-1}$, shape `(L, d, d)`; by default all 0.

    Returns:
        Weights of shape `(L, 1, d + 1, d + 1)`.

    Raises:
        TypeError, ValueError: arrays that are not real and finite, or of another shape.

    Source: ahn2023, Lemma 1; for $B_\ell \ne 0$ its deep transformers that also update the inputs.
    """
    a = finite_reals("preconditioners", preconditioners)
    if a.ndim != 3 or a.shape[1] != a.shape[2] or a.size == 0:
        raise ValueError(
            f"preconditioners must have shape (layers, d, d), got {a.shape}; write A[None] for one layer"
        )
    b = np.zeros_like(a) if input_updates is None else finite_reals("input_updates", input_updates)
    if b.shape != a.shape:
        raise ValueError(f"input_updates must have the shape {a.shape} of the preconditioners, got {b.shape}")
    layers, dim, _ = a.shape
    w_kq, w_pv = np.zeros((2, layers, 1, dim + 1, dim + 1))
    w_kq[:, 0, :dim, :dim] = -np.swapaxes(a, 1, 2)
    w_pv[:, 0, :dim, :dim], w_pv[:, 0, dim, dim] = b, 1.0
    return Construction(w_kq, w_pv)


def one_layer_preconditioner(covariance: Any, examples: int) -> np.ndarray:
    r"""Return the preconditioner of the best single layer, the global minimiser of its population loss.

    $$A_* = \left( \left(1 + \tfrac1n\right) \Sigma + \tfrac{\mathrm{tr} \Sigma}n I \right)^{-1}
    = U \mathrm{diag}_i \left( \frac1{(1 + \frac1n) \lambda_i + \frac1n \sum_k \lambda_k} \right) U^\top$$

    for noiseless labels $y_i = w^\top x_i$, $x_i \sim N(0, \Sigma)$, $\Sigma = U \mathrm{diag}(\lambda) U^\top$, and
    $E w w^\top = I$. One step predicts with $\hat w = A S w$, so that the loss $\frac12 E\, \mathrm{tr}\, \Sigma (A S
    - I)(A S - I)^\top$ is minimal where $A\, E S^2 = E S$: $E S = \Sigma$ and $E S^2 = (1 + \frac1n) \Sigma^2 +
    \frac{\mathrm{tr} \Sigma}n \Sigma$. For $\Sigma = I$ it is $\frac n{n+d+1} I$.

    Args:
        covariance: $\Sigma$, symmetric positive definite, shape `(d, d)`.
        examples: $n \ge 1$.

    Returns:
        $A_*$, shape `(d, d)`; `preconditioned_gradient_descent(A[None])` is the layer.

    Raises:
        TypeError, ValueError: `covariance` is not a symmetric positive definite matrix, `examples` is not an integer ≥ 1.

    Source: ahn2023, Theorem 1 ($Q_0 = -\mathrm{diag}(A_*, 0)$, up to a factor moved to $P_0$).
    """
    sigma, n = covariance_matrix("covariance", covariance), integer_at_least("examples", examples, 1)
    values, vectors = np.linalg.eigh(sigma)
    return (vectors / ((1 + 1 / n) * values + values.sum() / n)) @ vectors.T


def one_layer_loss(preconditioner: Any, covariance: Any, examples: int) -> float:
    r"""Return the population loss of one preconditioned step from $w = 0$.

    $$\tfrac12 E (\hat y - y)^2 = \tfrac12 \mathrm{tr}\, \Sigma A\, E S^2 A^\top - \mathrm{tr}\, \Sigma A \Sigma + \tfrac12
    \mathrm{tr}\, \Sigma, \qquad E S^2 = (1 + \tfrac1n) \Sigma^2 + \tfrac{\mathrm{tr} \Sigma}n \Sigma,$$

    on the prompts of `one_layer_preconditioner`, which minimizes it.

    Args:
        preconditioner: $A$, shape `(d, d)`.
        covariance: $\Sigma$, symmetric positive definite, shape `(d, d)`.
        examples: $n \ge 1$.

    Raises:
        TypeError, ValueError: as `one_layer_preconditioner`; a preconditioner of another shape, or not real and finite.

    Source: derived here, for ahn2023, Theorem 1.
    """
    sigma, n = covariance_matrix("covariance", covariance), integer_at_least("examples", examples, 1)
    a = finite_reals("preconditioner", preconditioner)
    if a.shape != sigma.shape:
        raise ValueError(f"preconditioner must have the shape {sigma.shape} of the covariance, got {a.shape}")
    second = (1 + 1 / n) * sigma @ sigma + np.trace(sigma) / n * sigma
    squared = np.trace(sigma @ a @ second @ a.T)
    return float(squared / 2 - np.trace(sigma @ a @ sigma) + np.trace(sigma) / 2)


def multiples_loss(multiples: Sequence[Any], dim: int, examples: int, noise: Any = 0) -> Fraction:
    r"""Return the population loss of steps with $A_\ell = a_\ell \Sigma^{-1}$ from $w = 0$, exactly, for any number of steps.

    $$\tfrac12 E (\hat y - y)^2 = \tfrac12 E\, \mathrm{tr} \left( p(\hat S)^2 + \tfrac{\sigma^2}n g(\hat S)^2 \hat S \right) +
    \tfrac{\sigma^2}2, \qquad p(s) = \prod_\ell (1 - a_\ell s), \quad g(s) = \frac{1 - p(s)}s,$$

    for $x_i \sim N(0, \Sigma)$, $w \sim N(0, \Sigma^{-1})$ and labels $w^\top x_i + \sigma \xi_i$, that of the query included;
    $n \hat S$ is a Wishart matrix for every $\Sigma$. Numbers are taken as they are: a float is a fraction, too.

    Args:
        multiples: $a_0, \dots, a_{L-1}$, finite.
        dim: $d \ge 1$.
        examples: $n \ge 1$.
        noise: the standard deviation $\sigma$.

    Raises:
        TypeError, ValueError: numbers out of range, or no step.

    Source: derived here, for ahn2023, Theorem 3.
    """
    if not len(multiples):
        raise ValueError("multiples must have at least one entry, got none")
    n, variance = integer_at_least("examples", examples, 1), exact(finite_number("noise", noise)) ** 2
    zero, left = Fraction(0), [Fraction(1)]
    for i, multiple in enumerate(multiples):
        a = exact(finite_number(f"multiples[{i}]", multiple))
        left = [one - a * before for one, before in zip([*left, zero], [zero, *left], strict=True)]
    learned = [-c for c in left[1:]]  # g
    task = mean_of_polynomial(_square(left), dim, n)
    return (task + variance / n * mean_of_polynomial([0, *_square(learned)], dim, n) + variance) / 2


def _square(coefficients: Sequence[Fraction]) -> list[Fraction]:
    """The coefficients of the square of a polynomial."""
    square = [Fraction(0)] * (2 * len(coefficients) - 1)
    for i, one in enumerate(coefficients):
        for j, other in enumerate(coefficients):
            square[i + j] += one * other
    return square
