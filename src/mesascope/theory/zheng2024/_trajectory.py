"""The solution of the gradient flow of diagonal weights: a(s), b(s), c(s) = a(s) b(s) and the time to reach any c."""

from dataclasses import dataclass
from math import hypot, inf, isclose, log1p
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...core import finite_number
from ...processes import DiagonalUnitary, NextToken
from ...specs import Number
from ._assumptions import MaskName
from ._limits import flow_coefficients, require_diagonal


class DiagonalState(NamedTuple):
    """Diagonal weights at given times, as arrays of the shape of the times: entries a and b, and c = a b."""

    a: np.ndarray
    b: np.ndarray
    product: np.ndarray


@dataclass(frozen=True)
class DiagonalFlow:
    r"""The solution of $a' = -b(\alpha c - \beta)$, $b' = -a(\alpha c - \beta)$, $c = ab$, from $a_0$, $b_0$.

    In $p = a + b$ and $q = a - b$ the flow is $p' = (\beta - \alpha c)\,p$, $q' = -(\beta - \alpha c)\,q$
    with $c = (p^2 - q^2)/4$. So $\delta = pq = a^2 - b^2$ is conserved, and $z = p^2$ satisfies a Riccati
    equation with constant coefficients,

    $$z' = -\tfrac\alpha2 (z - z_+)(z - z_-), \qquad z_\pm = 2 c_* \pm \sqrt{4 c_*^2 + \delta^2}, \quad
    c_* = \beta/\alpha,$$

    whose solution is a ratio of exponentials with the rate $\gamma = \alpha \sqrt{4 c_*^2 + \delta^2}$.
    (Written in $c$: $c' = -(\alpha c - \beta) \sqrt{4c^2 + \delta^2}$.) From $a_0 = -b_0$, $p = 0$ at
    all times, and the flow converges to the origin, a saddle of the loss.

    Time $s$ is that of the gradient flow $\theta' = -\nabla L$ of the summed loss; $n$ steps of gradient
    descent with a small rate $\eta$ approximate it up to $s = n\eta$. Made by `diagonal_flow`.
    zheng2024 proves the limit (Theorem 4.1); the solution is derived here.

    Attributes:
        alpha: $\alpha > 0$.
        beta: $\beta > 0$.
        a0: initial entry of $W^{KQ}$.
        b0: initial entry of $W^{PV}$.
    """

    alpha: float
    beta: float
    a0: float
    b0: float

    @property
    def conserved(self) -> float:
        r"""$\delta = a^2 - b^2$, which is conserved by the flow."""
        return (self.a0 + self.b0) * (self.a0 - self.b0)

    @property
    def limit(self) -> DiagonalState:
        """The limit of the flow; the product is β/α, or 0 from a₀ = −b₀."""
        return self(inf)

    @property
    def rate(self) -> float:
        r"""The rate of convergence $\gamma$: distances to the limit decrease like $e^{-\gamma s}$."""
        if self._on_stable_manifold:
            return 2 * self.beta
        return self.alpha * hypot(2 * self._target, self.conserved)

    def __call__(self, times: ArrayLike) -> DiagonalState:
        r"""Return $a(s)$, $b(s)$ and $c(s)$.

        Args:
            times: flow times $s \ge 0$, any shape; infinity is the limit.

        Raises:
            ValueError: a time is negative or not a number.
        """
        s = np.asarray(times, dtype=float)
        if not (s >= 0).all():
            raise ValueError("times must be numbers ≥ 0: the flow may not exist at negative times")
        return self._toward_saddle(s) if self._on_stable_manifold else self._toward_minimum(s)

    def time_to_reach(self, product: Number) -> float:
        r"""Return the time $s$ at which $c(s)$ equals a given number.

        $$s = \frac1\gamma \log \frac{(z_0 - z_+)(z - z_-)}{(z_0 - z_-)(z - z_+)}, \qquad
        z = 2c + \sqrt{4c^2 + \delta^2}$$

        Args:
            product: $c$ between the initial product and the limit; the limit itself takes infinite time.

        Raises:
            ValueError: the flow never has this product.
        """
        c, start = float(finite_number("product", product)), self.a0 * self.b0
        end = 0.0 if self._on_stable_manifold else self._target
        if c == start:
            return 0.0
        if isclose(c, end, rel_tol=2e-15):  # the limit up to rounding
            return inf
        if not min(start, end) < c < max(start, end):
            raise ValueError(
                f"the product goes from {start} to {end} and never equals {c}: give one between them"
            )
        if self._on_stable_manifold:
            # y = q² = −4c satisfies y' = −(α/2) y (y + 4c*).
            y, y0, shift = -4 * c, -4 * start, 4 * self._target
            return log1p((y0 - y) * shift / (y * (y0 + shift))) / (2 * self.beta)
        delta, target = self.conserved, self._target
        z0, root0 = (self.a0 + self.b0) ** 2, self.a0**2 + self.b0**2
        (z, root), (top, root_top) = _square_of_sum(c, delta), _square_of_sum(target, delta)
        bottom = -(delta**2) / top
        # Differences of z are computed from differences of c, without cancellation near the start or the limit.
        past = 2 * (start - c) * (z0 + z) / (root0 + root)
        ahead = 2 * (c - target) * (z + top) / (root + root_top)
        return log1p(past * (top - bottom) / ((z0 - bottom) * ahead)) / self.rate

    @property
    def _target(self) -> float:
        return self.beta / self.alpha

    @property
    def _on_stable_manifold(self) -> bool:
        return (self.a0 + self.b0) ** 2 == 0  # including underflow of the square: |a₀ + b₀| below 1e-162

    def _toward_minimum(self, s: np.ndarray) -> DiagonalState:
        """Return the flow from p₀ = a₀ + b₀ ≠ 0: z = N/D with N and D combinations of 1 and e^{−γs}."""
        p0, q0, delta, target = self.a0 + self.b0, self.a0 - self.b0, self.conserved, self._target
        z0, size = p0**2, abs(delta)
        top, root = _square_of_sum(target, delta)  # z₊ and √(4c*² + δ²)
        bottom = delta**2 / top  # −z₋
        decay, grown = np.exp(-self.rate * s), -np.expm1(-self.rate * s)
        numerator = z0 * (top + bottom * decay) + delta**2 * grown
        denominator = z0 * grown + top * decay + bottom
        # c = (z − δ²/z)/4 = (N − |δ|D)(N + |δ|D)/(4ND) loses digits where |c| ≪ |δ|, unless N − |δ|D is
        # expressed by c₀ and c*; then the only remaining difference is that at a change of sign of c.
        memory = 8 * self.a0 * self.b0 * abs(p0) / (abs(p0) + abs(q0)) * root
        pull = 2 * target * (z0 * (1 + 2 * target / (root + size)) + size * (bottom + size) / (root + size))
        product = (memory * decay + pull * grown) * (1 / denominator + size / numerator) / 4
        p = np.copysign(np.sqrt(numerator / denominator), p0)
        if (
            delta >= 0
        ):  # |a| ≥ |b| at all times: p and q have the same sign, and their sum has no cancellation
            a = (p + delta / p) / 2
            return DiagonalState(a, product / a, product)
        b = (p - delta / p) / 2
        return DiagonalState(product / b, b, product)

    def _toward_saddle(self, s: np.ndarray) -> DiagonalState:
        """Return the flow from a₀ = −b₀."""
        q0, shift = self.a0 - self.b0, 4 * self._target
        decay, grown = np.exp(-self.rate * s), -np.expm1(-self.rate * s)
        a = q0 / 2 * np.sqrt(shift * decay / (q0**2 * grown + shift))
        return DiagonalState(a, -a, -(a**2))


