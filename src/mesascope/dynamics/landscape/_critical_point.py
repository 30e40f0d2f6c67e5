"""The critical point near a guess, such as the end of a flow."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from mesascope.core import below_one, integer_at_least
from mesascope.objectives import Engine
from mesascope.processes import NextToken
from mesascope.records import Printed

from .._outcome import Ending
from .._parameters import Mask
from ._landscape import Landscape, landscape_of, zero_loss
from ._newton import newton_from

Model = TypeVar("Model", bound=eqx.Module)
_FLAT, _NEAR = 1e-3, 1e-3


class Polishing(Ending):
    """How Newton's method ended; `message` says what it means and names the remedy."""

    CONVERGED = "converged", "the gradient vanishes to within the tolerance"
    NOT_NEAR = (
        "not near",
        "the guess is not near a critical point: the size of the gradient has a minimum here that is not zero; "
        "follow gradient_flow further before polishing, or start elsewhere",
    )
    SLOW = (
        "slow",
        "the gradient falls no further, but is above the tolerance: the critical point is degenerate or its weights are out "
        "of balance; loosen tolerance, or start from matrices of about equal size",
    )
    STEP_LIMIT = "step limit", "the step limit was reached first; raise max_steps or start nearer"
    NOT_FINITE = "not finite", "the loss or its curvature is not finite here; start from smaller weights"


class CriticalPoint(Printed, eqx.Module, Generic[Model]):
    """A point where ∇L vanishes, and its distance from the guess.

    Attributes:
        model: the point.
        loss: L there.
        gradient_norm: ‖∇L‖₂, over the entries that are not masked.
        residuals: √(∇L·|H|⁺∇L / L₀) at the guess and after every step, L₀ the loss of the prediction 0: free of the
            scale of weights and data. Quadratic convergence doubles its digits at every step.
        distance: ‖θ − θ_guess‖₂.
        result: how the iteration ended; `result.message` names the remedy where one is needed.
    """

    model: Model
    loss: float
    gradient_norm: float
    residuals: np.ndarray
    distance: float
    result: Polishing

    def _explained(self) -> tuple[str, str]:
        return "meaning", self.result.message

    def _printed(self) -> tuple[str, dict[str, str]]:
        values = {
            self.result.value: f"after {len(self.residuals) - 1} steps",
            "loss": f"{self.loss:.10g}",
            "gradient norm": f"{self.gradient_norm:.2e}",
            "distance from the guess": f"{self.distance:.3g}",
        }
        return f"CriticalPoint of {type(self.model).__name__}", values

    @property
    def converged(self) -> bool:
        """Whether the point is critical to within the tolerance."""
        return self.result is Polishing.CONVERGED

    @property
    def residual(self) -> float:
        """The last of the residuals."""
        return float(self.residuals[-1])


def critical_point(
    guess: Model,
    process: Any,
    task: NextToken,
    *,
    engine: Engine | None = None,
    mask: Mask | None = None,
    tolerance: float = 1e-12,
    max_steps: int = 100,
) -> CriticalPoint[Model]:
    """Solve ∇L(θ) = 0 near a guess, by Newton's method with Levenberg–Marquardt damping where it is needed.

    Critical points come in orbits of the symmetries, such as (s W^KQ, W^PV/s): steps have least norm, so that the guess is
    not moved along them. Saddles attract as minima do. What the point is, `stability` says.

    Args:
        guess: e.g. the end of a flow, `flow.model`.
        process: what generates the sequences.
        task: horizon and weights of the context lengths.
        engine: how the expectation is computed; `ExactMoments()` by default.
        mask: masked entries (see `Mask`).
        tolerance: on the residual (see `CriticalPoint`).
        max_steps: limit on Newton steps.

    Raises:
        ValueError, TypeError: as `gradient_flow`; ValueError when 64-bit mode is off.
    """
    tolerance = below_one("tolerance", tolerance)
    integer_at_least("max_steps", max_steps, 1)
    landscape = landscape_of("critical_point", guess, process, task, engine, mask)
    start = landscape.start
    found, _ = newton_from(landscape, jnp.asarray(start), loss_unit(landscape), max_steps)
    vector, steps = np.asarray(found.vector), int(found.steps)
    residuals = np.asarray(found.residuals)[: steps + 1]
    return CriticalPoint(
        landscape.rebuild(vector),
        float(found.loss),
        float(found.gradient_norm),
        residuals,
        float(np.linalg.norm(vector - start)),
        _result(residuals, float(found.stuck), tolerance, steps >= max_steps),
    )


def loss_unit(landscape: Landscape) -> jax.Array:
    """The loss of the prediction 0, or 1 where that is 0."""
    unit = jnp.abs(zero_loss(landscape))
    return jnp.where(unit > 0, unit, 1.0)


def _result(residuals: np.ndarray, stuck: float, tolerance: float, exhausted: bool) -> Polishing:
    if not np.isfinite(residuals[-1]):
        return Polishing.NOT_FINITE
    if residuals[-1] <= tolerance:
        return Polishing.CONVERGED
    if exhausted:
        return Polishing.STEP_LIMIT
    return Polishing.NOT_NEAR if stuck < _FLAT and residuals[-1] > _NEAR else Polishing.SLOW
