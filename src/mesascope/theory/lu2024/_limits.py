"""Errors of the best reduced layer for many dimensions: at the end of training, on the way, and where it is harmful."""

from __future__ import annotations

from collections.abc import Callable
from math import hypot, inf, isinf, pi, sqrt
from typing import Any

import numpy as np

from ...core import finite_nonnegative, finite_positive
from ...specs import Number
from ._flow import grown

_HALVINGS = 53  # of the angle of an eigenvalue, down to rounding
_POINTS = 16  # of Gauss's rule in each interval


def resolvent(x: Number, kappa: Number) -> float:
    r"""Return $M_\kappa(x) = \lim \frac1d \mathrm{tr} (R + x I)^{-1}$, $R = \frac1K \sum_k w_k w_k^\top$ of a pool.

    $$M_\kappa(x) = \frac2{x + 1 - 1/\kappa + \sqrt{(x + 1 - 1/\kappa)^2 + 4x/\kappa}}.$$

    Args:
        x: > 0.
        kappa: $\kappa = K/d \ge 0$: 0, where almost all eigenvalues of $R$ are 0, to `math.inf`, where $R = I$.

    Source: lu2024; `common.py:6` of the authors' program.
    """
    x, kappa = float(finite_positive("x", x)), _up_to_infinity("kappa", kappa, finite_nonnegative)
    if isinf(kappa):
        return 1 / (1 + x)
    if kappa == 0:
        return 1 / x
    # nothing cancels, and no square overflows
    if kappa > 1:
        shifted = x + (kappa - 1) / kappa
        return 2 / (shifted + hypot(shifted, 2 * sqrt(x / kappa)))
    shifted = kappa * x - (1 - kappa)
    root = hypot(shifted, 2 * sqrt(kappa * x))
    return 2 * kappa / (shifted + root) if shifted > 0 else (root - shifted) / (2 * x)


def icl_error(alpha: Number, kappa: Number, noise_variance: Number, tau: Number = inf) -> float:
    r"""Return the limit of $E(\hat y - y_q)^2$ on new tasks, without ridge: $e_{ICL}$.

    For $\tau = \infty$, $x_* = (1 + \rho)/\alpha$ and $m = M_\kappa(x_*)$, it is that of $\Gamma = R (R + x_* I)^{-1}$:

    $$e = \rho + x_* - 2 x_*^2 m + (1 + x_*)\, x_*^2\, m_2, \qquad
    m_2 = -M_\kappa'(x_*) = \frac{m^2}{1 - \kappa m^2/(\kappa + m)^2},$$

    computed as $\rho + x_*^2 m_2 + x_* E\bigl[\frac{r^2}{(r + x_*)^2}\bigr]$, in which nothing cancels.

    For finite $\tau > 1$ it is larger by $(1 + x_*)\, m\, e_\infty/(\tau - 1)$, where $e_\infty = \rho + x_* - x_*^2 m$ is the
    error on the pool at $\tau = \infty$. For $\tau < 1$, with $\mu = x_* M_{\kappa/\tau}(x_*)$, $\nu = 1 - \mu$, it is

    $$e = \frac{\tau (1 + x_*)}{1 - \tau} \Bigl[1 - \tau \nu^2 - \frac{x_* - \rho}{x_*}\, \mu\Bigr] - 2\tau \nu + 1 + \rho
    = \rho + w + \frac\tau{1 - \tau} \Bigl[\tau \mu \nu + x_* \nu w + \frac{1 + x_*}{x_*} \rho \mu\Bigr], \qquad
    w = 1 - \tau \nu,$$

    and the second form has positive terms only.

    Args:
        alpha: $\alpha = \ell/d > 0$, examples per dimension.
        kappa: $\kappa = K/d \ge 0$, tasks of the pool per dimension; 0 for few tasks, $1 \ll K \ll d$; `math.inf` for new
            tasks in every prompt.
        noise_variance: $\rho \ge 0$.
        tau: $\tau = n/d^2 > 0$, not 1; `math.inf` for the minimum of the population loss.

    Raises:
        TypeError, ValueError: an argument is out of range; $\tau = 1$, where the error has its peak and is infinite.

    Source: lu2024, Result 1, as `common.py:11` of the authors' program has it; $\tau = \infty$ also derived here.
    """
    alpha, kappa, rho, tau = _checked(alpha, kappa, noise_variance, tau)
    x = (1 + rho) / alpha
    if tau > 1:
        m = resolvent(x, kappa)
        kept, rest, spread = _means(m, kappa)
        both = x * m * kept * rest / spread  # E x r/(r + x)²
        excess = (1 + x) * m * (rho + x * kept) / (tau - 1)
        return rho + (x * m) ** 2 / spread + x * (kept - both) + excess
    m = resolvent(x, kappa / tau)
    mu, nu = x * m, _means(m, kappa / tau)[0]
    w = (1 - tau) + tau * mu
    return rho + w + tau / (1 - tau) * (tau * mu * nu + x * nu * w + (1 + x) * m * rho)


