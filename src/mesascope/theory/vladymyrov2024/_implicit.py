"""The implicit linear model of linear attention layers with any weights."""

from typing import Any, NamedTuple

import numpy as np

from ...core import finite_reals, integer_at_least
from .._construction import Construction


class ImplicitModels(NamedTuple):
    r"""The linear models after $0, \dots, L$ layers, for one prompt.

    An example is $x_i^\ell = M^\ell x_i + y_i u^\ell$, $y_i^\ell = a^\ell y_i - \langle w^\ell, x_i \rangle$ and the
    query $x_q^\ell = M^\ell x_q$, $y_q^\ell = -\langle w^\ell, x_q \rangle$: the prediction is linear in $x_q$, with
    weights $w^\ell$.

    Attributes:
        m: $M^\ell$, shape `(L + 1, d, d)`.
        u: $u^\ell$, shape `(L + 1, d)`.
        a: $a^\ell$, shape `(L + 1,)`.
        w: $w^\ell$, shape `(L + 1, d)`.
    """

    m: np.ndarray
    u: np.ndarray
    a: np.ndarray
    w: np.ndarray


def implicit_models(construction: Construction, x: Any, y: Any) -> ImplicitModels:
    r"""Return the implicit linear models of the layers on the examples of a prompt.

    A layer multiplies every token, of an example or the query, by the same matrix, $z \leftarrow (I + \sum_k P_k
    G^\ell Q_k) z$. With the product $T^\ell$ of these matrices, the next one depends on the examples only through their
    second moments, $G^\ell = T^\ell G^0 T^{\ell\top}$, $G^0 = \frac1N \sum_i (x_i, y_i)(x_i, y_i)^\top$; and $T^\ell$
    has the blocks $M^\ell, u^\ell; -w^{\ell \top}, a^\ell$.

    Args:
        construction: weights of shape `(L, heads, d + 1, d + 1)`; $Q_k = W^{KQ}_k$, $P_k = W^{PV}_k$.
        x: inputs of the examples, shape `(N, d)`.
        y: their labels, shape `(N,)`.

    Raises:
        TypeError, ValueError: examples that are not real and finite or do not fit each other or the weights.

    Source: vladymyrov2024, Theorem 4.1; the form of $T^\ell$ is derived here.
    """
    x, y = finite_reals("x", x), finite_reals("y", y)
    if x.ndim != 2 or y.shape != x.shape[:1] or len(x) == 0:
        raise ValueError(f"x must have shape (N, d) and y (N,), got {x.shape} and {y.shape}")
    dim = x.shape[1]
    if construction.w_kq.ndim != 4 or construction.w_kq.shape[-1] != dim + 1:
        raise ValueError(
            f"weights must have shape (layers, heads, {dim + 1}, {dim + 1}), got {construction.w_kq.shape}"
        )
    tokens = np.column_stack([x, y])
    moments = tokens.T @ tokens / len(x)
    products = [np.eye(dim + 1)]
    for w_kq, w_pv in zip(*construction, strict=True):
        gram = products[-1] @ moments @ products[-1].T
        products.append(products[-1] + (w_pv @ gram @ w_kq).sum(0) @ products[-1])
    maps = np.stack(products)
    return ImplicitModels(maps[:, :dim, :dim], maps[:, :dim, dim], maps[:, dim, dim], -maps[:, dim, :dim])


def diagonal_heads(dim: int, couplings: Any) -> Construction:
    r"""Return layers with two diagonal heads, which are equivalent to any number of diagonal heads.

    With $P_k = \mathrm{diag}(p_k I_d, \bar p_k)$ and $Q_k = \mathrm{diag}(q_k I_d, \bar q_k)$ only the sums
    $\omega_{xx} = \sum_k p_k q_k$, $\omega_{xy} = \sum_k p_k \bar q_k$, $\omega_{yx} = \sum_k \bar p_k q_k$ and
    $\omega_{yy} = \sum_k \bar p_k \bar q_k$ matter:

    $$x_j \leftarrow x_j + \omega_{xx} S x_j + \omega_{xy}\, b\, y_j, \qquad y_j \leftarrow y_j + \omega_{yx} \langle
    b, x_j \rangle + \omega_{yy} \lambda y_j$$

    with $S = \frac1N \sum_i x_i x_i^\top$, $b = \frac1N \sum_i y_i x_i$, $\lambda = \frac1N \sum_i y_i^2$. Head one
    reads inputs, $q = (1, 0)$, head two reads labels.

    Args:
        dim: $d \ge 1$.
        couplings: $\omega$ of every layer, $((\omega_{xx}, \omega_{xy}), (\omega_{yx}, \omega_{yy}))$, shape `(L, 2, 2)`.

    Returns:
        Weights of shape `(L, 2, d + 1, d + 1)`.

    Raises:
        TypeError, ValueError: `dim` is not an integer ≥ 1, couplings that are not real and finite or of another shape.

    Source: vladymyrov2024, section 5 (diagonal attention matrices, equations for the four parameters).
    """
    d, omega = integer_at_least("dim", dim, 1), finite_reals("couplings", couplings)
    if omega.ndim != 3 or omega.shape[1:] != (2, 2) or len(omega) == 0:
        raise ValueError(f"couplings must have shape (layers, 2, 2), got {omega.shape}")
    w_kq, w_pv = np.zeros((2, len(omega), 2, d + 1, d + 1))
    w_kq[:, 0, :d, :d], w_kq[:, 1, d, d] = np.eye(d), 1.0
    inputs, labels = np.diag([1.0] * d + [0.0]), np.diag([0.0] * d + [1.0])
    for head in range(2):
        w_pv[:, head] = omega[:, 0, head, None, None] * inputs + omega[:, 1, head, None, None] * labels
    return Construction(w_kq, w_pv)
