"""The kind of a critical point, by the spectrum of its Hessian without symmetries, and the rate of flows that end there."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from mesascope.objectives import Engine
from mesascope.processes import NextToken
from mesascope.records import Printed

from .._flow import Flow
from .._parameters import Mask, mask_vector
from ._critical_point import loss_unit
from ._landscape import Landscape, expand, gradients, landscape_of, real_vectors
from ._newton import FLAT, residual
from ._symmetry import Symmetries, find_symmetries

Model = TypeVar("Model", bound=eqx.Module)
_CRITICAL = 1e-6
_LAST, _FEWEST = 1e2, 3


class Stability(Printed, eqx.Module, Generic[Model]):
    """The second-order picture of the landscape at a critical point.

    Attributes:
        kind: `"minimum"`, `"maximum"`, `"saddle"` or `"degenerate"`: where no curvature is negative but some vanishes that no
            symmetry explains, the second order does not decide.
        index: number of negative curvatures.
        degenerate: number of vanishing curvatures that no continuous symmetry explains.
        symmetric: number of directions that the continuous symmetries span here.
        curvatures: eigenvalues of ∇²L over the entries that are not masked, ascending.
        directions: a model whose weights carry the orthonormal eigenvectors on their first axis, in the same order.
        loss: L at the point.
    """

    kind: str
    index: int
    degenerate: int
    symmetric: int
    curvatures: np.ndarray
    directions: Model
    loss: float

    def _printed(self) -> tuple[str, dict[str, str]]:
        values = {
            "loss": f"{self.loss:.10g}",
            "curvatures": f"{self.curvatures[0]:.4g} to {self.curvatures[-1]:.4g}",
            "negative": str(self.index),
            "0 by symmetry": str(self.symmetric),
            "0 otherwise": str(self.degenerate),
        }
        return f"Stability: {self.kind}", values

    @property
    def escape_rates(self) -> np.ndarray:
        """Rates at which the flow leaves, −λ of every negative curvature, largest first, shape (index,)."""
        return -self.curvatures[: self.index]

    @property
    def escape_directions(self) -> Model:
        """Directions in which it leaves, stacked like `escape_rates`."""
        return jax.tree.map(lambda w: w[: self.index] if eqx.is_inexact_array(w) else w, self.directions)

    @property
    def convergence_rate(self) -> float:
        """‖∇L‖ falls like e^{−rate·t} along a generic flow that ends here: the least positive curvature; NaN if none is.

        At a degenerate point the approach is slower than any exponential, and 0 is returned.
        """
        if self.degenerate and not self.index:
            return 0.0
        positive = self.curvatures[self.curvatures > FLAT * np.abs(self.curvatures).max()]
        return float(positive[0]) if len(positive) else float("nan")


def stability(
    model: Model, process: Any, task: NextToken, *, engine: Engine | None = None, mask: Mask | None = None
) -> Stability[Model]:
    """Classify a critical point by the exact Hessian: its index, what symmetries explain, rates and directions.

    Args:
        model: a critical point, e.g. from `critical_point`.
        process: what generates the sequences.
        task: horizon and weights of the context lengths.
        engine: how the expectation is computed; `ExactMoments()` by default.
        mask: masked entries (see `Mask`); they have no directions.

    Raises:
        ValueError: where the gradient does not vanish; when 64-bit mode is off.
        ValueError, TypeError: as `gradient_flow`.
    """
    landscape = landscape_of("stability", model, process, task, engine, mask)
    return stability_at(landscape, landscape.start, find_symmetries(landscape))


def stability_at(landscape: Landscape, vector: np.ndarray, known: Symmetries) -> Stability[Any]:
    """Classify the point θ of a landscape whose symmetries are known.

    Raises:
        ValueError: where the gradient does not vanish.
    """
    loss, slope, hessian = (np.asarray(x) for x in expand(landscape, vector))
    free = np.asarray(landscape.allowed) == 1
    curvatures, basis = np.linalg.eigh(hessian[np.ix_(free, free)])
    left = float(residual(jnp.asarray(basis.T @ slope[free]), jnp.asarray(curvatures), loss_unit(landscape)))
    if not np.isfinite(left):
        raise ValueError("model: loss, gradient or curvature is not finite there; take other weights")
    if not left <= _CRITICAL:
        raise ValueError(
            f"model: not a critical point, a Newton step would still lower the loss by {left**2:.1e} of itself (at most "
            f"{_CRITICAL**2:.0e}); polish it first: critical_point(model, process, task).model"
        )
    whole = np.zeros((len(curvatures), len(free)))
    whole[:, free] = basis.T
    null = np.abs(curvatures) <= FLAT * np.abs(curvatures).max()
    symmetric = known.tangents(vector).shape[1]
    index = int(np.sum(~null & (curvatures < 0)))
    degenerate = max(int(null.sum()) - symmetric, 0)
    return Stability(
        _kind(index, int(np.sum(~null)) - index, degenerate),
        index,
        degenerate,
        symmetric,
        curvatures,
        landscape.rebuild(whole),
        float(loss),
    )


def _kind(negative: int, positive: int, degenerate: int) -> str:
    if negative and positive:
        return "saddle"
    if degenerate:
        return "degenerate"
    return "maximum" if negative else "minimum"


def observed_rate(flow: Flow[Any], mask: Mask | None = None) -> float:
    """The rate r of ‖∇L‖ ~ e^{−rt} at the end of a flow, fitted to its saved points.

    Fitted is log‖∇L‖ over the time in which it falls by its last factor of 100: faster parts of the approach have died
    away by then as far as they can. `Stability.convergence_rate` is what it tends to along a generic flow; a flow on an
    invariant manifold sees only the curvatures along it.

    Args:
        flow: one that reached a steady state.
        mask: of the flow.

    Raises:
        ValueError: for a flow that is not in a steady state, or with fewer than 3 saved points in that time.
    """
    if not flow.converged:
        raise ValueError(
            "flow: not in a steady state, so that it has no final rate; let it run until='steady-state'"
        )
    landscape = Landscape(flow.objective, flow.model, mask_vector(flow.model, mask))
    norms = np.linalg.norm(gradients(landscape, real_vectors(flow.trajectory)), axis=1)
    before = np.flatnonzero(norms > _LAST * norms[-1])
    last = slice(before[-1] + 1 if len(before) else 0, None)
    times = flow.times[last]
    if len(times) < _FEWEST or norms[-1] == 0:
        raise ValueError(
            f"flow: {len(times)} saved points in the last factor of 100 of the gradient, at least {_FEWEST} are needed; "
            "start farther away, or raise saves"
        )
    line = np.polynomial.Polynomial.fit(times, np.log(norms[last]), 1).convert()
    return -float(line.coef[1])
