r"""Linear attention trained on a finite pool of regression tasks (lu2024, arXiv 2405.11751).

Setting: $x_i \sim N(0, I/d)$, tasks $w$ with $\|w\|^2 = d$ (a pool of $K$ of them, or the whole sphere), $y_i = w^\top x_i +
N(0, \rho)$, $\ell$ examples and a query. One layer of linear attention whose $W^{PV}$ reads the label alone predicts

$$\hat y = x_q^\top \Gamma f, \qquad f = \Bigl(\frac d\ell \sum_i y_i x_i,\ \frac1\ell \sum_i y_i^2\Bigr) \in \mathbb{R}^{d+1},
\qquad \Gamma \in \mathbb{R}^{d \times (d+1)},$$

where $\Gamma$ is the part of $W^{KQ}$ that then reaches the prediction. It is fitted by ridge regression on $n$ prompts. With
$\alpha = \ell/d$, $\kappa = K/d$, $\tau = n/d^2$ fixed, errors $E(\hat y - y_q)^2$ converge as $d \to \infty$.

Given the moments of the tasks, the problem at finite $d$ and $\tau = \infty$ is least squares with exact normal equations,
which is derived here, for any covariance of the inputs: $\Gamma = E[w f^\top]\,(E f f^\top)^{-1}$, the regression of the task
on the features.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, isinf, pi, sqrt
from typing import Any, NamedTuple

import numpy as np

from ..core import finite_nonnegative, finite_positive, finite_reals
from ..processes import FewShot, Gaussian, LinearRegression, NoiseRange, RandomDiagonal, TaskPool
from ..specs import Number
from ._construction import Construction

_HALVINGS, _POINTS = (
    53,
    16,
)  # of the angle of an eigenvalue, down to rounding; of Gauss's rule in each interval


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
    shifted = kappa * (x + 1) - 1
    root = sqrt(shifted**2 + 4 * kappa * x)
    # the form in which nothing cancels
    return 2 * kappa / (shifted + root) if shifted > 0 else (root - shifted) / (2 * x)


def icl_error(alpha: Number, kappa: Number, noise_variance: Number, tau: Number = inf) -> float:
    r"""Return the limit of $E(\hat y - y_q)^2$ on new tasks, without ridge: $e_{ICL}$.

    For $\tau = \infty$, $x_* = (1 + \rho)/\alpha$ and $m = M_\kappa(x_*)$, it is that of $\Gamma = R (R + x_* I)^{-1}$:

    $$e = \rho + x_* - 2 x_*^2 m + (1 + x_*)\, x_*^2\, m_2, \qquad
    m_2 = -M_\kappa'(x_*) = \frac{m^2}{1 - \kappa m^2/(\kappa + m)^2},$$

    computed as $\rho + x_*^2 m_2 + x_* E\bigl[\frac{r^2}{(r + x_*)^2}\bigr]$, in which nothing cancels.

    For finite $\tau > 1$ it is larger by $(1 + x_*)\, m\, e_\infty/(\tau - 1)$, where $e_\infty = \rho + x_* - x_*^2 m$ is the
    error on the pool at $\tau = \infty$. For $\tau < 1$, with $\mu = x_* M_{\kappa/\tau}(x_*)$, it is

    $$e = \frac{\tau (1 + x_*)}{1 - \tau} \Bigl[1 - \tau (1 - \mu)^2 - \frac{x_* - \rho}{x_*}\, \mu\Bigr] - 2\tau (1 - \mu)
    + 1 + \rho.$$

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
    mu = x * resolvent(x, kappa / tau)
    first = tau * (1 + x) / (1 - tau) * (1 - tau * (1 - mu) ** 2 - (x - rho) / x * mu)
    return first - 2 * tau * (1 - mu) + rho + 1


