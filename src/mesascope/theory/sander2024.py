r"""One linear attention layer on autoregressive tokens, with and without augmentation (sander2024, arXiv 2402.05787).

Setting: $x_{t+1} = W x_t$ with commuting unitary $W = \mathrm{diag}(\lambda)$, the eigenvalues uniform on the circle, and
$x_1 = (1, \dots, 1)$. *Unitary*: all $\lambda_j$ are independent. *Rotations*: they come in conjugate pairs
$\lambda_{2k} = \bar\lambda_{2k-1}$, the eigenvalues of rotations of planes; $d$ is even, and $\bar\jmath$ is the index of
$\bar\lambda_j$. A layer on bare tokens has $H$ diagonal heads and learned positions: from the context $x_1, \dots, x_T$

$$\hat x_{T+1} = \sum_{h=1}^H \sum_{t=1}^T p_t\, \langle x_{T-1}, \mathrm{diag}(a_h)\, x_t \rangle\, \mathrm{diag}(b_h)\, x_t,
\qquad \langle u, v \rangle = \sum_i \bar u_i v_i,$$

which depends on the heads only through $C = B^\top A$ ($A, B$ with rows $a_h, b_h$), $C_{ji} = \sum_h b_{hj} a_{hi}$.
"""

from fractions import Fraction
from typing import Any

import numpy as np

from ..core import finite_number, finite_positive, finite_reals, integer_at_least, square_matrix


def unitary_loss(heads: Any, positions: Any) -> float:
    r"""Return the population loss of bare tokens with independent eigenvalues.

    $$E \|\hat x_{T+1} - x_{T+1}\|^2 = (\|p\|^2 - p_{T-1}^2) \|C\|_F^2 + p_{T-1}^2 \|C 1\|^2 - 2 p_T\, \mathrm{tr}\, C + d$$

    Coordinate $j$ of $\hat x_{T+1}$ is $\sum_{t,i} p_t C_{ji} \lambda_i^{t-T+1} \lambda_j^{t-1}$. All its monomials are
    different, except those of $t = T-1$, where $\lambda_i$ cancels; that of $t = T, i = j$ is $x_{T+1,j}$.

    Args:
        heads: $C$, shape `(d, d)`.
        positions: $p_1, \dots, p_T$, shape `(T,)`, $T \ge 2$.

    Raises:
        TypeError, ValueError: arrays that are not real and finite, or of another shape.

    Source: derived here. sander2024's program (michaelsdr/ical@beaf4d6, `unitary.py:29-35`) has $\|p\|^2 \|C\|_F^2$ as its
    first term: this adds $p_{T-1}^2 \|C\|_F^2$, and has the same minimisers.
    """
    return float(unitary_polynomial(*_checked(heads, positions)))


def unitary_polynomial(c: Any, p: Any) -> Any:
    """Return the polynomial of `unitary_loss` without checks, for arrays of any library, e.g. to differentiate it."""
    previous = p[-2] ** 2
    coherent = previous * (c.sum(1) ** 2).sum()
    return (p @ p - previous) * (c**2).sum() + coherent - 2 * p[-1] * c.trace() + len(c)


def rotation_loss(heads: Any, positions: Any) -> float:
    r"""Return the population loss of bare tokens with conjugate pairs of eigenvalues.

    $$E \|\hat x_{T+1} - x_{T+1}\|^2 = (\|p\|^2 - p_{T-1}^2) \sum_{i \ne \bar\jmath} C_{ji}^2
    + \sum_j \Bigl( p_{T-1} \sum_i C_{ji} + C_{j \bar\jmath} \sum_{t \ne T-1} p_t \Bigr)^2 - 2 p_T\, \mathrm{tr}\, C + d$$

    The monomials are those of `unitary_loss`, except that $i = \bar\jmath$ gives $\lambda_j^{T-2}$ for every $t$, as does
    $t = T-1$ for every $i$: their coefficients are summed before they are squared.

    Arguments and errors as in `unitary_loss`; $d$ is even.

    Source: derived here; the polynomial of sander2024's program (michaelsdr/ical@beaf4d6, `orthogonal.py:25-31`).
    """
    return float(rotation_polynomial(*_checked(heads, positions)))


def rotation_polynomial(c: Any, p: Any) -> Any:
    """Return the polynomial of `rotation_loss` without checks, for arrays of any library, e.g. to differentiate it."""
    swapped = c[np.arange(len(c)), _partners(len(c))]
    incoherent = (p @ p - p[-2] ** 2) * ((c**2).sum() - (swapped**2).sum())
    coherent = ((p[-2] * c.sum(1) + (p.sum() - p[-2]) * swapped) ** 2).sum()
    return incoherent + coherent - 2 * p[-1] * c.trace() + len(c)


