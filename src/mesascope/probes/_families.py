"""The learners with which models are compared, from the simplest to the most flexible."""

from __future__ import annotations

from typing import Any

from mesascope.learners import PreconditionedGradientDescent
from mesascope.specs import known_kinds

from ._fit import Family
from ._fit_preconditioner import PreconditionedFamily
from ._problems import vocabulary


def known_families() -> dict[str, Family | PreconditionedFamily]:
    """Return the families of all known learners by their ids, the simplest first."""
    ordered = sorted(known_kinds("learner").values(), key=lambda kind: kind.fitting.flexibility)
    return {kind.name: _family(kind) for kind in ordered}


def _family(kind: Any) -> Family | PreconditionedFamily:
    return PreconditionedFamily() if kind is PreconditionedGradientDescent else Family(kind, kind.fitting)


def fitting_families(process: Any) -> tuple[str, ...]:
    """Return the ids of the learners that read the data of a process."""
    symbols = vocabulary(process) is not None
    return tuple(
        name for name, family in known_families().items() if symbols or not family.kind.fitting.symbols
    )