def idg_error(alpha: Number, kappa: Number, noise_variance: Number, tau: Number = inf) -> float:
    r"""Return the limit of $E(\hat y - y_q)^2$ on the tasks of the pool, without ridge: $e_{IDG}$.

    For $\tau = \infty$, where $\Gamma = R F^{-1}$, $F = R + x_* I$, it is

    $$e_\infty = \rho + x_* - x_*^2\, M_\kappa(x_*), \qquad x_* = (1 + \rho)/\alpha,$$

    and $e_\infty\, \tau/(\tau - 1)$ for finite $\tau > 1$.

    Least squares on $n = \tau d^2$ prompts has $d^2$ weights whose features have the eigenvalues of $F$, each d times. It acts
    like an infinite sample with a ridge $\lambda$, where $1 - \lambda M = \tau$ for $\tau < 1$ and $\lambda = 0$ for
    $\tau > 1$. With $M = M_\kappa(x_* + \lambda)$ and $M_2 = -M_\kappa'(x_* + \lambda)$

    $$e = \frac{e_\infty + B}{1 - \gamma}, \qquad \gamma = \frac{1 - 2\lambda M + \lambda^2 M_2}\tau, \qquad
    B = \lim \frac{\lambda^2}d\, \mathrm{tr}\, \frac{R^2}{F (F + \lambda)^2} = x_*^2 M_\kappa(x_*) + (\lambda^2 - x_*^2) M
    - \lambda (x_* + \lambda)^2 M_2.$$

    Arguments and errors as for `icl_error`, but $\tau \ge 10^{-6}$. Source: derived here, with the deterministic equivalent
    of least squares; the same equations give `icl_error`.
    """
    alpha, kappa, rho, tau = _checked(alpha, kappa, noise_variance, tau)
    x = (1 + rho) / alpha
    at_the_end = rho + x * _means(resolvent(x, kappa), kappa)[0]
    if tau > 1:
        return at_the_end if isinf(tau) else at_the_end * tau / (tau - 1)
    if tau < 1e-6:
        raise ValueError(
            f"tau must be at least 1e-6 for the error on the pool, got {tau}: below, digits cancel"
        )
    ridge = _root(lambda one: 1 - one * resolvent(x + one, kappa) - tau, 1e300)
    m = resolvent(x + ridge, kappa)
    squared = _squared_resolvent(m, kappa)
    bias = x**2 * resolvent(x, kappa) + (ridge**2 - x**2) * m - ridge * (x + ridge) ** 2 * squared
    return (at_the_end + bias) / (1 - (1 - 2 * ridge * m + ridge**2 * squared) / tau)


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
        r * _grown(r + x, times),
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