def unitary_minimiser(dim: int, context: int, scale: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    r"""Return heads and positions with `unitary_loss` 0: $C = c I$, $p_T = 1/c$, all other $p_t = 0$.

    The layer multiplies $x_T$ by $\sum_i \bar x_{T-1,i} x_{T,i}$ coordinate by coordinate. These are all minimisers: if
    the loss is 0, then $p_T \ne 0$ and every term other than $x_{T+1,j}$ is 0.

    Args:
        dim: $d \ge 1$.
        context: $T \ge 2$.
        scale: $c \ne 0$.

    Returns:
        $C$ of shape `(d, d)` and $p$ of shape `(T,)`.

    Raises:
        TypeError, ValueError: an argument that is not a number, or out of range.

    Source: sander2024's program (michaelsdr/ical@beaf4d6) converges to it: its tensors `*_unitary.npy`.
    """
    d, p, c = _start(dim, context, scale)
    p[-1] = 1 / c
    return c * np.eye(d), p


def rotation_minimiser(
    dim: int, context: int, scale: float = 1.0, swap: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    r"""Return heads and positions with `rotation_loss` 0.

    $$C = c\, (I + s J), \qquad p_T = \tfrac1c, \qquad p_{T-1} = -\tfrac{s}{(1 + s)\, c}$$

    and all other $p_t = 0$; $J$ exchanges $j$ and $\bar\jmath$. The paper's minimiser is $s = 1$, where $C = c\,
    \mathrm{blockdiag}(1_{2 \times 2})$ has rank $d/2$ and $p_{T-1} = -\frac1{2c}$: the relation $W^2 = 2 \cos\theta\, W - I$
    of a rotation by $\theta$. All others have rank $d$ ($s = -1$ is excluded), so that with $d/2 \le H < d$ heads it
    is the only one.

    Args:
        dim: $d \ge 2$, even.
        context: $T \ge 2$.
        scale: $c \ne 0$.
        swap: $s \ne -1$.

    Returns:
        $C$ of shape `(d, d)` and $p$ of shape `(T,)`.

    Raises:
        TypeError, ValueError: an argument that is not a number, or out of range.

    Source: $s = 1$: sander2024's program (michaelsdr/ical@beaf4d6) converges to it, its tensors `*_orthogonal.npy`; the family
    is derived here.
    """
    d, p, c = _start(dim, context, scale)
    partner, s = _partners(d), float(finite_number("swap", swap))
    if s == -1:
        raise ValueError(
            "swap must not be -1: the rows of C would sum to 0, and the loss would not depend on p_{T-1}"
        )
    p[-1], p[-2] = 1 / c, -s / ((1 + s) * c)
    heads = c * np.eye(d)
    heads[np.arange(d), partner] = c * s
    return heads, p


def unitary_least_loss(dim: int, heads: int) -> int:
    r"""Return the minimum of `unitary_loss` with $H$ heads, $\max(d - H, 0)$.

    Positions other than $p_T$ only increase the loss. With the best $p_T = \mathrm{tr}\, C / \|C\|_F^2$ it is $d -
    (\mathrm{tr}\, C)^2 / \|C\|_F^2 \ge d - \mathrm{rank}\, C$, with equality for orthogonal projections: loss 0 needs $d$
    orthogonal heads.

    Args:
        dim: $d \ge 1$.
        heads: $H \ge 1$.

    Raises:
        TypeError, ValueError: an argument that is not an integer ≥ 1.

    Source: derived here.
    """
    return max(integer_at_least("dim", dim, 1) - integer_at_least("heads", heads, 1), 0)


def augmented_step(dim: int, context: int) -> Fraction:
    r"""Return the optimal step size for predictions of $x_{T+1}$ with augmented tokens.

    With $e_t = (0; x_t; x_{t-1})$ one layer is one step of gradient descent from 0 on $\frac12 \sum_{t<T} \|x_{t+1} - W
    x_t\|^2$, $\hat x_{T+1} = \eta \sum_{t<T} x_{t+1} x_t^* x_T$. Here $E |\hat x_{T+1,j}|^2 = \eta^2 ((T-1)^2 + (d-1)(T-1))$
    (the terms of $r = j$ are all equal, the others all different) and $E\, \bar x_{T+1,j} \hat x_{T+1,j} = \eta
    (T-1)$: the best step is

    $$\eta_* = \frac1{T + d - 2}, \qquad \tfrac12 E \|\hat x_{T+1} - x_{T+1}\|^2 = \frac{d (d-1)}{2 (T + d - 2)}.$$

    Args:
        dim: $d \ge 1$.
        context: $T \ge 2$.

    Raises:
        TypeError, ValueError: an argument that is not an integer in its range.

    Source: derived here; the construction is that of sander2024 (abstract; its program's `augmented.py:246-253`).
    """
    return Fraction(1, integer_at_least("context", context, 2) + integer_at_least("dim", dim, 1) - 2)


def augmented_loss(dim: int, context: int) -> Fraction:
    """Return the minimal loss ½E‖x̂ − x‖² of one step on augmented tokens; arguments and errors as in `augmented_step`."""
    return Fraction(dim * (dim - 1), 2) * augmented_step(dim, context)


def position_gram(context: int, largest_angle: float) -> np.ndarray:
    r"""Return the curvature of the loss in the positions alone, for one coordinate with its angle uniform on $[0, \omega]$.

    With $d = 1$ and $C = 1$ the layer answers $\hat x_{T+1} = \sum_t p_t \lambda^{2t - T}$, $\lambda = e^{i\theta}$, so that

    $$E |\hat x_{T+1} - x_{T+1}|^2 = (p - e_T)^\top G\, (p - e_T), \qquad
    G_{st} = \mathrm{Re}\, E \lambda^{2(s - t)} = \frac{\sin 2\omega(s - t)}{2\omega(s - t)}.$$

    $G$ is positive definite: $p = e_T$ is the only minimum, with loss 0. Its eigenvectors are the discrete prolate spheroidal
    sequences of $T$ entries and half bandwidth $\omega/\pi$, where $\omega < \pi/2$; about $1 + 2\omega T/\pi$ eigenvalues are
    of the order of the largest.

    Args:
        context: $T \ge 2$.
        largest_angle: $\omega > 0$, in radians.

    Returns:
        $G$, shape `(T, T)`.

    Raises:
        TypeError, ValueError: an argument that is not a number, or out of range.

    Source: derived here; the setting is that of sander2024's program (michaelsdr/ical@beaf4d6, `pe_only.py`), with $\omega =
    2\pi/\mu$.
    """
    largest = float(finite_positive("largest_angle", largest_angle))
    index = np.arange(integer_at_least("context", context, 2))
    return np.sinc(2 * largest * (index[:, None] - index) / np.pi)


def descended_positions(gram: Any, rate: float, steps: int) -> np.ndarray:
    r"""Return the positions after gradient descent from 0 on the loss of `position_gram`.

    $$p = \bigl(I - (I - 2 \eta G)^n\bigr)\, e_T$$

    The part of $e_T$ along an eigenvector of $G$ with eigenvalue $g$ is weighed by $1 - (1 - 2 \eta g)^n$: it takes about
    $1/(2 \eta g)$ steps.

    Args:
        gram: $G$, or the same mean over drawn angles: symmetric, shape `(T, T)`.
        rate: $\eta > 0$; descent diverges where it exceeds $1/g$ of the largest $g$.
        steps: $n \ge 0$.

    Returns:
        $p$, shape `(T,)`.

    Raises:
        TypeError, ValueError: an argument that is not a number, or out of range; $G$ that is not square or symmetric;
            a rate with which descent diverges.

    Source: derived here.
    """
    size, count = float(finite_positive("rate", rate)), integer_at_least("steps", steps, 0)
    matrix = square_matrix("gram", gram)
    if not np.allclose(matrix, matrix.T, rtol=1e-12, atol=0):
        raise ValueError("gram must be symmetric: it holds means of Re λ^{2(s−t)}")
    values, vectors = np.linalg.eigh(matrix)
    if size * values[-1] > 1:
        raise ValueError(
            f"rate must be at most {1 / values[-1]:.3g}, 1 over the largest eigenvalue, got {size:g}"
        )
    return vectors @ ((1 - (1 - 2 * size * values) ** count) * vectors[-1])


def _checked(heads: Any, positions: Any) -> tuple[np.ndarray, np.ndarray]:
    c, p = square_matrix("heads", heads), finite_reals("positions", positions)
    if p.ndim != 1 or len(p) < 2:
        raise ValueError(
            f"positions must be the T ≥ 2 entries of one row of the positional matrix, got shape {p.shape}"
        )
    return c, p


def _partners(dim: int) -> np.ndarray:
    if dim % 2:
        raise ValueError(f"dim must be even where eigenvalues come in conjugate pairs, got {dim}")
    return np.arange(dim) ^ 1


def _start(dim: int, context: int, scale: float) -> tuple[int, np.ndarray, float]:
    c = float(finite_number("scale", scale))
    if c == 0:
        raise ValueError("scale must not be 0: c · p_T = 1")
    return integer_at_least("dim", dim, 1), np.zeros(integer_at_least("context", context, 2)), c
