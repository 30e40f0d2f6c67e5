"""A flow with the plateaus on its way."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mesascope.core import Progress
from mesascope.specs import SpecError

from ._flow import FlowResult, FlowSpec
from ._model_flow import ModelFlowResult, ModelFlowSpec

if TYPE_CHECKING:
    from mesascope.dynamics import Flow, Plateaus

_SAVES = 2048


def follow_with_plateaus(
    spec: FlowSpec | ModelFlowSpec, progress: Callable[[Progress], None] | None = None
) -> "tuple[FlowResult | ModelFlowResult, Plateaus[Any] | None]":
    """Solve a flow, and find the saddles that it visits; None of a flow that failed, or took fewer than two steps.

    Raises:
        SpecError: the specification is of a descent; as for `run` of the specification.
        ValueError: 64-bit mode is off.
    """
    from mesascope.dynamics import plateaus

    if spec.method == "descent":
        raise SpecError(
            "plateaus are those of a flow; use method = 'flow', or leave out --plateaus", "method"
        )
    result: FlowResult | ModelFlowResult
    path: Any
    mask = None
    if isinstance(spec, FlowSpec):
        mask = spec.mask
        result, path = spec.follow(progress, saves=_SAVES)
    else:
        result, path = spec.follow(spec.build(), progress, saves=_SAVES)
    flow: Flow[Any] = path
    if not result.succeeded or len(flow.times) < 3:
        return result, None
    return result, plateaus(flow, mask=mask)
