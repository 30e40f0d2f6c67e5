"""Flows to given times that differ in numbers only, solved together."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mesascope.specs import Spec

from ._flow import FlowResult, FlowSpec

if TYPE_CHECKING:
    from mesascope.dynamics import Flow

_OWN = {"init", "law", "until"}  # what may differ from flow to flow


def program_of(spec: Spec) -> str | None:
    """What shapes the compiled program of a flow to a given time: equal where flows can be solved together.

    That is everything but the start, the time and the numbers of the law. None for what is not solved together: descents, and
    flows to rest, which would all wait for the slowest.
    """
    if not isinstance(spec, FlowSpec) or spec.time is None:
        return None
    told = spec.model_dump(mode="json")
    shared = {name: value for name, value in told.items() if name not in _OWN}
    return json.dumps([shared, _form(told["law"])], sort_keys=True)


def _form(value: Any) -> Any:
    """A law without its numbers."""
    match value:
        case dict():
            return {name: _form(one) for name, one in value.items()}
        case list() | tuple():
            return [_form(one) for one in value]
        case str() if not _is_number(value):
            return value
        case _:
            return None


def _is_number(text: str) -> bool:
    return text.strip()[:1].isdigit() or text.strip()[:1] in "+-."


def follow_together(specs: Sequence[FlowSpec], *, saves: int) -> "list[tuple[FlowResult, Flow[Any]]]":
    """As `FlowSpec.follow` of each; the specifications have one `program_of`.

    Raises:
        SpecError, ValueError: one of them cannot be run, or not with the others.
    """
    from mesascope.dynamics import gradient_flows

    problems = [spec.checked() for spec in specs]
    models, processes, tasks, _ = zip(*problems, strict=True)
    times = [spec.time or 0.0 for spec in specs]
    flows = gradient_flows(models, processes, tasks, times, **specs[0].settings(problems[0], saves))
    return [
        (spec.flow_result(problem, flow), flow)
        for spec, problem, flow in zip(specs, problems, flows, strict=True)
    ]
