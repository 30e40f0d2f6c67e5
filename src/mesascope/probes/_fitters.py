"""The learners with which models are compared, from the simplest to the most flexible."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mesascope.learners import Constant, PreconditionedGradientDescent
from mesascope.specs import known_kinds

from ._fit import Evidence, Fitted, Fitter
from ._fit_constant import ConstantFitter
from ._fit_preconditioner import PreconditionedFitter
from ._problems import vocabulary

AnyFitter = Fitter | ConstantFitter | PreconditionedFitter


def fitters() -> dict[str, AnyFitter]:
    """Return the fitters of all known learners by their ids, the simplest first."""
    ordered = sorted(known_kinds("learner").values(), key=lambda kind: kind.fitting.flexibility)
    return {kind.name: _fitter(kind) for kind in ordered}


def _fitter(kind: Any) -> AnyFitter:
    if kind is Constant:
        return ConstantFitter()
    return PreconditionedFitter() if kind is PreconditionedGradientDescent else Fitter(kind, kind.fitting)


def with_special_cases(fitted: dict[str, Fitted], evidence: Sequence[Evidence]) -> dict[str, Fitted]:
    """Return the fits, each replaced by a fitted special case of it unless it is better than by chance."""
    best = dict(fitted)
    for name, fitter in fitters().items():
        extends = fitter.kind.fitting.extends
        if name not in fitted or extends is None or extends[0] not in fitted:
            continue
        assert isinstance(fitter, Fitter)
        best[name] = fitter.fit_beyond(best[extends[0]], best[name], evidence)
    return best


def learners_for(process: Any) -> tuple[str, ...]:
    """Return the ids of the learners that read the data of a process."""
    symbols = vocabulary(process) is not None
    return tuple(name for name, fitter in fitters().items() if symbols or not fitter.kind.fitting.symbols)
