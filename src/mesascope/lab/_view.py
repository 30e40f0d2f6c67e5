"""The page without a browser: its numbers, sentences and figures, for programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mesascope.records import Figure
from mesascope.studies import FlowSpec

from . import _figures
from ._setting import check_setting
from ._sizes import FRAMES
from ._words import conclusions, measurements


@dataclass(frozen=True)
class View:
    """What the page shows of a setting: numbers and arrays by name.

    Attributes:
        facts: of the law: `moments`, `answers` on the assumptions, `limit` and its `theorem`, `gap`, `ratio`; `tokens` that
            were drawn, shape (4000, d), and `sequences` (n, t, d); the `normalizer`.
        flow: along the exact flow `times` and `loss`, shape (n,), `a`, `b` and `products` (n, d), `theory` beside them (None
            where there is none); at `frame_times` (m,) the weights `w_kq` (m, 2d, 2d) and `w_pv` (m, d, 2d); its `end`.
        behaviour: on fresh sequences, of the layer at one frame: `error`, its standard error `error_se` and, where it is a
            formula, the exact `risk` by context `lengths`, shape (t,); `ratio` and `correlation` with their standard errors,
            `sensitivity`, `gap`. None where every token is 0 and there is nothing to predict.
        sampled: along descent on samples `times`, `loss`, `loss_se` and `population` (k,), `products` (k, d); None if not
            asked for.
        answer: `verdict`, `reasons`, `ranking` of `identify`; None if not asked for.
    """

    facts: dict[str, Any]
    flow: dict[str, Any]
    behaviour: dict[str, Any] | None
    sampled: dict[str, Any] | None
    answer: dict[str, Any] | None

    @property
    def words(self) -> tuple[str, ...]:
        """What the page says."""
        return (*conclusions(self.facts), *(measurements(self.behaviour) if self.behaviour else ()))

    @property
    def figures(self) -> dict[str, Figure]:
        """The figures by the names under which the page offers them, weights at the end of the flow."""
        found = {name: draw(self.facts) for name, draw in _figures.OF_FACTS.items()} | {
            "product": _figures.product_figure(self.flow, self.sampled),
            "loss": _figures.loss_figure(self.flow, self.sampled),
            "phase": _figures.phase_figure(self.flow),
            "w_kq": _figures.weight_figure(self.flow, "w_kq", FRAMES - 1),
            "w_pv": _figures.weight_figure(self.flow, "w_pv", FRAMES - 1),
        }
        if self.behaviour is None:
            return found
        return found | {name: draw(self.behaviour) for name, draw in _figures.OF_BEHAVIOUR.items()}


def view(
    spec: FlowSpec,
    *,
    train: dict[str, Any] | None = None,
    identify: dict[str, Any] | None = None,
    frame: int = FRAMES - 1,
) -> View:
    """Compute what the page shows of a setting, from the same seeds: the same numbers.

    Args:
        spec: what the page can show: a flow with the exact engine, dim at most 24.
        train: descent on samples beside the flow: `samples`, `rate`, `steps`, `seed`.
        identify: which algorithm the layer runs: `learners` (their ids, or None for all) and `tasks`.
        frame: the place in `frame_times` of the layer whose behaviour and algorithm are found; by default the last.

    Raises:
        SpecError: the page cannot show this setting, or theory cannot treat it.
        ValueError: 64-bit mode is off.
    """
    from . import _compute

    flow = _compute.flow(check_setting(spec), _silent)
    weights = {"w_kq": flow["w_kq"][frame], "w_pv": flow["w_pv"][frame]}
    facts = _compute.facts(spec, _silent)
    nonzero = facts["moments"]["m2"][0] > 0
    return View(
        facts,
        flow,
        _compute.behaviour(spec, **weights, progress=_silent) if nonzero else None,
        _compute.descent(spec, **train, progress=_silent) if train else None,
        _compute.identification(spec, **weights, **identify, progress=_silent) if identify else None,
    )


def _silent(text: str) -> None:
    pass
