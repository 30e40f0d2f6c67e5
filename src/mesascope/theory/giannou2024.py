r"""Newton's iteration in the forward pass of linear attention (giannou2024, arXiv 2403.03183).

Newton's iteration for the inverse of a matrix is $X_{k+1} = X_k (2I - A X_k)$. It squares the error, $I - A X_{k+1}
= (I - A X_k)^2$, and converges to $A^{-1}$ whenever the spectral radius of $I - A X_0$ is below 1.

One layer of linear attention is exactly one step. Token $j$ of $d$ contains row $j$ of $A$, column $j$ of $X$ and the
unit vector $e_j$, so that one bilinear form of tokens $i$ and $j$, $e_i^\top e_j - A_{i\cdot} X_{\cdot j}$, is entry
$(i, j)$ of $I - AX$. (The paper uses two layers per step, and one for symmetric $A$, Lemma 4.1. Here one layer is enough
for every $A$; a version with two layers, which stores $I - AX$ in the tokens, is given, too.)
All constructions here have $\rho = 1$.
"""

import math
from typing import Any

import numpy as np

from ..core import finite_positive, finite_reals, integer_at_least
from ..specs import Number
from ._construction import Construction, stack_layers


def newton_step(dim: int) -> Construction:
    r"""Return one layer that is one Newton step on the tokens of `newton_tokens`, $X \leftarrow X (2I - AX)$.

    $W^{KQ}$ has $I$ in block (e, e) and $-I$ in block (row of $A$, column of $X$), so that $z_i^\top W^{KQ} z_j =
    (I - AX)_{ij}$; $W^{PV}$ has $I$ in block ($X$, $X$), so that $\sum_i X_{\cdot i} (I - AX)_{ij}$ is added to column $j$
    of $X$. The sum runs over all tokens, $\rho = 1$. All steps have the same layer.

    Args:
        dim: $d \ge 1$.

    Returns:
        Weights of shape `(1, 3d, 3d)`.

    Raises:
        TypeError, ValueError: `dim` is not an integer ≥ 1.

    Source: derived here; giannou2024 (arXiv v1), Lemma 4.1, uses two layers per step.
    """
    d = integer_at_least("dim", dim, 1)
    return _newton(d, 3 * d)


def newton_step_in_two_layers(dim: int) -> Construction:
    r"""Return two layers that together are one Newton step, with $I - AX$ stored between them.

    Tokens are those of `newton_tokens` with $d$ more entries, the workspace, which is initially 0. The first layer writes
    column $j$ of $I - AX$ into the workspace $r_j$ of token $j$, $r_j \leftarrow r_j + \sum_i e_i (I - AX)_{ij}$. The second
    adds $\sum_i X_{\cdot i} (e_i^\top r_j)$ to column $j$ of $X$ and subtracts $\sum_i e_i (e_i^\top r_j) = r_j$ from the
    workspace, which is then 0 for the next step. The sum runs over all tokens, $\rho = 1$.

    Args:
        dim: $d \ge 1$.

    Returns:
        Weights of shape `(2, 1, 4d, 4d)`.

    Raises:
        TypeError, ValueError: `dim` is not an integer ≥ 1.

    Source: derived here, for the two layers of giannou2024.
    """
    d = integer_at_least("dim", dim, 1)
    column, unit, work = (slice(k * d, (k + 1) * d) for k in (1, 2, 3))
    one = _newton(d, 4 * d)
    one.w_pv[0, column, column], one.w_pv[0, work, unit] = 0.0, np.eye(d)
    w_kq, w_pv = np.zeros((2, 1, 4 * d, 4 * d))
    w_kq[0, unit, work] = w_pv[0, column, column] = np.eye(d)
    w_pv[0, work, unit] = -np.eye(d)
    return stack_layers([one, Construction(w_kq, w_pv)])


