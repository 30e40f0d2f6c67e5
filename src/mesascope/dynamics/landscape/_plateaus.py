"""The plateaus of a flow: the saddles that it visits, when it leaves them, and when their leading order says that it does."""

from __future__ import annotations

import math
from typing import Any, Generic, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from mesascope.records import Figure, Line, Panel, Points, Printed, Rule

from .._flow import Flow
from .._parameters import Mask, mask_vector
from ._critical_point import loss_unit
from ._escape import escape_from, index_of, time_to_fall
from ._landscape import Landscape, gradients, natural_size, real_vectors
from ._newton import Spectrum, newton_from

Model = TypeVar("Model", bound=eqx.Module)
_POLISHED = 100
_CRITICAL = 1e-9  # residual
_SAME = 1e-6  # of the fall of the loss: losses of one saddle
_NEAR = 0.05  # of the fall of the loss: from a saddle to the flow that passes it
_CLOSE = 1e-3  # the same, where no other saddle can be meant
_CUTS = (0.3, 0.1, 0.03, 0.01, 0.0)  # of the natural size of weights: smaller ones are set to 0
_HEAD = ("loss", "index", "order", "rate", "enters", "leaves", "predicted")


class Plateau(eqx.Module, Generic[Model]):
    """A critical point that a flow passes, or ends at.

    Attributes:
        model: the critical point.
        loss: L there.
        passed_at: L of the flow where its gradient is least.
        index: number of negative curvatures.
        order: of the loss along which the flow leaves: 2 if linear, 3 or 4 where the Hessian has no negative curvature; 0
            where the flow rests, or where no order up to 4 falls.
        rate: κ in |z|' = κ|z|^{order − 1}; of order 2 the largest negative curvature. NaN where the order is 0.
        enters: flow time at which the loss is halfway from the critical point before; 0 for the first.
        leaves: flow time at which it is halfway to the next one; infinite where the flow rests, NaN at the last one of a flow
            that does not rest, since where it goes is not known.
        predicted: what the leading order says of `leaves`, from where the flow enters; NaN where that is.
    """

    model: Model
    loss: float
    passed_at: float
    index: int
    order: int
    rate: float
    enters: float
    leaves: float
    predicted: float


class Plateaus(Printed, eqx.Module, Generic[Model]):
    """The plateaus of a flow; `ms.plot` draws them.

    Attributes:
        flow: the flow.
        points: by time; the last one is where the flow rests, if it ended in a steady state.
    """

    flow: Flow[Model]
    points: tuple[Plateau[Model], ...]

    def __len__(self) -> int:
        """The number of critical points."""
        return len(self.points)

    @property
    def losses(self) -> np.ndarray:
        """L at every critical point, shape (len(self),)."""
        return np.array([one.loss for one in self.points])

    def table(self) -> list[dict[str, float]]:
        """One row for every critical point: loss, index, order, rate, enters, leaves, predicted."""
        return [{name: getattr(one, name) for name in _HEAD} for one in self.points]

    def figure(self) -> Figure:
        """The loss over log time, saddles as lines, predicted transitions as marks at half height."""
        flow, drawn = self.flow, self.flow.times > 0
        traces: list[Any] = [Line(x=flow.times[drawn], y=flow.loss[drawn], label="flow", series=0)]
        traces += [Rule(value=one.loss, label="critical points") for one in self.points]
        marks = [
            (one.predicted, (one.loss + after.loss) / 2)
            for one, after in zip(self.points, self.points[1:], strict=False)
            if 0 < one.predicted < math.inf
        ]
        if marks:
            x, y = zip(*marks, strict=True)
            traces.append(Points(x=x, y=y, label="predicted transitions", series=1))
        panel = Panel(
            title=f"{len(self)} critical points",
            xlabel="flow time",
            ylabel="loss",
            xscale="log",
            traces=tuple(traces),
        )
        caption = (
            "The loss along the flow. Horizontal lines are the losses of its critical points; marks, at half height, are the "
            "predicted times at which it falls from one to the next."
        )
        return Figure(title="Plateaus of a flow", panels=(panel,), caption=caption)

    def _printed(self) -> tuple[str, dict[str, str]]:
        values = {
            "losses": ", ".join(f"{one.loss:.6g}" for one in self.points),
            "leaves": ", ".join(f"{one.leaves:.4g}" for one in self.points if math.isfinite(one.leaves)),
            "predicted": ", ".join(
                f"{one.predicted:.4g}" for one in self.points if math.isfinite(one.leaves)
            ),
        }
        return f"Plateaus: {len(self)} critical points", values


