"""GD++ with optimal parameters: the number of layers grows with the logarithm of the condition number."""

from math import ceil, log, sqrt
from typing import NamedTuple

from ...core import finite_positive, integer_at_least
from ...specs import Number


class Schedule(NamedTuple):
    r"""Parameters of GD++, layer by layer, and the guaranteed error.

    Attributes:
        step_sizes: $\eta_0, \dots, \eta_{L-1}$.
        curvatures: $\gamma_0, \dots, \gamma_{L-1}$.
        conditions: $\kappa_0, \dots, \kappa_{L-1}$: the largest condition number at the input of layer $\ell$.
        bound: $\prod_\ell (\kappa_\ell - 1)/(\kappa_\ell + 1)$: the largest $\|w^L - w_*\|/\|w_*\|$.
    """

    step_sizes: tuple[float, ...]
    curvatures: tuple[float, ...]
    conditions: tuple[float, ...]
    bound: float


def second_order_schedule(least: Number, largest: Number, layers: int) -> Schedule:
    r"""Return parameters of GD++ for noiseless prompts whose $S = \frac1N \sum_i x_i x_i^\top$ has eigenvalues in $[\nu, \mu]$.

    A layer multiplies the error of $w$ by $I - \eta_\ell S_\ell$ and replaces $S_{\ell+1} = (I - \gamma_\ell
    S_\ell)^2 S_\ell$. On $[\nu, \mu]$ the function $s (1 - \gamma s)^2$ takes the same value at both ends for

    $$\gamma = \frac1{\nu + \sqrt{\nu\mu} + \mu}, \qquad \kappa \leftarrow \frac4{27}
    \frac{(1 + \sqrt\kappa + \kappa)^3}{\kappa (1 + \sqrt\kappa)^2},$$

    which gives the smallest condition number; the maximum $4/(27 \gamma)$ is in the interior. For large $\kappa$ a layer
    divides $\kappa$ by nearly $27/4$, as do $\log_2 \frac{27}4 = 2.75$ Newton iterations from $\alpha I$, each of
    which squares $I - \alpha S$; near 1 it maps $\kappa - 1$ to $\frac{3}{16}(\kappa - 1)^2$. The step size is
    $\eta_\ell = 2/(\nu_\ell + \mu_\ell)$.

    Args:
        least: $\nu > 0$.
        largest: $\mu \ge \nu$.
        layers: $L \ge 1$.

    Raises:
        TypeError, ValueError: an argument that is not a number, or out of range.

    Source: derived here. vladymyrov2024, Theorem 5.1, states that $O(\log \kappa + \log\log \frac1\varepsilon)$
    layers suffice.
    """
    low, high = float(finite_positive("least", least)), float(finite_positive("largest", largest))
    if high < low:
        raise ValueError(f"largest must be at least least = {low:g}, got {high:g}")
    steps, curvatures, conditions, bound = [], [], [], 1.0
    for _ in range(integer_at_least("layers", layers, 1)):
        curvature = 1 / (low + sqrt(low * high) + high)
        steps.append(2 / (low + high))
        curvatures.append(curvature)
        conditions.append(high / low)
        bound *= (high - low) / (high + low)
        low, high = low * (1 - curvature * low) ** 2, 4 / (27 * curvature)
        high = max(low, high)  # against rounding if they are equal
    return Schedule(tuple(steps), tuple(curvatures), tuple(conditions), bound)


def gradient_steps(condition: Number, error: Number) -> int:
    r"""Return the number of steps of gradient descent with the best constant step size that guarantees an error.

    $\log \varepsilon / \log \frac{\kappa - 1}{\kappa + 1}$, rounded up.

    Args:
        condition: $\kappa > 1$.
        error: $0 < \varepsilon < 1$, the largest $\|w - w_*\|/\|w_*\|$.

    Raises:
        TypeError, ValueError: an argument that is not a number, or out of range.
    """
    kappa, epsilon = float(finite_positive("condition", condition)), float(finite_positive("error", error))
    if kappa <= 1 or epsilon >= 1:
        raise ValueError(f"condition must be above 1 and error below 1, got {kappa:g} and {epsilon:g}")
    return ceil(log(epsilon) / log((kappa - 1) / (kappa + 1)))
