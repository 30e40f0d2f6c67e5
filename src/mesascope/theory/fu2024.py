r"""Newton's iteration in context by transformers (fu2024, arXiv 2310.17086).

Setting: $y_i = w^\top x_i$, $i \le N$, and $S = \sum_i x_i x_i^\top$, $b = \sum_i y_i x_i$. Newton's iteration for
the inverse of $S$ is

$$M_0 = \alpha S, \qquad M_{k+1} = M_k (2I - S M_k), \qquad \hat w_k = M_k b,$$

and gradient descent with step $\eta$ on $\frac12 \sum_i (w^\top x_i - y_i)^2$ is $\hat w_{k+1} = \hat w_k + \eta (b -
S \hat w_k)$. Both multiply the component of the error along an eigenvector of $S$ by a function of its eigenvalue $s$.
"""

from typing import Any

import numpy as np

from ..core import finite_positive, finite_reals, integer_at_least
from ..specs import Number
from ._construction import Construction, stack_layers
from .giannou2024 import least_squares_by_newton, least_squares_tokens


def newton(dim: int, steps: int, start: Number) -> Construction:
    r"""Return layers of linear attention that predict $\hat y = x_q^\top M_k b$ on the tokens of `newton_tokens`.

    The same as `giannou2024.least_squares_by_newton`, with an initial matrix that the first layer computes: together with
    $S e_j$ and $b_j$ it writes $\alpha S e_j$ into the block of $X$ of workspace token $j$. Then $k$ layers are one
    iteration each, and the last adds $\sum_j b_j (X_{\cdot j}^\top x_q)$ to the query: $k + 2$ layers of width $3d + 1$.
    (The paper's transformers have $k + 8$ layers.) Sums run over all tokens except the query, the last token; $\rho = 1$.

    Args:
        dim: $d \ge 1$.
        steps: $k \ge 0$.
        start: $\alpha > 0$; the iteration converges for $\alpha < 2/\lambda_{\max}(S)^2$.

    Returns:
        Weights of shape `(steps + 2, 1, 3d + 1, 3d + 1)`.

    Raises:
        TypeError, ValueError: `dim` is not an integer ≥ 1, `steps` is not an integer ≥ 0, `start` is not positive.

    Source: fu2024, Theorem 5.1 states that there are such layers; these are derived here.
    """
    d, alpha = integer_at_least("dim", dim, 1), float(finite_positive("start", start))
    layers = [Construction(*layer) for layer in zip(*least_squares_by_newton(d, steps), strict=True)]
    first = layers[0].w_pv.copy()
    first[0, d : 2 * d, :d] = alpha * np.eye(d)
    return stack_layers([Construction(layers[0].w_kq, first), *layers[1:]])


def newton_tokens(x: Any, y: Any) -> np.ndarray:
    r"""Return the tokens on which `newton` works.

    Those of `giannou2024.least_squares_tokens` with $\alpha = 0$: examples $(x_i, 0, 0, y_i)$, then $d$ workspace tokens
    $(0, 0, e_j, 0)$, then the query $(x_q, 0, 0, 0)$.

    Args:
        x: inputs of the $N$ examples and of the query, shape `(…, N + 1, d)`.
        y: labels of the examples, shape `(…, N)`.

    Returns:
        Shape `(…, N + d + 1, 3d + 1)`.

    Raises:
        TypeError, ValueError: x or y that are not real and finite or do not fit.
    """
    tokens = least_squares_tokens(x, y, 1)
    dim = tokens.shape[-1] // 3
    tokens[..., dim : 2 * dim] = 0  # the initial matrix, which the first layer computes
    return tokens


def newton_error(eigenvalues: Any, start: Number, steps: int) -> np.ndarray:
    r"""Return the factor by which $k$ Newton iterations multiply an error, $1 - s f_k(s) = (1 - \alpha s^2)^{2^k}$.

    Args:
        eigenvalues: $s \ge 0$ of $S$, any shape.
        start: $\alpha > 0$.
        steps: $k \ge 0$.

    Raises:
        TypeError, ValueError: eigenvalues that are not real and finite, `start` is not positive, `steps` is not an integer ≥ 0.

    Source: fu2024, section 3 (second-order convergence); the form in eigenvalues is derived here.
    """
    s, alpha = finite_reals("eigenvalues", eigenvalues), float(finite_positive("start", start))
    return (1 - alpha * s**2) ** (2 ** integer_at_least("steps", steps, 0))


def equivalent_gradient_steps(eigenvalue: Number, start: Number, steps: int, step_size: Number) -> float:
    r"""Return the number of steps of gradient descent with the same error as $k$ Newton iterations.

    $$n_k = 2^k\, \frac{\log(1 - \alpha s^2)}{\log(1 - \eta s)}$$

    from $(1 - \eta s)^n = (1 - \alpha s^2)^{2^k}$: for every eigenvalue, each iteration doubles the number of steps.
    Both $\alpha s^2$ and $\eta s$ must be below 1.

    Args:
        eigenvalue: $s > 0$.
        start: $\alpha > 0$.
        steps: $k \ge 0$.
        step_size: $\eta > 0$.

    Raises:
        TypeError, ValueError: an argument that is not a number, or out of range.

    Source: derived here; fu2024 reports that the number of steps grows exponentially.
    """
    s, alpha = float(finite_positive("eigenvalue", eigenvalue)), float(finite_positive("start", start))
    eta, count = float(finite_positive("step_size", step_size)), integer_at_least("steps", steps, 0)
    if alpha * s**2 >= 1 or eta * s >= 1:
        raise ValueError(
            f"start · s² and step_size · s must be below 1, got {alpha * s**2:g} and {eta * s:g}; give smaller ones"
        )
    return float(2**count * np.log1p(-alpha * s**2) / np.log1p(-eta * s))