def diagonal_flow(
    process: DiagonalUnitary,
    task: NextToken,
    a0: Number,
    b0: Number,
    *,
    mask: MaskName = None,
    normalizer: str = "t-1",
) -> DiagonalFlow:
    r"""Return the gradient flow from diagonal weights $a_0 I$, $b_0 I$ in closed form.

    `flow = diagonal_flow(process, task, 0.1, 0.1)`; `flow(times)` gives `a`, `b` and `product`, `flow.limit`
    their limit, `flow.time_to_reach(c)` the time at which the product is $c$.

    Args:
        process: diagonal unitary sequences.
        task: horizon $T$ and weights $w_t$.
        a0: initial diagonal of the block of $W^{KQ}$ with row $x_{i-1}$, column $x_t$.
        b0: initial diagonal of the block of $W^{PV}$ with column $x_i$.
        mask: `"off-diagonal"` if gradients off the two diagonals are masked.
        normalizer: $\rho_t$, one of `"t-1"`, `"t"`, `"1"`.

    Raises:
        AssumptionError: the flow does not remain diagonal for this law; the message gives the moment that
            violates the condition.
        MomentError: a moment of order 2, 4 or 6 does not exist.
        TypeError: `a0` or `b0` is not a number.
        ValueError: `a0` or `b0` is not finite, or an unknown mask or normalizer.
    """
    require_diagonal(process, mask, "the diagonal flow")
    alpha, beta = flow_coefficients(process, task, normalizer=normalizer)
    start = (float(finite_number(name, value)) for name, value in (("a0", a0), ("b0", b0)))
    return DiagonalFlow(float(alpha), float(beta), *start)


def _square_of_sum(product: float, delta: float) -> tuple[float, float]:
    """Return (a + b)² and a² + b², computed from a b and a² − b²."""
    root = hypot(2 * product, delta)
    return root + 2 * product if product >= 0 else delta**2 / (root - 2 * product), root