def idg_error(alpha: Number, kappa: Number, noise_variance: Number, tau: Number = inf) -> float:
    r"""Return the limit of $E(\hat y - y_q)^2$ on the tasks of the pool, without ridge: $e_{IDG}$.

    For $\tau = \infty$, where $\Gamma = R F^{-1}$, $F = R + x_* I$, it is

    $$e_\infty = \rho + x_* - x_*^2\, M_\kappa(x_*), \qquad x_* = (1 + \rho)/\alpha,$$

    and $e_\infty\, \tau/(\tau - 1)$ for finite $\tau > 1$.

    Least squares on $n = \tau d^2$ prompts has $d^2$ weights whose features have the eigenvalues of $F$, each d times. It acts
    like an infinite sample with a ridge $\lambda$, where $1 - \lambda M = \tau$ for $\tau < 1$ and $\lambda = 0$ for
    $\tau > 1$. With $z = x_* + \lambda$, $M = M_\kappa(z)$, $M_2 = -M_\kappa'(z)$ and means over the eigenvalues r of R

    $$e = \frac{b}{1 - \gamma}, \qquad b = \rho + E\,\frac{r z^2 + x_* r^2}{(r + z)^2}, \qquad
    \gamma = \frac{1 - 2\lambda M + \lambda^2 M_2}\tau = 1 - \frac\lambda\tau\, E\,\frac{r + x_*}{(r + z)^2};$$

    b is the error of the ridge at an infinite sample.

    Arguments and errors as for `icl_error`. Source: derived here, with the deterministic equivalent
    of least squares; the same equations give `icl_error`.
    """
    alpha, kappa, rho, tau = _checked(alpha, kappa, noise_variance, tau)
    x = (1 + rho) / alpha
    if tau > 1:
        at_the_end = rho + x * _means(resolvent(x, kappa), kappa)[0]
        return at_the_end if isinf(tau) else at_the_end / (1 - 1 / tau)

    def missing(ridge: float) -> float:
        """1 − τ − λM, or the same as E (r + x)/(r + z) − τ where that has more digits."""
        m = resolvent(x + ridge, kappa)
        return 1 - tau - ridge * m if tau > 0.5 else _means(m, kappa)[0] + x * m - tau

    ridge = _root(missing, 1e300)
    z = x + ridge
    m = resolvent(z, kappa)
    kept, rest, spread = _means(m, kappa)
    once = kept * rest / spread  # E r/(r + z)², over M
    biased = rho + z * (z * m * once) + x * (kept - z * m * once)
    return tau * biased / (ridge * m * (once + x * m / spread))


def flow_errors(
    alpha: Number, kappa: Number, noise_variance: Number, times: np.ndarray | float
) -> tuple[Any, Any]:
    r"""Return the limits of $E(\hat y - y_q)^2$ on new tasks and on the pool after gradient flow, at $\tau = \infty$.

    In the eigenvectors of $R$, whose eigenvalues $r$ follow the law of Marchenko and Pastur with ratio $1/\kappa$, the flow
    $\Gamma' = R - \Gamma (R + x_* I)$ from 0 gives $g(r) = \frac r{r + x_*} (1 - e^{-t (r + x_*)})$, and

    $$e_{new} = \rho + E\bigl[(1 - g)^2 + x_* g^2\bigr], \qquad e_{pool} = \rho + E\bigl[r (1 - g)^2 + x_* g^2\bigr].$$

    Args:
        alpha: as for `icl_error`.
        kappa: as for `icl_error`, positive and finite.
        noise_variance: as for `icl_error`.
        times: $t \ge 0$, in the units of `Features.after`, of any shape; `math.inf` for the end.

    Returns:
        Both of the shape of `times`, to rounding.

    Raises:
        TypeError, ValueError: an argument is out of range.

    Source: derived here.
    """
    alpha, kappa, rho, _ = _checked(alpha, kappa, noise_variance, inf)
    kappa = float(finite_positive("kappa", kappa))
    x = (1 + rho) / alpha
    r, weights = _marchenko_pastur(kappa)
    g, left = (
        r * grown(r + x, times),
        (x + r * np.exp(-(r + x) * np.asarray(times, float)[..., None])) / (r + x),
    )
    return rho + (left**2 + x * g**2) @ weights, rho + (r * left**2 + x * g**2) @ weights


