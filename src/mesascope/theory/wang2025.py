r"""Layers with a memory as solvers of regression in context (wang2025, arXiv 2501.12352): their exact errors.

Setting: examples $y_i = w_i^\top x_i + \sigma \xi_i$ with independent $x_i \sim N(0, \Sigma)$, $w_1 \sim N(0, I)$ and
$w_{i+1} = w_i + \delta \zeta_i$; $\xi_i$, $\zeta_i$ are standard normal. A memory $M_n$, a row of $d$ numbers, is written by
the pairs $(x_i, y_i)$, and $\hat y = M_n x_q$ is compared with the label of a query $x_q$ whose weights are $w_{n+1}$.

With constant gates most rules are linear in their state $s$, the rows $M$, others such as a velocity, and last $w$:

$$s_{i+1} = A_i s_i + g(x_i)\, (B_i s_i x_i + c_i \sigma \xi_i)\, x_i^\top,$$

with $g = 1$, or $g = 1/(\epsilon + |x|^2)$. So the second moments $C_{jk} = E\, s_j^\top s_k$ follow a linear recursion, and
the squared error after $n$ examples is exact. It is derived here; the paper says which regression problem each layer solves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain, cycle, pairwise, repeat
from typing import Any, NamedTuple

import numpy as np
import scipy  # its parts are imported where they are first used: half a second, which few programs need

from ..core import covariance_matrix, finite_nonnegative, finite_number, integer_at_least
from ..specs import Number

_LARGEST = 1e150
"""Errors beyond this are reported as infinite, before their squares overflow."""


class LinearStep(NamedTuple):
    r"""How a rule with constant gates maps its state, the rows $M, \dots, w$, at one example.

    Attributes:
        keep: $A$, shape (k, k).
        write: $B$, shape (k, k); its last row is 0: the task is not written. Its last column is $c$: labels are $w x$ plus
            noise.
    """

    keep: np.ndarray
    write: np.ndarray


class InputMoments(NamedTuple):
    r"""Moments of the inputs, with their factor $g(x)$.

    Attributes:
        first: $E\,g\,x x^\top$, shape (d, d).
        second: $E\,g^2 x x^\top$, shape (d, d).
        fourth: a matrix $S$ → $E\,g^2 x x^\top S\, x x^\top$.
        query: $E\,x x^\top$, shape (d, d).
    """

    first: np.ndarray
    second: np.ndarray
    fourth: Callable[[np.ndarray], np.ndarray]
    query: np.ndarray


def linear_attention(step_size: Number, decay: Number = 1.0) -> Iterator[LinearStep]:
    r"""Yield the steps of linear attention, and with $\phi < 1$ of retention: $M \leftarrow \phi M + \eta\, y x^\top$.

    Args:
        step_size: $\eta$.
        decay: $\phi$.

    Raises:
        TypeError, ValueError: for anything but finite numbers.

    Source: wang2025, section on linear attention; sun2023 for $\phi < 1$.
    """
    eta, phi = float(finite_number("step_size", step_size)), float(finite_number("decay", decay))
    return repeat(_step([[phi, 0], [0, 1]], [[0, eta], [0, 0]]))


def delta_rule(step_size: Number, decay: Number = 1.0) -> Iterator[LinearStep]:
    r"""Yield the steps of DeltaNet, and with $\phi < 1$ of gated DeltaNet: $M \leftarrow \phi M + \eta (y - \phi M x) x^\top$.

    With the moments of `normalized_inputs` they are those of normalized least mean squares; for $\eta = 1$ and $\phi = 1$ of
    Longhorn with $\beta = 1/\epsilon$. For $\phi = 1$ and inputs $x \sim N(0, s^2 I)$ errors stay bounded if
    $0 < \eta s^2 < 2/(d + 2)$: without noise and drift every example multiplies the squared error by
    $1 - 2 \eta s^2 + (d + 2) \eta^2 s^4$.

    Args:
        step_size: $\eta$.
        decay: $\phi$.

    Raises:
        TypeError, ValueError: for anything but finite numbers.

    Source: yang2024, yang2025.
    """
    eta, phi = float(finite_number("step_size", step_size)), float(finite_number("decay", decay))
    return repeat(_step([[phi, 0], [0, 1]], [[-eta * phi, eta], [0, 0]]))


def momentum(step_size: Number, momentum: Number, forgetting: Number = 0.0) -> Iterator[LinearStep]:
    r"""Yield the steps of Titans: $V \leftarrow \beta V + \eta (y - M x) x^\top$, then $M \leftarrow (1 - \alpha) M + V$.

    Args:
        step_size: $\eta$.
        momentum: $\beta$.
        forgetting: $\alpha$.

    Raises:
        TypeError, ValueError: for anything but finite numbers.

    Source: behrouz2025.
    """
    eta, beta = float(finite_number("step_size", step_size)), float(finite_number("momentum", momentum))
    alpha = float(finite_number("forgetting", forgetting))
    keep = [[1 - alpha, beta, 0], [0, beta, 0], [0, 0, 1]]
    return repeat(_step(keep, [[-eta, 0, eta], [-eta, 0, eta], [0, 0, 0]]))


def mini_batches(step_size: Number, batch: int) -> Iterator[LinearStep]:
    r"""Yield the steps of TTT-Linear without normalization and bias: $M \leftarrow M + \eta (y - M' x) x^\top$.

    $M'$ is the memory before the first of every $b$ examples.

    Args:
        step_size: $\eta$.
        batch: $b \ge 1$.

    Raises:
        TypeError, ValueError: `step_size` is not a finite number, `batch` is not an integer ≥ 1.

    Source: sun2024, section on mini-batch TTT.
    """
    eta, size = float(finite_number("step_size", step_size)), integer_at_least("batch", batch, 1)
    first = _step([[1, 0, 0], [1, 0, 0], [0, 0, 1]], [[-eta, 0, eta], [0, 0, 0], [0, 0, 0]])
    later = _step([[1, 0, 0], [0, 1, 0], [0, 0, 1]], [[0, -eta, eta], [0, 0, 0], [0, 0, 0]])
    return cycle(chain([first], repeat(later, size - 1)))


def gaussian_inputs(covariance: Any) -> InputMoments:
    r"""Return the moments of $x \sim N(0, \Sigma)$ with $g = 1$.

    $$E\,x x^\top S\,x x^\top = \Sigma (S + S^\top) \Sigma + \Sigma\, \mathrm{tr}\, \Sigma S.$$

    Args:
        covariance: $\Sigma$, symmetric positive definite, shape (d, d).

    Raises:
        TypeError, ValueError: it is not such a matrix.
    """
    sigma = covariance_matrix("covariance", covariance)

    def fourth(matrix: np.ndarray) -> np.ndarray:
        return sigma @ (matrix + matrix.T) @ sigma + sigma * np.trace(sigma @ matrix)

    return InputMoments(sigma, sigma, fourth, sigma)


def normalized_inputs(dim: int, offset: Number) -> InputMoments:
    r"""Return the moments of $x \sim N(0, I_d)$ with $g = 1/(\epsilon + |x|^2)$.

    The direction of $x$ is independent of $r = |x|^2$, which has a χ² law with $d$ degrees of freedom: $E\,g\,x x^\top =
    E[r/(\epsilon + r)]\, I/d$, and $E\,g^2 x x^\top S\,x x^\top = E[r^2/(\epsilon + r)^2]\,(S + S^\top + I\, \mathrm{tr}\,S)/
    (d(d + 2))$. The integrals over $r$ are accurate to about 1e-13.

    Args:
        dim: $d \ge 1$; with `offset` 0 at least 3, below which $E\,g^2 x x^\top$ is infinite.
        offset: $\epsilon \ge 0$.

    Raises:
        TypeError, ValueError: for other values.
    """
    d, epsilon = integer_at_least("dim", dim, 1), float(finite_nonnegative("offset", offset))
    if epsilon == 0 and d < 3:
        raise ValueError(
            f"offset: must be > 0 for dim = {d}: the step of a short input is unbounded; use dim ≥ 3"
        )
    law = scipy.stats.chi2(d)

    def mean(power: int, divisor: int) -> float:
        def integrand(r: float) -> float:
            return float(r**power / (epsilon + r) ** divisor * law.pdf(r))

        pieces = pairwise((0, 1, d + 1, np.inf))
        return sum(scipy.integrate.quad(integrand, *ends, epsabs=1e-14, epsrel=1e-13)[0] for ends in pieces)

    one, four = np.eye(d), mean(2, 2) / (d * (d + 2))

    def fourth(matrix: np.ndarray) -> np.ndarray:
        return four * (matrix + matrix.T + one * np.trace(matrix))

    return InputMoments(mean(1, 1) / d * one, mean(1, 2) / d * one, fourth, one)


def squared_errors(
    steps: Iterator[LinearStep],
    inputs: InputMoments,
    examples: int,
    *,
    drift: Number = 0.0,
    noise: Number = 0.0,
    gain: Number = 1.0,
) -> np.ndarray:
    r"""Return $E (\hat y - y)^2$ with $\hat y = \kappa M_n x_q$ after $n = 0, \dots, N$ examples.

    The noise of the label of the query is included; the factor ½ of losses of this package is not. One example costs
    $O(k^2 d^3)$.

    Args:
        steps: of `linear_attention`, `delta_rule`, `momentum` or `mini_batches`.
        inputs: of `gaussian_inputs` or `normalized_inputs`.
        examples: $N \ge 1$.
        drift: $\delta \ge 0$.
        noise: $\sigma \ge 0$.
        gain: $\kappa$, a factor of the prediction.

    Returns:
        Shape (N + 1,); infinite from where the errors exceed 1e150.

    Raises:
        TypeError, ValueError: for other values.
    """
    count = integer_at_least("examples", examples, 1)
    walk, variance = finite_nonnegative("drift", drift) ** 2, float(finite_nonnegative("noise", noise)) ** 2
    factor, dim, moments = float(finite_number("gain", gain)), len(inputs.query), None
    errors = np.full(count + 1, np.inf)
    for n, step in zip(range(count + 1), steps, strict=False):
        if moments is None:
            moments = _at_start(len(step.keep), dim)
        crossed = moments[0, -1] + moments[-1, 0]
        error = factor**2 * moments[0, 0] - factor * crossed + moments[-1, -1]
        errors[n] = np.trace(inputs.query @ error) + variance
        if not errors[n] < _LARGEST:
            errors[n:] = np.inf
            break
        moments = _next(moments, step, inputs, variance)
        moments[-1, -1] += float(walk) * np.eye(dim)
    return errors


def best_step_size(
    steps_of: Callable[[float], Iterator[LinearStep]],
    inputs: InputMoments,
    examples: int,
    *,
    drift: Number = 0.0,
    noise: Number = 0.0,
) -> tuple[float, float]:
    r"""Return the step size that is best after N examples, and its error.

    It is the lowest of 60 step sizes between $10^{-4}/\lambda$ and $4/\lambda$, $\lambda$ the largest eigenvalue of $E\,g\,x
    x^\top$, refined by Brent's method between its neighbours; where the first is the lowest the search goes on from
    $10^{-8}/\lambda$, $10^{-12}/\lambda$.

    Args:
        steps_of: a step size → the steps of a rule.
        inputs: of `gaussian_inputs` or `normalized_inputs`.
        examples: $N \ge 1$.
        drift: $\delta \ge 0$.
        noise: $\sigma \ge 0$.

    Raises:
        TypeError, ValueError: as for `squared_errors`; ValueError: no step size lowers the error by more than rounding.
    """

    def error(logarithm: float) -> float:
        steps = steps_of(float(np.exp(logarithm)))
        return float(squared_errors(steps, inputs, examples, drift=drift, noise=noise)[-1])

    scale = np.log(float(np.linalg.eigvalsh(inputs.first)[-1]))
    for lowest in (1e-4, 1e-8, 1e-12):
        tried = np.linspace(np.log(lowest), np.log(4), 60) - scale
        best = int(np.argmin([error(one) for one in tried]))
        if best > 0:
            break
    else:
        raise ValueError(
            f"noise, examples: no step size lowers the error by more than rounding, got {noise} and {examples}; "
            "take less noise"
        )
    ends = tried[max(best - 1, 0)], tried[min(best + 1, len(tried) - 1)]
    found = scipy.optimize.minimize_scalar(error, bounds=ends, method="bounded", options={"xatol": 1e-9})
    return float(np.exp(found.x)), float(found.fun)


def best_linear_attention_error(covariance: Any, examples: int, noise: Number = 0.0) -> float:
    r"""Return the least error of linear attention over its step size, for weights that stand still.

    $$\mathrm{tr}\, \Sigma + \sigma^2 - \frac{N (\mathrm{tr}\, \Sigma^2)^2}{(N + 1)\, \mathrm{tr}\, \Sigma^3 +
    (\mathrm{tr}\, \Sigma + \sigma^2)\, \mathrm{tr}\, \Sigma^2}.$$

    Args:
        covariance: $\Sigma$, symmetric positive definite, shape (d, d).
        examples: $N \ge 1$.
        noise: $\sigma \ge 0$.

    Raises:
        TypeError, ValueError: for other values.
    """
    values = np.linalg.eigvalsh(covariance_matrix("covariance", covariance))
    count, variance = (
        integer_at_least("examples", examples, 1),
        float(finite_nonnegative("noise", noise)) ** 2,
    )
    first, second, third = (float(np.sum(values**power)) for power in (1, 2, 3))
    return first + variance - count * second**2 / ((count + 1) * third + (first + variance) * second)


def least_squares_error(dim: int, examples: int, noise: Number) -> float:
    r"""Return the error of least squares, $\sigma^2 (1 + d/(N - d - 1))$, which no covariance changes.

    It is $\sigma^2 (1 + E\, \mathrm{tr}\, \Sigma (X^\top X)^{-1})$, with the mean of an inverse Wishart matrix.

    Args:
        dim: $d \ge 1$.
        examples: $N \ge d + 2$, below which the mean is infinite for noisy labels.
        noise: $\sigma \ge 0$.

    Raises:
        TypeError, ValueError: for other values.
    """
    d, variance = integer_at_least("dim", dim, 1), float(finite_nonnegative("noise", noise)) ** 2
    return variance * (1 + d / (integer_at_least("examples", examples, d + 2) - d - 1))


def _step(keep: Any, write: Any) -> LinearStep:
    return LinearStep(np.array(keep, float), np.array(write, float))


def _at_start(states: int, dim: int) -> np.ndarray:
    """Return the moments of s = (0, …, 0, w), shape (k, k, d, d)."""
    moments = np.zeros((states, states, dim, dim))
    moments[-1, -1] = np.eye(dim)
    return moments


def _next(moments: np.ndarray, step: LinearStep, inputs: InputMoments, variance: float) -> np.ndarray:
    """Return E s'_jᵀ s'_k after one example, from E s_jᵀ s_k."""
    (keep, write), noise = step, step.write[:, -1]
    kept = np.einsum("ij,kl,jlab->ikab", keep, keep, moments)
    crossed = np.einsum("ij,kl,jlab->ikab", keep, write, moments) @ inputs.first
    written = np.einsum("ij,kl,jlab->ikab", write, write, moments)
    both = np.array([[inputs.fourth(one) for one in row] for row in written])
    crossed_back = np.moveaxis(crossed, (0, 1, 2, 3), (1, 0, 3, 2))
    return (
        kept
        + crossed
        + crossed_back
        + both
        + variance * np.multiply.outer(np.outer(noise, noise), inputs.second)
    )
