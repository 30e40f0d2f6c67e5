r"""Gradient descent in the forward pass of linear attention (vonoswald2023, arXiv 2212.07677).

Setting: tokens $(x_i, y_i) \in \mathbb{R}^{d+1}$, $i = 1, \dots, N$, and a query $(x_q, 0)$. In-context least
squares is $R(w) = \frac1{2N} \sum_i (w^\top x_i - y_i)^2$, and $\hat y$ is minus the last entry of the query
token after the last layer. All constructions here sum over the $N$ examples only and have $\rho = N$.
"""

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from ..core import exact, finite_nonnegative, finite_number, finite_positive, integer_at_least
from ..specs import Number
from ._construction import Construction, PerLayer, construction, one_per_layer, stack_layers

_SINE_NODES = 50  # with 1200 of them the loss of the default arguments is the same to 13 digits


def gradient_descent_step(dim: int, step_size: Number) -> Construction:
    r"""Return one layer that is one step of gradient descent, $w \leftarrow w - \eta \nabla R(w)$.

    $W^{KQ} = \mathrm{diag}(I_d, 0)$ and $W^{PV} = -\eta\, \mathrm{diag}(0_d, 1)$ add $-\frac\eta N \sum_i y_i
    x_i^\top x_j$ to every label $y_j$. If the labels are the residuals $y_j - w^\top x_j$, this is $-\Delta
    w^\top x_j$ with $\Delta w = -\eta \nabla R(w)$: labels remain residuals. The query's label is initially $0$,
    which is $w = 0$, and becomes $-w^\top x_q$.

    Args:
        dim: $d \ge 1$.
        step_size: $\eta$.

    Returns:
        Weights of shape `(1, d + 1, d + 1)`.

    Raises:
        TypeError, ValueError: `dim` is not an integer ≥ 1, `step_size` is not a finite number.

    Source: vonoswald2023, Proposition 1 ($W_K = W_Q = \mathrm{diag}(I, 0)$, $W_V = \mathrm{diag}(0, -1)$,
    $P = \frac\eta N I$; $W_0 = 0$).
    """
    return _layer(dim, float(finite_number("step_size", step_size)), 0.0)


@construction("gradient-descent", step_sizes=[0.1])
def gradient_descent(dim: int, step_sizes: PerLayer) -> Construction:
    r"""Return layers that are steps of gradient descent from $w_0 = 0$, one for each step size $\eta_\ell$.

    $w_{\ell+1} = w_\ell - \eta_\ell \nabla R(w_\ell)$; see `gradient_descent_step`.

    Args:
        dim: $d \ge 1$.
        step_sizes: $\eta_0, \dots, \eta_{L-1}$.

    Returns:
        Weights of shape `(L, 1, d + 1, d + 1)`.

    Raises:
        TypeError, ValueError: `dim` is not an integer ≥ 1, `step_sizes` not one finite number for each of at least
            one layer.
    """
    return stack_layers(_layer(dim, step, 0.0) for step in one_per_layer("step_sizes", step_sizes))


@construction("gradient-descent++", step_sizes=[0.1], curvatures=[0.1])
def gradient_descent_plus_plus(dim: int, step_sizes: PerLayer, curvatures: PerLayer) -> Construction:
    r"""Return layers of GD++: a gradient step on the labels together with a curvature correction of the inputs.

    With the examples' second moments $S = \frac1N \sum_i x_i x_i^\top$, layer $\ell$ replaces

    $$x_j \leftarrow (I - \gamma_\ell S) x_j, \qquad
    y_j \leftarrow y_j - \frac{\eta_\ell}N \sum_i y_i x_i^\top x_j$$

    for examples and query; the right sides and $S$ are evaluated before the layer. $W^{KQ} =
    \mathrm{diag}(I_d, 0)$ computes $x_i^\top x_j$, and $W^{PV} = -\mathrm{diag}(\gamma_\ell I_d, \eta_\ell)$ adds
    both sums.

    Args:
        dim: $d \ge 1$.
        step_sizes: $\eta_0, \dots, \eta_{L-1}$.
        curvatures: $\gamma_0, \dots, \gamma_{L-1}$; $0$ is plain gradient descent.

    Returns:
        Weights of shape `(L, 1, d + 1, d + 1)`.

    Raises:
        TypeError, ValueError: `dim` is not an integer ≥ 1, the others are not one finite number for each of at least one
            layer, or have different lengths.
    """
    steps, gammas = one_per_layer("step_sizes", step_sizes), one_per_layer("curvatures", curvatures)
    if len(steps) != len(gammas):
        raise ValueError(
            f"curvatures: got {len(gammas)} numbers for {len(steps)} step_sizes; give one of each per layer"
        )
    return stack_layers(_layer(dim, step, gamma) for step, gamma in zip(steps, gammas, strict=True))


