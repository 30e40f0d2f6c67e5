r"""Plateaus of linear attention with separate keys and queries: fixed points, losses, times (zhang2025, arXiv 2501.16265).

Setting: prompts of $N$ examples $x_n \sim N(0, \Lambda)$, $y_n = w^\top x_n$, $w \sim N(0, I)$; heads $h$ with a value $v_h$
that reads labels, keys and queries of rank $R$ that read inputs,

$$\hat y = \sum_{hr} v_h (k_{hr}^\top \beta)(q_{hr}^\top x_q) = x_q^\top A \beta, \qquad
\beta = \tfrac1N \sum_n y_n x_n, \qquad A = \sum_{hr} v_h q_{hr} k_{hr}^\top.$$

With $E\,\beta w^\top = \Lambda$ and $C = E\,\beta\beta^\top = \frac{N+1}N \Lambda^2 + \frac{\mathrm{tr} \Lambda}N \Lambda$ the
error is quadratic in A,

$$E(\hat y - y)^2 = \mathrm{tr}\,\Lambda - 2\,\mathrm{tr}\,A\Lambda^2 + \mathrm{tr}\,A^\top \Lambda A C.$$

Errors are the paper's, without the factor ½ of this library's losses; flows are those of the loss with ½. Everything here
is in the axes of Λ, where it is diagonal, and exact for fractions. Values of inputs and keys of labels, which are 0 at the
paper's start, stay 0: the error is odd in w where they enter once.

*All fixed points.* With $M = \Lambda^2 - \Lambda A C$ the gradient is 0 only if $M$ is 0 on $K$, the range of $A^\top$, which
keys of heads with $v_h \ne 0$ span, and $M^\top$ on $Q$, that of $A$. So $\Lambda K = A C K \subseteq Q$ and
$C^{-1} \Lambda^2 Q = A^\top \Lambda Q \subseteq K$. Both have the rank of $A$ as dimension, so that $K$ is invariant under
$C^{-1} \Lambda^3$, whose entries $\lambda^2/(\frac{N+1}N \lambda + \frac1N \mathrm{tr}\Lambda)$ grow with λ. Where all
eigenvalues differ, $K$ is spanned by a set S of eigenvectors, and from $A C k = \Lambda k$ on it $A$ is $\Lambda C^{-1}$ there
and 0 on all others: every fixed point, of heads of any number and rank, predicts as one of the $2^D$ of `fixed_point`.

Source: the authors' program (net.py, data.py, commit
9a481d5); derived here.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core import finite_positive, finite_reals, integer_at_least
from ..specs import Number


def slopes(eigenvalues: Sequence[Number], examples: int) -> list[Number]:
    r"""Return the best slope along every eigenvector, $a_k = \lambda_k/c_k$.

    $1/a_k = \lambda_k (1 + (1 + \mathrm{tr}\Lambda/\lambda_k)/N)$.

    Args:
        eigenvalues: $\lambda_k > 0$.
        examples: $N \ge 1$.

    Raises:
        TypeError, ValueError: numbers out of range.
    """
    lam, n = _checked(eigenvalues, examples)
    return [one / _second_moment(one, sum(lam), n) for one in lam]


def fixed_point_error(eigenvalues: Sequence[Number], examples: int, learned: Sequence[int]) -> Number:
    r"""Return $E(\hat y - y)^2$ at a fixed point.

    $\mathrm{tr}\Lambda - \sum_{k \in S} \lambda_k / (1 + (1 + \mathrm{tr}\Lambda/\lambda_k)/N)$.

    Args:
        eigenvalues: $\lambda_k > 0$.
        examples: $N \ge 1$.
        learned: $S$, the eigenvectors that heads have learned, counted from 0.

    Raises:
        TypeError, ValueError: numbers out of range, an eigenvector twice.
    """
    lam, n = _checked(eigenvalues, examples)
    which = [integer_at_least("learned", k, 0) for k in learned]
    if len(set(which)) < len(which) or max(which, default=0) >= len(lam):
        raise ValueError(f"learned: must be different numbers below {len(lam)}, got {list(learned)}")
    return sum(lam) - sum(lam[k] ** 3 / _second_moment(lam[k], sum(lam), n) for k in which)


def plateau_errors(eigenvalues: Sequence[Number], examples: int) -> list[Number]:
    r"""Return the errors at the plateaus $M_0, \dots, M_D$: the $m$ largest eigenvalues are learned.

    Arguments and errors as in `slopes`.
    """
    order = sorted(range(len(eigenvalues)), key=lambda k: -float(eigenvalues[k]))
    return [fixed_point_error(eigenvalues, examples, order[:m]) for m in range(len(order) + 1)]


def fixed_point(
    eigenvalues: Sequence[Number], examples: int, learned: Sequence[int], heads: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r"""Return values, keys and queries of a fixed point of heads of rank one: head $h$ has $v = 1$, $k = e_{S_h}$, $q = a k$.

    Returns:
        $v$ `(H,)`, $k$ and $q$ `(H, 1, D)`, arrays of objects; 0 for heads beyond those needed. All heads $(s v, t k, q/(st))$
        predict the same.

    Raises:
        TypeError, ValueError: as `fixed_point_error`; fewer heads than eigenvectors learned.
    """
    lam, n = _checked(eigenvalues, examples)
    fixed_point_error(eigenvalues, examples, learned)
    if integer_at_least("heads", heads, 1) < len(learned):
        raise ValueError(f"heads: {len(learned)} eigenvectors need as many heads of rank one, got {heads}")
    v, k, q = (np.zeros(shape, object) for shape in [(heads,), *[(heads, 1, len(lam))] * 2])
    best = slopes(eigenvalues, n)
    for head, place in enumerate(learned):
        v[head], k[head, 0, place], q[head, 0, place] = 1, 1, best[place]
    return v, k, q


def error_and_gradient(
    values: Any, keys: Any, queries: Any, eigenvalues: Sequence[Number], examples: int
) -> tuple[Any, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    r"""Return $E(\hat y - y)^2$, and the gradient of half of it in $v$, $k$ and $q$.

    With $M = \Lambda^2 - \Lambda A C$ they are $-\sum_r q_{hr}^\top M k_{hr}$, $-v_h M^\top q_{hr}$ and $-v_h M k_{hr}$.

    Args:
        values: $v$, shape `(H,)`; fractions give exact results.
        keys: $k$, shape `(H, R, D)`.
        queries: $q$, shape `(H, R, D)`.
        eigenvalues: $\lambda$, length $D$.
        examples: $N$.

    Raises:
        TypeError, ValueError: as `slopes`; shapes that do not fit.
    """
    lam, n = _checked(eigenvalues, examples)
    v, k, q = (np.asarray(one) for one in (values, keys, queries))
    if k.ndim != 3 or k.shape != q.shape or (v.shape, k.shape[2]) != (k.shape[:1], len(lam)):
        raise ValueError(
            f"values (H,), keys and queries (H, R, D) do not fit: {v.shape}, {k.shape}, {q.shape}"
        )
    total, line = sum(lam), np.array(lam, object if any(one.dtype == object for one in (v, k, q)) else float)
    c = np.array([_second_moment(one, total, n) for one in line])
    slope = np.tensordot(v[:, None, None] * q, k, ([0, 1], [0, 1]))  # A
    m = np.diag(line**2) - line[:, None] * slope * c
    error = total - 2 * (np.diag(slope) * line**2).sum() + (line[:, None] * slope**2 * c).sum()
    onto = k @ m.T  # M k
    return error, (-(q * onto).sum((1, 2)), -v[:, None, None] * (q @ m), -v[:, None, None] * onto)


def rise_time(eigenvalue: Number, total: Number, examples: int, start: float, share: float) -> float:
    r"""Return the time in which a head of rank one, $v = s$, $k = q = s e_k$, goes from $s_0$ to $s^3 = $ `share` $\cdot\, a$.

    $s' = \lambda^2 s^2 (1 - s^3/a)$: with $u = s/a^{1/3}$ the time is $(F(u_1) - F(u_0))/(\lambda^2 a^{1/3})$,

    $$F(u) = -\frac1u - \frac{\ln(1 - u)}3 + \frac{\ln(1 + u + u^2)}6 - \frac{1}{\sqrt3} \arctan\frac{2u + 1}{\sqrt3}.$$

    For small starts $1/(\lambda^2 s_0)$: nothing is linear at 0, and times are not logarithms of the start.

    Args:
        eigenvalue: $\lambda$.
        total: $\mathrm{tr}\Lambda$.
        examples: $N$.
        start: $s_0$, between 0 and $a^{1/3}$.
        share: of $a$, between $s_0^3/a$ and 1.

    Raises:
        TypeError, ValueError: numbers out of range.

    Source: zhang2025 (abstract: reduction to scalar equations); the equation and its solution are derived here.
    """
    n = integer_at_least("examples", examples, 1)
    lam, whole = (float(finite_positive(*one)) for one in (("eigenvalue", eigenvalue), ("total", total)))
    end = (lam / _second_moment(lam, whole, n)) ** (1 / 3)
    first, last = (
        float(finite_positive("start", start)) / end,
        float(finite_positive("share", share)) ** (1 / 3),
    )
    if not first <= last < 1:
        raise ValueError(
            f"start and share must be below the end {end:g} and 1, in this order, got {start} and {share}"
        )
    return float((_primitive(last) - _primitive(first)) / (lam**2 * end))


def _primitive(u: float) -> float:
    root = 3**0.5
    rest = np.log(1 + u + u * u) / 6 - np.arctan((2 * u + 1) / root) / root
    return float(-1 / u - np.log(1 - u) / 3 + rest)


def merged_rate(eigenvalues: Sequence[Number]) -> float:
    r"""Return $\|\Lambda^2\|_F$, the rate at which merged heads leave 0.

    $v_h' = \mathrm{tr}\,U_h\Lambda^2$ and $U_h' = v_h \Lambda^2$ to lowest order, $U_h$ the product of key and query: the time
    from ε to order 1 is $\ln(1/\epsilon)/\|\Lambda^2\|_F$ and a constant.

    Args:
        eigenvalues: $\lambda_k > 0$.
    """
    lam, _ = _checked(eigenvalues, 1)
    return float(np.linalg.norm([float(one) ** 2 for one in lam]))


def merged_course(
    values: Sequence[float],
    sizes: Sequence[float],
    eigenvalue: Number,
    dim: int,
    examples: int,
    times: Any,
) -> np.ndarray:
    r"""Return $E(\hat y - y)^2$ along the flow of merged heads on white inputs, $\Lambda = \lambda I$, in closed form.

    From $U_h = u_h I/\sqrt D$ heads keep this form, and $\hat y = p\, x_q^\top \beta/\sqrt D$ with $p = \sum_h v_h u_h$. Then

    $$v_h' = g u_h, \quad u_h' = g v_h, \quad g = \alpha - \gamma p, \quad \alpha = \sqrt D \lambda^2, \quad
    \gamma = \lambda^3 \tfrac{N + 1 + D}{N}:$$

    $v_h + u_h$ grows as $z = e^{\int g}$ and $v_h - u_h$ falls as $1/z$, so that $p = P z^2 - Q/z^2$ with
    $P = \frac14 \sum (v_h + u_h)^2$ and $Q = \frac14 \sum (v_h - u_h)^2$ at the start. $y = z^2$ solves
    $y' = 2\alpha y - 2\gamma P y^2 + 2\gamma Q$, an equation of Riccati with constant coefficients:

    $$y(t) = \frac{y_+ - r y_-}{1 - r}, \quad r = \frac{1 - y_+}{1 - y_-} e^{-2\delta t}, \quad
    \delta = \sqrt{\alpha^2 + 4\gamma^2 P Q}, \quad y_\pm = \frac{\alpha \pm \delta}{2\gamma P},$$

    a logistic curve where $Q = 0$: heads whose two factors are equal. The error is $D\lambda - 2\alpha p + \gamma p^2$.

    Args:
        values: $v_h$ at the start.
        sizes: $u_h$ at the start, as many; $v_h + u_h$ is not 0 for all heads.
        eigenvalue: $\lambda > 0$.
        dim: $D$.
        examples: $N$.
        times: $t \ge 0$, any shape.

    Raises:
        TypeError, ValueError: numbers out of range.

    Source: zhang2025 (abstract: a time course for certain data and starts); derived here.
    """
    lam, n = float(finite_positive("eigenvalue", eigenvalue)), integer_at_least("examples", examples, 1)
    width = integer_at_least("dim", dim, 1)
    v, u = finite_reals("values", np.asarray(values)), finite_reals("sizes", np.asarray(sizes))
    if v.ndim != 1 or v.shape != u.shape:
        raise ValueError(f"values and sizes must be two lists of one length, got {v.shape} and {u.shape}")
    rising, falling = np.sum((v + u) ** 2) / 4, np.sum((v - u) ** 2) / 4
    if rising == 0:
        raise ValueError("values and sizes: each head has values[h] = -sizes[h], so that it never leaves 0")
    alpha, gamma = width**0.5 * lam**2, lam * float(_second_moment(lam, width * lam, n))
    delta = np.hypot(alpha, 2 * gamma * np.sqrt(rising * falling))
    high, low = ((alpha + sign * delta) / (2 * gamma * rising) for sign in (1, -1))
    rest = (1 - high) / (1 - low) * np.exp(-2 * delta * np.asarray(times, float))
    grown = (high - rest * low) / (1 - rest)
    p = rising * grown - falling / grown
    return np.asarray(width * lam - 2 * alpha * p + gamma * p**2)


def _second_moment(eigenvalue: Any, total: Any, examples: int) -> Any:
    """The entry c of E ββᵀ along an eigenvector; of fractions a fraction."""
    return (eigenvalue**2 * (examples + 1) + total * eigenvalue) / examples


def _checked(eigenvalues: Sequence[Number], examples: int) -> tuple[list[Any], int]:
    given = list(eigenvalues)
    finite_reals("eigenvalues", np.array([float(one) for one in given]))
    return [finite_positive(f"eigenvalues[{k}]", one) for k, one in enumerate(given)], integer_at_least(
        "examples", examples, 1
    )
