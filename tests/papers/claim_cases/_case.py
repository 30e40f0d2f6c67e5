"""What a case is, and the wrong worlds that many cases share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import pytest


@dataclass(frozen=True)
class Case:
    """How one claim is tested.

    Attributes:
        smoke: what replaces settings of the quick preset, so that the check takes seconds and still verifies.
        wrong: makes model, data, training or theory wrong; the claim must then be refuted.
    """

    smoke: Mapping[str, Any]
    wrong: Callable[[pytest.MonkeyPatch], None]


def cases_of(paper: str) -> dict[str, Case]:
    """The cases of a paper, by claim id."""
    return dict(import_module(f"{__package__}.{paper}").CASES)


def scaled(module: Any, name: str, factor: float) -> Callable[[pytest.MonkeyPatch], None]:
    """A wrong world in which what the function `module.name` returns is `factor` times what it should be."""

    def break_it(patch: pytest.MonkeyPatch) -> None:
        right = getattr(module, name)
        patch.setattr(module, name, lambda *args, **settings: right(*args, **settings) * factor)

    return break_it
