"""What a case is, and the wrong worlds that many cases share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import pytest

from mesascope.papers import _minimized
from mesascope.records import Decision
from mesascope.theory import Construction

World = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class Case:
    """How one claim is tested.

    Attributes:
        smoke: what replaces settings of the small preset, so that the check takes seconds: sizes, no thresholds.
        wrong: makes model, data, training or theory wrong by little; the claim must then have the decision `turned`.
        more: further such worlds, for the other parts of the statement.
        decision: that of the right world at small size.
        turned: that of the wrong ones, another. What the right world does not meet, a wrong one may.
        stuck: makes every search for an optimum stop in a known local minimum, or its grid end before it; where no local
            minimum is known, makes it stop at its start, or after one of its searches. The claim must then not be met.
            Claims that call `best_of`, `bracketed` or `inside` have one.
        traced: whether a wrong world replaces what compiled programs hold, which are then forgotten before and after it.
            Where none does, as in worlds that change weights, data or formulas, all worlds share programs and trainings.
    """

    smoke: Mapping[str, Any]
    wrong: World
    more: tuple[World, ...] = ()
    stuck: World | None = None
    decision: Decision = "met"
    turned: Decision = "not met"
    traced: bool = True

    def __post_init__(self) -> None:
        """Refuse a case that proves nothing."""
        assert self.decision != self.turned

    @property
    def worlds(self) -> tuple[World, ...]:
        """All wrong worlds."""
        return (self.wrong, *self.more)


def cases_of(paper: str) -> dict[str, Case]:
    """The cases of a paper, by claim id."""
    return dict(import_module(f"{__package__}.{paper}").CASES)


def scaled(module: Any, name: str, factor: float) -> World:
    """A wrong world in which what the function `module.name` returns is `factor` times what it should be."""

    def break_it(patch: pytest.MonkeyPatch) -> None:
        right = getattr(module, name)
        patch.setattr(module, name, lambda *args, **settings: right(*args, **settings) * factor)

    return break_it


def short_grids(*modules: Any) -> World:
    """A world in which the grids of `bracketed` in these modules end after their third entry, before the optimum."""

    def ended(loss: Any, *grids: Any, **settings: Any) -> Any:
        return _minimized.bracketed(loss, *(grid[:3] for grid in grids), **settings)

    def break_it(patch: pytest.MonkeyPatch) -> None:
        for module in modules:
            patch.setattr(module, "bracketed", ended)

    return break_it


def with_models(right: Callable[..., Any], change: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """What the function `right` of settings returns, models by number of steps, each changed: `change(model, settings)`."""
    return lambda settings: {
        steps: [change(model, settings) for model in models] for steps, models in right(settings).items()
    }


def at_rest(module: Any, name: str, world: World) -> World:
    """The same wrong world, where the loss fell no longer: `module.name` says so, and nothing excuses the models."""

    def break_it(patch: pytest.MonkeyPatch) -> None:
        world(patch)
        patch.setattr(module, name, lambda *args: 0.0)

    return break_it


def writes_more(module: Any, name: str, share: float = 1e-9) -> World:
    """A wrong world in which the layers that `module.name` constructs write so much too much."""

    def break_it(patch: pytest.MonkeyPatch) -> None:
        right = getattr(module, name)

        def wrong(*args: Any, **settings: Any) -> Construction:
            w_kq, w_pv = right(*args, **settings)
            return Construction(w_kq, w_pv * (1 + share))

        patch.setattr(module, name, wrong)

    return break_it