def zero_answer_border(kappa: Number, noise_variance: Number) -> float:
    r"""Return the $\alpha$ below which training on the pool makes the layer worse on new tasks than the answer 0.

    There $e_{ICL} = 1 + \rho$ at $\tau = \infty$. With $x_* = (1 - \kappa s)(1 - s)/(\kappa s)$, $0 < s < \min(1, 1/\kappa)$,
    and $m = \kappa s/(1 - s)$, $e_{ICL} - 1 - \rho$ has the sign of

    $$P(s) = (1 - \kappa) - (1 + 3\kappa)\, s + 3\kappa (1 + \kappa)\, s^2 - 2 \kappa^2 s^3,$$

    which is convex there. For $\kappa < 1$, $P(0) > 0 > P(1) = -\kappa(1 - \kappa)$: there is one border, which tends to
    $1 + \rho$ for $\kappa \to 0$. For $\kappa \ge 1$ both ends are $1 - \kappa \le 0$: there is none.

    Args:
        kappa: $0 < \kappa < 1$.
        noise_variance: $\rho \ge 0$.

    Raises:
        ValueError: $\kappa \ge 1$: the layer is never worse.

    Source: derived here.
    """
    k = float(finite_positive("kappa", kappa))
    if k >= 1:
        raise ValueError(
            f"kappa must be below 1, got {k}: with as many tasks no layer is worse than the answer 0"
        )
    rho = float(finite_nonnegative("noise_variance", noise_variance))

    def from_one(u: float) -> float:
        """−P(1 − u), in which nothing cancels near u = 0."""
        return k * (1 - k) - u * (1 - 3 * k + 3 * k * (1 - k) * u + 2 * (k * u) ** 2)

    def from_zero(s: float) -> float:
        return (1 - k) - s * (1 + 3 * k - 3 * k * (1 + k) * s + 2 * (k * s) ** 2)

    if from_one(0.5) < 0:
        u = _root(from_one)
        return (1 + rho) * k * (1 - u) / (u * (1 - k + k * u))
    s = _root(from_zero)
    return (1 + rho) * k * s / ((1 - k * s) * (1 - s))


def _root(falling: Callable[[float], float], most: float = 0.5) -> float:
    """Return the root of a function that falls through 0 between 0 and `most`, to the last digits however small it is."""
    low, high = 1e-308, most
    for _ in range(100):
        middle = sqrt(low) * sqrt(high)
        low, high = (middle, high) if falling(middle) > 0 else (low, middle)
    return low


def _marchenko_pastur(kappa: float) -> tuple[np.ndarray, np.ndarray]:
    r"""Return nodes and weights for means over the eigenvalues of $R$, of functions with any scale near the smallest.

    The continuous part has the density $\frac\kappa{2\pi r} \sqrt{(b - r)(r - a)}$ with $a, b = (1 \mp \kappa^{-1/2})^2$. With
    $r = a + 4 \kappa^{-1/2} \sin^2(\varphi/2)$ it is smooth in $\varphi$; intervals of $\varphi$ are halved towards 0, with
    Gauss's rule in each. For $\kappa < 1$ the rest are eigenvalues 0.
    """
    half = 2 * kappa**-0.5
    ends = np.append(0.0, pi * 0.5 ** np.arange(_HALVINGS, -1, -1))
    points, shares = np.polynomial.legendre.leggauss(_POINTS)
    widths = np.diff(ends)[:, None] / 2
    angles = ((ends[:-1] + ends[1:])[:, None] / 2 + widths * points).ravel()
    r = (1 - kappa**-0.5) ** 2 + 2 * half * np.sin(angles / 2) ** 2
    weights = 2 * np.sin(angles) ** 2 / (pi * r) * (widths * shares).ravel()
    return np.append(r, 0.0), np.append(weights, max(0.0, 1 - kappa))


def _means(m: float, kappa: float) -> tuple[float, float, float]:
    """Return E r/(r + x) = κM/(κ + M), κ/(κ + M) and M²/E (r + x)⁻² = 1 − κM²/(κ + M)², without cancellation.

    M = 1/(x + κ/(κ + M)), and its derivative is −E (r + x)⁻².
    """
    if isinf(kappa):
        return m, 1.0, 1.0
    rest, share, root = kappa / (kappa + m), m / (kappa + m), sqrt(kappa)
    below = (1 - kappa) / (1 + root)  # 1 − √κ
    return m * rest, rest, (rest + share * below) * (rest + share * (1 + root))


def _checked(
    alpha: Number, kappa: Number, noise_variance: Number, tau: Number
) -> tuple[float, float, float, float]:
    alpha, rho = finite_positive("alpha", alpha), finite_nonnegative("noise_variance", noise_variance)
    kappa = _up_to_infinity("kappa", kappa, finite_nonnegative)
    tau = _up_to_infinity("tau", tau, finite_positive)
    for name, value in (("alpha", alpha), ("1 + noise_variance", 1 + rho)):
        if not 1e-50 <= value <= 1e50:
            raise ValueError(f"{name} must lie between 1e-50 and 1e50, got {value}")
    if kappa and not 1e-300 <= kappa <= 1e300 and not isinf(kappa):
        raise ValueError(f"kappa must be 0, infinite or between 1e-300 and 1e300, got {kappa}")
    if tau < 1e-200:
        raise ValueError(f"tau must be at least 1e-200, got {tau}")
    if tau == 1:
        raise ValueError(
            "tau must not be 1: there as many prompts as weights are fitted, and the error is infinite"
        )
    return float(alpha), kappa, float(rho), tau


def _up_to_infinity(name: str, value: Number, finite: Callable[[str, Number], Number]) -> float:
    return inf if isinstance(value, float) and value == inf else float(finite(name, value))