def best_step_size(
    dim: int, examples: int, *, variance: Number = 1, kurtosis: Number = 3, noise_variance: Number = 0
) -> Fraction:
    r"""Return the optimal step size of one step of gradient descent from zero.

    $$\eta_* = \frac{N}{s^2 (N + d + \kappa - 2) + \sigma^2}$$

    The population is $y_i = w^\top x_i + \xi_i$ with independent, identically distributed, centred coordinates
    of the $x_i$ and of the query, $E w w^\top = I$ and noise $\xi_i$, all independent. One step gives
    $\hat w = \frac\eta N g$, $g = \sum_i y_i x_i$, where $E\, w^\top g = t_1 = N d s^2$ and $E |g|^2 = t_2 = N d s^4
    (\kappa + d - 1) + N (N-1) d s^4 + \sigma^2 t_1$: its error $s^2 E |\hat w - w|^2$ is smallest for $\eta_* = N
    t_1/t_2$. The Gaussian law of $x$ has $\kappa = 3$, the uniform $\frac95$.

    Args:
        dim: $d \ge 1$.
        examples: $N \ge 1$.
        variance: $s^2 > 0$ of a coordinate of $x$.
        kurtosis: $\kappa = E x_{ij}^4 / s^4 \ge 1$.
        noise_variance: $\sigma^2 \ge 0$, or its mean if it is drawn for every prompt.

    Raises:
        TypeError, ValueError: an argument that is not a number, or out of range.

    Source: derived here, for the comparison of trained layers with gradient descent in vonoswald2023, section 3.
    """
    n, d = integer_at_least("examples", examples, 1), integer_at_least("dim", dim, 1)
    s2 = exact(finite_positive("variance", variance))
    kappa = exact(finite_number("kurtosis", kurtosis))
    if kappa < 1:
        raise ValueError(f"kurtosis must be at least 1, got {kurtosis}: E x⁴ is never below (E x²)²")
    noise = exact(finite_nonnegative("noise_variance", noise_variance))
    return n / (s2 * (n + d + kappa - 2) + noise)


def best_one_step_loss(
    dim: int, examples: int, *, variance: Number = 1, kurtosis: Number = 3, noise_variance: Number = 0
) -> Fraction:
    r"""Return the minimal population loss of one step of gradient descent from zero.

    $$L_* = \tfrac12 E (\hat y - y_q)^2 = \tfrac12 \left( d s^2 (1 - s^2 \eta_*) + \sigma^2 \right)$$

    at $\eta_*$ of `best_step_size`, where $y_q$ is the noisy label of the query: the loss of the task
    `FewShot(examples)`. Noiseless Gaussian inputs have $L_* = \frac{d(d+1)}{2(N+d+1)}$.

    Arguments and errors as in `best_step_size`.
    """
    best = best_step_size(dim, examples, variance=variance, kurtosis=kurtosis, noise_variance=noise_variance)
    s2 = exact(finite_number("variance", variance))
    noise = exact(finite_number("noise_variance", noise_variance))
    return (dim * s2 * (1 - s2 * best) + noise) / 2