def plateaus(flow: Flow[Model], *, mask: Mask | None = None) -> Plateaus[Model]:
    r"""The saddles that a flow visits, the way it leaves each, and when.

    Where ‖∇L‖ has a minimum along the flow, Newton's method looks for a critical point (`critical_point`); it counts if its
    loss is that of the flow there, to a twentieth of the whole fall. The flow leaves it along the lowest order of the loss
    that falls (`Plateau.order`), whose flow z' = −∇V(z) begins at the displacement with which the flow enters and gives
    `predicted`: the time at which V has fallen halfway to the next critical point.

    For order 2 that is $\log(1/\epsilon)$ over the escape rate, plus a constant, for a displacement $\epsilon$. Weights that
    are products of p factors have at 0, and wherever some of them are 0, a saddle of order p: for heads with separate keys and
    queries p = 3, the Hessian has no negative curvature there, and times are $\propto 1/\epsilon$, not logarithms.

    Args:
        flow: a flow with enough saved points to show its plateaus; `saves` of `gradient_flow` is 512 by default.
        mask: of the flow.

    Raises:
        ValueError: the flow has fewer than 3 saved points; when 64-bit mode is off.
        TypeError: not a flow.

    Source: zhang2025 (saddle-to-saddle dynamics); the leading order of the flow is derived here.
    """
    if not isinstance(flow, Flow):
        raise TypeError(f"flow: must be what gradient_flow returned, got {type(flow).__name__}")
    if flow.stats["steps"] == 0:
        raise ValueError(
            f"flow: took no step ({flow.result.message}), so that it shows no plateaus; start elsewhere"
        )
    if len(flow.times) < 3:
        raise ValueError(
            f"flow: {len(flow.times)} saved points show no plateaus; raise saves of gradient_flow, 512 by default"
        )
    landscape = Landscape(flow.objective, flow.model, mask_vector(flow.model, mask))
    path = _Path(flow.times, real_vectors(flow.trajectory), np.asarray(flow.loss))
    unit, size = float(loss_unit(landscape)), natural_size(landscape)
    rests = flow.converged or flow.gradient_norm == 0
    found = _visited(landscape, path, unit, size, rests)
    points, enters = [], 0.0
    for one, after in zip(found, [*found, None][1:], strict=True):
        leaves = math.inf if rests else math.nan
        if after is not None:
            leaves = path.time_of((one.loss + after.loss) / 2)
        if leaves == math.inf:
            index, order, rate, time = index_of(one.hessian, unit, size), 0, math.nan, math.inf
        else:
            escape = escape_from(landscape, one.vector, one.hessian, unit, size)
            index, order = escape.index, escape.order
            fall = (one.loss - after.loss) / 2 if after is not None else math.nan
            time, rate = time_to_fall(escape, path.at(enters) - one.vector, fall)
        points.append(
            Plateau(
                landscape.rebuild(one.vector),
                one.loss,
                float(path.losses[one.place]),
                index,
                order,
                rate,
                enters,
                leaves,
                enters + time,
            )
        )
        enters = leaves
    return Plateaus(flow, tuple(points))


class _Path(NamedTuple):
    """Saved points of a flow."""

    times: np.ndarray
    points: np.ndarray
    losses: np.ndarray

    def time_of(self, loss: float) -> float:
        """When the loss falls to a value, which it does; between saved points by a line."""
        after = int(np.argmax(self.losses <= loss))
        (a, b), (low, high) = self.losses[after - 1 : after + 1], self.times[after - 1 : after + 1]
        return float(low + (a - loss) / (a - b) * (high - low)) if a > b else float(high)

    def at(self, time: float) -> np.ndarray:
        """θ at a time, by a line between saved points."""
        after = min(max(int(np.searchsorted(self.times, time)), 1), len(self.times) - 1)
        low, high = self.times[after - 1 : after + 1]
        share = (time - low) / (high - low)
        return np.asarray((1 - share) * self.points[after - 1] + share * self.points[after])


class _Visited(NamedTuple):
    """A critical point, and the place on the path where the gradient is least."""

    vector: np.ndarray
    loss: float
    hessian: Spectrum
    place: int
    steepness: float


def _visited(landscape: Landscape, path: _Path, unit: float, size: float, rests: bool) -> list[_Visited]:
    """The critical points near minima of ‖∇L‖ along the path, each once, by time."""
    norms = np.linalg.norm(gradients(landscape, path.points), axis=1)
    before = np.r_[np.inf, norms[:-1]]
    after = np.r_[norms[1:], np.inf if rests else -np.inf]
    fall = path.losses[0] - path.losses[-1]
    found: list[_Visited] = []
    for place in np.flatnonzero((norms <= before) & (norms < after)):
        near = _nearest(landscape, path.points[place], float(path.losses[place]), unit, size, fall)
        if near is None:
            continue
        one = _Visited(*near, int(place), float(norms[place]))
        if found and abs(found[-1].loss - one.loss) <= _SAME * fall:
            if one.steepness < found[-1].steepness:
                found[-1] = one
        elif not found or one.loss < found[-1].loss:
            found.append(one)
    return found


def _nearest(
    landscape: Landscape, point: np.ndarray, loss: float, unit: float, size: float, fall: float
) -> tuple[np.ndarray, float, Spectrum] | None:
    """The critical point near a point of the flow, its loss and its Hessian.

    Of those of one loss it is the one with the most weights that are 0: a head of three factors of which two are 0 is critical
    whatever the third is, and Newton's method alone ends where the small third is that of the flow. So small weights are
    set to 0 before it begins, but for those that the mask keeps.
    """
    found: tuple[np.ndarray, float, Spectrum] | None = None
    free = np.asarray(landscape.allowed) == 1
    for cut in _CUTS:
        guess = np.where((np.abs(point) < cut * size) & free, 0.0, point)
        solved = newton_from(landscape, jnp.asarray(guess), jnp.asarray(unit), _POLISHED)
        end, hessian = jax.device_get(solved)
        its = float(end.loss)
        near = end.residuals[end.steps] <= _CRITICAL and abs(its - loss) <= _NEAR * fall
        if near and (found is None or abs(its - loss) < abs(found[1] - loss) - _SAME * fall):
            found = end.vector, its, hessian
            if abs(its - loss) <= _CLOSE * fall:
                break
    return found
