"""The best reduced layer for a given pool, and the layer fitted to prompts, in a finite dimension."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...core import finite_nonnegative, finite_positive, finite_reals
from ...processes import FewShot, Gaussian, LinearRegression, NoiseLevels, RandomDiagonal, TaskPool
from ...specs import Number
from .._construction import Construction
from ._flow import checked_times, grown


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
        times = checked_times(times)
        gained = scales[:, None] * np.where(null, 0.0, grown(sizes, times[..., None]))
        found = left @ (left.T @ self.cross @ right * gained) @ right.T
        return np.where(np.isinf(times)[..., None, None], self.minimum, found)

    def error(self, gamma: np.ndarray) -> Any:
        r"""Return $E(\hat y - y_q)^2$ of $\Gamma$ on prompts with these moments; of several, where there are leading axes.

        Args:
            gamma: $\Gamma$, shape (…, d, d + 1); (…, d, d) without squares.

        Raises:
            TypeError, ValueError: an array of another shape, or not real and finite.
        """
        gamma = finite_reals("gamma", gamma)
        if gamma.shape[-2:] != self.cross.shape:
            raise ValueError(
                f"gamma must have shape (…, {', '.join(map(str, self.cross.shape))}), got {gamma.shape}"
            )
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
    random = isinstance(base.covariance, RandomDiagonal) or isinstance(base.noise, NoiseLevels)
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