def best_sine_step_loss(
    examples: int, *, half_width: float = 5.0, least: float = 0.1, largest: float = 0.5
) -> float:
    r"""Return the minimal loss on sine waves of one step of gradient descent on features of the inputs.

    $$L_* = \tfrac12 \sum_{j=1}^2 \frac{\sigma_j\, E \phi_j(x)^2\, (1 - m_j)}{1 + (N - 1)\, m_j}, \qquad
    m_j = E\, \frac{\sigma_j \phi_j(x)^2}{\sum_k \sigma_k \phi_k(x)^2}$$

    The curves are $y(x) = A \sin(x + \varphi) = w^\top \phi(x)$ with $\phi = (\sin, \cos)$ and $w = A (\cos \varphi,
    \sin \varphi)$, whose coordinates are uncorrelated with variances $\sigma_1 = \frac12 E A^2$ and $\sigma_2 = \frac12
    E A^2 - (\frac2\pi E A)^2$. A step on any features of $x$, from any function, with any fixed matrix as preconditioner,
    is $\hat y = m(x_q) + \frac1N \sum_i (k(x_i, x_q)\, y_i + g(x_i, x_q))$. The best $m$ and $g$ take off the mean of
    $w$. With $\Sigma = \mathrm{diag}(\sigma_1, \sigma_2)$ and $M = \mathrm{diag}(m_1, m_2)$, $E (\hat y - y_q)^2$ is then
    least for $k(x, x_q) = N \phi(x)^\top \Sigma\, (\phi(x_q) - (1 - \frac1N)\, b)/\phi(x)^\top \Sigma\, \phi(x)$, where
    $b = E\, k \phi = (I + (N - 1) M)^{-1} N M \phi(x_q)$.

    Args:
        examples: $N \ge 1$.
        half_width: $h > 0$; inputs and query are uniform on $[-h, h]$.
        least: the least amplitude, > 0; the phase is uniform on $[0, \pi]$.
        largest: the largest amplitude.

    Raises:
        TypeError, ValueError: an argument that is not a number, or out of range.

    Source: derived here, for the comparison of trained networks with gradient descent in vonoswald2023, section 3, Figure 4.
    """
    n, h = integer_at_least("examples", examples, 1), float(finite_positive("half_width", half_width))
    low, high = (float(finite_positive(*one)) for one in (("least", least), ("largest", largest)))
    if high < low:
        raise ValueError(f"largest, {high:g}, is below least, {low:g}: swap them")
    square, mean = (low**2 + low * high + high**2) / 3, (low + high) / 2
    variances = np.array([square / 2, square / 2 - (2 / np.pi * mean) ** 2])

    def parts(x: np.ndarray) -> np.ndarray:
        return variances[:, None] * np.stack([np.sin(x), np.cos(x)]) ** 2

    shares = _mean_of_periods(lambda x: parts(x) / parts(x).sum(0), h)
    return float(0.5 * np.sum(_mean_of_periods(parts, h) * (1 - shares) / (1 + (n - 1) * shares)))


def _mean_of_periods(function: Callable[[np.ndarray], np.ndarray], end: float) -> np.ndarray:
    """The mean over [0, end] of a function with period π, by a Gauss–Legendre rule on a whole period and on what remains."""
    nodes, weights = np.polynomial.legendre.leggauss(_SINE_NODES)
    periods, rest = divmod(end, np.pi)
    over = {length: function((nodes + 1) * length / 2) @ weights / 2 for length in (np.pi, rest)}
    return np.asarray((periods * np.pi * over[np.pi] + rest * over[rest]) / end)


def _layer(dim: int, step_size: float, curvature: float) -> Construction:
    """Return the layer with x_j − γ/N Σ_i x_i (x_iᵀx_j) and y_j − η/N Σ_i y_i (x_iᵀx_j)."""
    dim = integer_at_least("dim", dim, 1)
    w_kq = np.diag([1.0] * dim + [0.0])
    return Construction(w_kq[None], -np.diag([curvature] * dim + [step_size])[None])