def newton_tokens(matrix: Any, start: Any) -> np.ndarray:
    r"""Return the tokens on which `newton_step` works.

    Token $j$ is (row $j$ of $A$, column $j$ of $X_0$, $e_j$).

    Args:
        matrix: $A$, shape `(…, d, d)`.
        start: $X_0$, shape `(…, d, d)`; `newton_start(A)` always converges.

    Returns:
        Shape `(…, d, 3d)`.

    Raises:
        TypeError, ValueError: matrices that are not real and finite, not square, or of different shapes.
    """
    a, x = _square("matrix", matrix), _square("start", start)
    if a.shape != x.shape:
        raise ValueError(f"start must have the shape {a.shape} of the matrix, got {x.shape}")
    return np.concatenate([a, np.swapaxes(x, -1, -2), np.broadcast_to(np.eye(a.shape[-1]), a.shape)], -1)


def newton_inverse(tokens: Any) -> np.ndarray:
    r"""Return $X$ from the tokens after any number of layers: `(…, d, 3d)` → `(…, d, d)`.

    Raises:
        TypeError, ValueError: tokens that are not real and finite, or not `(…, d, 3d)`.
    """
    z = finite_reals("tokens", tokens)
    if z.ndim < 2 or z.shape[-1] != 3 * z.shape[-2]:
        raise ValueError(f"tokens must have shape (…, d, 3d) as from newton_tokens, got {z.shape}")
    dim = z.shape[-2]
    return np.swapaxes(z[..., dim : 2 * dim], -1, -2)


def newton_start(matrix: Any) -> np.ndarray:
    r"""Return an initial matrix from which Newton's iteration converges for every invertible matrix.

    $$X_0 = \frac{A^\top}{\|A\|_1 \|A\|_\infty}$$

    with the largest absolute column sum $\|A\|_1$ and row sum $\|A\|_\infty$: their product is at least $\|A\|_2^2$,
    so that the eigenvalues of $I - A X_0$ are in $[0, 1)$. For positive definite $A$, the iteration also converges from
    $\alpha I$ with $0 < \alpha < 2/\lambda_{\max}(A)$.

    Args:
        matrix: $A \ne 0$, shape `(…, d, d)`.

    Returns:
        Shape `(…, d, d)`.

    Raises:
        TypeError, ValueError: a matrix that is not real and finite, not square, or 0.
    """
    a = _square("matrix", matrix)
    bound = abs(a).sum(-2).max(-1) * abs(a).sum(-1).max(-1)
    if not np.all(bound > 0):
        raise ValueError("matrix is 0, which has no inverse; give one with a non-zero entry")
    return np.swapaxes(a, -1, -2) / bound[..., None, None]


def newton_steps_needed(condition: Number, error: Number) -> int:
    r"""Return the number of Newton steps after which $\|I - A X_k\|_2$ is at most `error`.

    $$k = \min \{ k \ge 0 : (1 - 1/\kappa)^{2^k} \le \epsilon \} \approx \log_2 \kappa + \log_2 \ln(1/\epsilon)$$

    for symmetric positive definite $A$ with condition number $\kappa$ and $X_0 = I/\lambda_{\max}$: $I - AX_k$ has the
    eigenvalues $(1 - \lambda_i/\lambda_{\max})^{2^k}$. Gradient descent, $X \leftarrow X + (I - AX)/\lambda_{\max}$, has the
    same error after at most $2^k$ steps.

    Args:
        condition: $\kappa > 1$.
        error: $\epsilon$, strictly between 0 and 1.

    Raises:
        TypeError, ValueError: an argument that is not a number, or out of range.

    Source: derived here, for giannou2024.
    """
    kappa, epsilon = float(finite_positive("condition", condition)), float(finite_positive("error", error))
    if kappa <= 1 or epsilon >= 1:
        raise ValueError(
            f"condition must be above 1 and error below 1, got {condition} and {error}: otherwise no step is needed"
        )
    return max(0, math.ceil(math.log2(math.log(epsilon) / math.log1p(-1 / kappa))))