class Features(NamedTuple):
    r"""The second moments of task and features of prompts: what the loss of $\Gamma$ depends on.

    Attributes:
        cross: $C = E\,w f^\top$, shape (d, d + 1).
        gram: $F = E f f^\top$, shape (d + 1, d + 1).
        power: $E\,y_q^2$.
        covariance: $\Sigma$ of the inputs, shape (d, d).
    """

    cross: np.ndarray
    gram: np.ndarray
    power: float
    covariance: np.ndarray

    @property
    def minimum(self) -> np.ndarray:
        r"""$\Gamma$ of the least error and norm, shape (d, d + 1): the regression $C F^{-1}$ of $w$ on $f$."""
        units = self._units
        gram, cross = self.gram / np.outer(units, units), self.cross / units
        return np.linalg.lstsq(gram, cross.T, rcond=None)[0].T / units

    def ridge_minimum(self, penalty: Number) -> np.ndarray:
        r"""$\Gamma$ of the least $E(y_q - \hat y)^2 + \frac\lambda d \|\Gamma\|^2$, as the authors' program at $n = \infty$.

        It solves $\Sigma \Gamma F + \frac\lambda d \Gamma = \Sigma C$.

        Args:
            penalty: $\lambda \ge 0$.
        """
        ridge = float(finite_nonnegative("penalty", penalty))
        if not ridge:
            return self.minimum
        scales, rates, left, right = self._axes()
        sizes = scales[:, None]
        return left @ (sizes * (left.T @ self.cross @ right) / (sizes * rates + ridge)) @ right.T

    @property
    def without_squares(self) -> Features:
        r"""The moments without the last feature, $\frac1\ell \sum_i y_i^2$; $\Gamma$ then has shape (d, d)."""
        return Features(self.cross[:, :-1], self.gram[:-1, :-1], self.power, self.covariance)

    def after(self, times: np.ndarray | float) -> np.ndarray:
        r"""$\Gamma$ after gradient flow from 0 on $\frac d2 E(y_q - \hat y)^2$: $\Gamma' = d\,\Sigma\,(C - \Gamma F)$.

        For $\Sigma = I/d$ it is $C\, F^{-1} (I - e^{-tF})$; else each pair of eigenvectors, of $d\,\Sigma$ and of $F$, has the
        product of their eigenvalues as its rate. At the time `math.inf` it is `minimum`.

        Args:
            times: $t \ge 0$, of any shape.

        Returns:
            Shape (…, d, d + 1).
        """
        scales, rates, left, right = self._axes()
        # where F q = 0 the feature fᵀq is 0, and so is C q: Γ q stays 0, but rounding leaves an eigenvalue there
        null = rates <= len(rates) * np.finfo(float).eps * rates[-1]
        sizes = scales[:, None] * np.where(null, 0.0, rates)
        grown = scales[:, None] * np.where(null, 0.0, _grown(sizes, np.asarray(times)[..., None]))
        found = left @ (left.T @ self.cross @ right * grown) @ right.T
        return np.where(np.isinf(times)[..., None, None], self.minimum, found)

    def error(self, gamma: np.ndarray) -> Any:
        r"""Return $E(\hat y - y_q)^2$ of $\Gamma$ on prompts with these moments; of several, where there are leading axes."""
        change = gamma @ self.gram - 2 * self.cross
        return self.power + np.sum(self.covariance @ gamma * change, (-2, -1))

    @property
    def _units(self) -> np.ndarray:
        """The roots of the mean squares of the features, 1 for a feature 0: in them the size of labels changes no rank."""
        sizes = np.sqrt(np.diag(self.gram))
        return np.where(sizes > 0, sizes, 1.0)

    def _axes(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return eigenvalues of d Σ and of F, and their eigenvectors."""
        scales, left = np.linalg.eigh(len(self.covariance) * self.covariance)
        rates, right = np.linalg.eigh(self.gram)
        return scales, rates, left, right


def features(process: LinearRegression | TaskPool, task: FewShot) -> Features:
    r"""Return the exact second moments of the features for $x \sim N(0, \Sigma)$ and the tasks of a process or a pool.

    The features are $D G e_{d+1}/\ell$ with $G = \sum_i e_i e_i^\top$, $e = (x, y)$, $D = \mathrm{diag}(d, \dots, d, 1)$, and
    $E\,G A G = \ell^2 S A S + \ell (S A^\top S + \mathrm{tr}(A S)\, S)$ with $S = E\,e e^\top$ given $w$. With
    $p = w^\top \Sigma w + \sigma^2$

    $$E f f^\top = \begin{pmatrix} d^2 \bigl[(1 + \tfrac1\ell)\, \Sigma\,E w w^\top \Sigma + \tfrac1\ell\, E p\; \Sigma\bigr] &
    d\,(1 + \tfrac2\ell)\, \Sigma\,E\,p\,w \\ \cdot & (1 + \tfrac2\ell)\, E\,p^2 \end{pmatrix}, \qquad
    E\,w f^\top = (d\,E w w^\top \Sigma,\ E\,p\,w).$$

    Where several numbers of examples count they are means with the weights of the task; without examples $f = 0$.

    Args:
        process: linear regression, or a pool of it, with Gaussian inputs, one covariance and one noise. lu2024 has
            `covariance=np.eye(d) / d`, `prior="sphere"` and `noise=rho**0.5`.
        task: the numbers of examples $\ell$ that count.

    Raises:
        TypeError: the process or the task is another; its inputs are not Gaussian, or covariance or noise are random.
    """
    if not isinstance(process, LinearRegression | TaskPool):
        raise TypeError(f"process must be LinearRegression or a TaskPool of it, got {type(process).__name__}")
    if not isinstance(task, FewShot):
        raise TypeError(f"task must be FewShot, got {type(task).__name__}")
    tasks = _tasks(process)
    lengths, weights = np.array(task.support, float), task.weights_array()[list(task.support)]
    shares = weights / weights.sum()
    seen, inverse = shares @ (lengths > 0), shares[lengths > 0] @ (1 / lengths[lengths > 0])
    sigma, dim = tasks.covariance, len(tasks.covariance)
    power, weighted, fourth = tasks.power, sigma @ tasks.weighted, tasks.fourth
    gram = np.empty((dim + 1, dim + 1))
    spread = sigma @ tasks.second @ sigma
    gram[:dim, :dim] = dim**2 * ((seen + inverse) * spread + inverse * power * sigma)
    gram[:dim, dim] = gram[dim, :dim] = dim * (seen + 2 * inverse) * weighted
    gram[dim, dim] = (seen + 2 * inverse) * fourth
    cross = np.column_stack([dim * tasks.second @ sigma, tasks.weighted])
    return Features(seen * cross, gram, power, sigma)


class _Tasks(NamedTuple):
    """Σ, E w wᵀ, E p, E p w and E p² of p = wᵀΣw + σ²."""

    covariance: np.ndarray
    second: np.ndarray
    power: float
    weighted: np.ndarray
    fourth: float


def _tasks(process: LinearRegression | TaskPool) -> _Tasks:
    base = process.process if isinstance(process, TaskPool) else process
    if not isinstance(base, LinearRegression):
        raise TypeError(f"process must be a TaskPool of LinearRegression, not of {type(base).__name__}")
    random = isinstance(base.covariance, RandomDiagonal) or isinstance(base.noise, NoiseRange)
    if random or not isinstance(base.law, Gaussian):
        raise TypeError(
            f"process must have Gaussian inputs, one covariance and one noise; {base.describe()} has not"
        )
    sigma = base.input_covariance
    moments, noise = process.weight_moments(sigma), float(finite_nonnegative("noise", base.noise)) ** 2
    return _Tasks(
        sigma,
        moments[1:-1, 1:-1],
        float(moments[0, -1] + noise),
        moments[1:-1, -1] + noise * moments[1:-1, 0],
        float(moments[-1, -1] + 2 * noise * moments[0, -1] + noise**2),
    )


def prompt_features(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r"""Return queries $x_q$, features $f = (\frac d\ell \sum_i y_i x_i, \frac1\ell \sum_i y_i^2)$ and labels of n prompts.

    Args:
        x: inputs, shape (n, ℓ + 1, d), the last one the query.
        y: labels, shape (n, ℓ + 1).

    Returns:
        Shapes (n, d), (n, d + 1) and (n,).

    Raises:
        TypeError, ValueError: arrays of other shapes, or not real and finite.
    """
    x, y = finite_reals("x", x), finite_reals("y", y)
    if x.ndim != 3 or y.shape != x.shape[:2] or x.shape[1] < 2:
        raise ValueError(
            f"x and y must have shapes (n, ℓ + 1, d) and (n, ℓ + 1), got {x.shape} and {y.shape}"
        )
    examples, labels, dim = x[:, :-1], y[:, :-1], x.shape[2]
    summed = np.einsum("nl,nld->nd", labels, examples) * dim / labels.shape[1]
    return x[:, -1], np.column_stack([summed, (labels**2).mean(1)]), y[:, -1]


def fitted(queries: np.ndarray, features: np.ndarray, labels: np.ndarray, penalty: Number) -> np.ndarray:
    r"""Return the $\Gamma$ of the least $\sum (y_q - x_q^\top \Gamma f)^2 + \frac nd \lambda \|\Gamma\|^2$ over n prompts.

    For $n \to \infty$ it is `Features.ridge_minimum`. The smaller of the two Gram matrices of $h = x_q \otimes f$ is solved.

    Args:
        queries: $x_q$, shape (n, d), as `prompt_features` returns them.
        features: $f$, shape (n, d + 1).
        labels: $y_q$, shape (n,).
        penalty: $\lambda > 0$; the authors' program has 1e-8, for the least norm.

    Returns:
        Shape (d, d + 1).

    Raises:
        TypeError, ValueError: arrays of other shapes, or not real and finite; the penalty is not a finite number > 0.
    """
    queries, features, labels = (
        finite_reals(name, one)
        for name, one in (("queries", queries), ("features", features), ("labels", labels))
    )
    count, dim = queries.shape if queries.ndim == 2 else (0, 0)
    if not count or features.shape != (count, dim + 1) or labels.shape != (count,):
        raise ValueError(
            "queries, features and labels must have shapes (n, d), (n, d + 1) and (n,), got "
            f"{queries.shape}, {features.shape} and {labels.shape}"
        )
    ridge = float(finite_positive("penalty", penalty)) * count / dim
    h = (queries[:, :, None] * features[:, None, :]).reshape(count, -1)
    if count < h.shape[1]:
        gamma = h.T @ np.linalg.solve(h @ h.T + ridge * np.eye(count), labels)
    else:
        gamma = np.linalg.solve(h.T @ h + ridge * np.eye(h.shape[1]), h.T @ labels)
    return gamma.reshape(dim, -1)


def layer(gamma: np.ndarray) -> Construction:
    r"""Return the layer of linear attention that predicts $x_q^\top \Gamma f$, attending to examples with $\rho_t = \ell$.

    $W^{PV}$ reads the label, and $W^{KQ}$ has $(d\,\Gamma_x, \Gamma_y)^\top$ in the columns of the query's input. The label of
    the query becomes $+\hat y$.

    Args:
        gamma: shape (d, d + 1).

    Returns:
        Weights of shape `(1, d + 1, d + 1)`.
    """
    gamma = finite_reals("gamma", gamma)
    dim = len(gamma) if gamma.ndim else 0
    if gamma.shape != (dim, dim + 1):
        raise ValueError(f"gamma must have shape (d, d + 1), got {gamma.shape}")
    w_kq, w_pv = np.zeros((2, 1, dim + 1, dim + 1))
    w_kq[0, :dim, :dim], w_kq[0, dim, :dim] = dim * gamma[:, :dim].T, gamma[:, dim]
    w_pv[0, dim, dim] = 1.0
    return Construction(w_kq, w_pv)


def _root(falling: Callable[[float], float], most: float = 0.5) -> float:
    """Return the root of a function that falls through 0 between 0 and `most`, to the last digits however small it is."""
    low, high = 1e-308, most
    for _ in range(100):
        middle = sqrt(low) * sqrt(high)
        low, high = (middle, high) if falling(middle) > 0 else (low, middle)
    return low


def _grown(rates: np.ndarray, times: np.ndarray | float) -> np.ndarray:
    """Return (1 − exp(−rt))/r, which is t at r = 0, shape (…, rates)."""
    t = np.asarray(times, float)[..., None]
    if (t < 0).any() or np.isnan(t).any():
        raise ValueError("times must be at least 0")
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(rates == 0, t, -np.expm1(-rates * t) / rates)


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
    weights = kappa * half**2 * np.sin(angles) ** 2 / (2 * pi * r) * (widths * shares).ravel()
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


def _squared_resolvent(m: float, kappa: float) -> float:
    """Return lim tr (R + x)⁻²/d = −M′."""
    return m**2 / _means(m, kappa)[2]


def _checked(
    alpha: Number, kappa: Number, noise_variance: Number, tau: Number
) -> tuple[float, float, float, float]:
    alpha, rho = finite_positive("alpha", alpha), finite_nonnegative("noise_variance", noise_variance)
    kappa = _up_to_infinity("kappa", kappa, finite_nonnegative)
    tau = _up_to_infinity("tau", tau, finite_positive)
    for name, value in (("alpha", alpha), ("1 + noise_variance", 1 + rho)):
        if not 1e-50 <= value <= 1e50:
            raise ValueError(f"{name} must lie between 1e-50 and 1e50, got {value}")
    if tau == 1:
        raise ValueError(
            "tau must not be 1: there as many prompts as weights are fitted, and the error is infinite"
        )
    return float(alpha), kappa, float(rho), tau


def _up_to_infinity(name: str, value: Number, finite: Callable[[str, Number], Number]) -> float:
    return inf if isinstance(value, float) and value == inf else float(finite(name, value))