def least_squares_by_newton(dim: int, steps: int) -> Construction:
    r"""Return layers that solve in-context least squares by Newton's iteration on the tokens of `least_squares_tokens`.

    With $S = \sum_i x_i x_i^\top$, $b = \sum_i y_i x_i$ and $X_0 = \alpha I$, the last entry of the query token becomes
    $\hat y = x_q^\top X_k b$ after $k + 2$ layers, and $X_k \to S^{-1}$. The first layer adds $\sum_i x_i x_i^\top e_j = S
    e_j$ and $\sum_i y_i x_i^\top e_j = b_j$ to workspace token $j$; $k$ layers are the steps of `newton_step` on the
    workspace, where other tokens have 0 in the blocks of $X$ and $e$; the last adds $\sum_j b_j (X_{\cdot j}^\top x_q)$ to
    the query. The sum runs over all tokens except the query, which is the last token, and $\rho = 1$.

    Args:
        dim: $d \ge 1$.
        steps: $k \ge 0$.

    Returns:
        Weights of shape `(steps + 2, 1, 3d + 1, 3d + 1)`.

    Raises:
        TypeError, ValueError: `dim` is not an integer ≥ 1, `steps` is not an integer ≥ 0.

    Source: derived here, after fu2024 and giannou2024.
    """
    d, steps = integer_at_least("dim", dim, 1), integer_at_least("steps", steps, 0)
    x, inverse, unit, y = slice(0, d), slice(d, 2 * d), slice(2 * d, 3 * d), 3 * d
    gather_kq, gather_pv, answer_kq, answer_pv = np.zeros((4, 1, 3 * d + 1, 3 * d + 1))
    gather_kq[0, x, unit] = answer_kq[0, inverse, x] = gather_pv[0, x, x] = np.eye(d)
    gather_pv[0, y, y] = answer_pv[0, y, y] = 1.0
    newton = _newton(d, 3 * d + 1)
    return stack_layers(
        [Construction(gather_kq, gather_pv), *[newton] * steps, Construction(answer_kq, answer_pv)]
    )


def least_squares_tokens(x: Any, y: Any, start: Number) -> np.ndarray:
    r"""Return the tokens on which `least_squares_by_newton` works.

    The blocks have $d, d, d$ and 1 entries: examples $(x_i, 0, 0, y_i)$, then $d$ workspace tokens $(0, \alpha e_j, e_j,
    0)$, then the query $(x_q, 0, 0, 0)$.

    Args:
        x: inputs of the $N$ examples and of the query, shape `(…, N + 1, d)`.
        y: labels of the examples, shape `(…, N)`.
        start: $\alpha > 0$; the iteration converges for $\alpha < 2/\lambda_{\max}(S)$, which $1/\sum_i |x_i|^2$ satisfies.

    Returns:
        Shape `(…, N + d + 1, 3d + 1)`.

    Raises:
        TypeError, ValueError: x or y that are not real and finite or do not fit, `start` that is not positive.
    """
    x, y = finite_reals("x", x), finite_reals("y", y)
    alpha = float(finite_positive("start", start))
    if x.ndim < 2 or x.shape[-1] == 0 or y.shape != (*x.shape[:-2], x.shape[-2] - 1):
        raise ValueError(f"x must have shape (…, N + 1, d) and y (…, N), got {x.shape} and {y.shape}")
    *lead, pairs, dim = x.shape
    examples = pairs - 1
    tokens = np.zeros((*lead, pairs + dim, 3 * dim + 1))
    tokens[..., :examples, :dim], tokens[..., -1, :dim] = x[..., :examples, :], x[..., examples, :]
    tokens[..., :examples, 3 * dim] = y
    tokens[..., examples:-1, dim : 3 * dim] = np.hstack([alpha * np.eye(dim), np.eye(dim)])
    return tokens


def _newton(dim: int, width: int) -> Construction:
    """Return one step on tokens that begin with the blocks of A, X and e; other entries do not change."""
    row, column, unit = (slice(k * dim, (k + 1) * dim) for k in range(3))
    w_kq, w_pv = np.zeros((2, 1, width, width))
    w_kq[0, unit, unit] = w_pv[0, column, column] = np.eye(dim)
    w_kq[0, row, column] = -np.eye(dim)
    return Construction(w_kq, w_pv)


def _square(name: str, value: Any) -> np.ndarray:
    matrix = finite_reals(name, value)
    if matrix.ndim < 2 or matrix.shape[-1] != matrix.shape[-2] or matrix.shape[-1] == 0:
        raise ValueError(f"{name} must have shape (…, d, d), got {matrix.shape}")
    return matrix
