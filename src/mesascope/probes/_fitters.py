"""The learners with which models are compared, from the simplest to the most flexible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp

from mesascope.learners import (
    Constant,
    LayeredGradientDescent,
    LayeredGradientDescentPlusPlus,
    PreconditionedGradientDescent,
)
from mesascope.processes import Pool
from mesascope.specs import known_kinds

from ._evidence import Evidence
from ._fit import Fitted, Fitter
from ._fit_constant import ConstantFitter
from ._fit_layers import LayersFitter
from ._fit_preconditioner import PreconditionedFitter
from ._in_parallel import in_parallel
from ._problems import vocabulary

AnyFitter = Fitter | ConstantFitter | LayersFitter | PreconditionedFitter


def known_learners() -> list[Any]:
    """Return the classes of all known learners, the simplest first."""
    return sorted(known_kinds("learner").values(), key=lambda kind: kind.fitting.flexibility)


def fitters(process: Any) -> dict[str, AnyFitter]:
    """Return the fitters of the learners that read the data of a process by their ids, the simplest first."""
    readable = [kind for kind in known_learners() if why_unreadable(kind, process) is None]
    return {kind.name: _fitter(kind, process) for kind in readable}


def why_unreadable(kind: Any, process: Any) -> str | None:
    """Return why a learner cannot be compared with models of the data of a process, or None if it can."""
    drawn = type(process).__name__
    if kind.fitting.symbols and vocabulary(process) is None:
        return f"reads symbols, and {drawn} draws none"
    for _, attribute in kind.fitting.of_process:
        if getattr(process, attribute, None) is None:
            return f"needs the {attribute.replace('_', ' ')}, and {_without(attribute, process)}"
    return None


def _without(attribute: str, process: Any) -> str:
    """Return that a process lacks an attribute, and why or which processes have it."""
    if isinstance(process, Pool) and hasattr(type(process), attribute):
        if process.size > process.max_compared:
            return (
                f"this pool of {process.size} tasks is too large: at most {process.max_compared} are compared"
            )
        return f"a pool of {type(process.process).__name__} has none: take a pool of another process"
    owners = [kind for kind in known_kinds("process").values() if hasattr(kind, attribute)]
    most = f", of at most {Pool.max_compared} tasks" if any(issubclass(one, Pool) for one in owners) else ""
    fix = f": use {' or '.join(one.__name__ for one in owners)}{most}" if owners else ""
    return f"{type(process).__name__} has none{fix}"


def _fitter(kind: Any, process: Any) -> AnyFitter:
    if kind is Constant:
        return ConstantFitter()
    if kind is PreconditionedGradientDescent:
        return PreconditionedFitter()
    if kind in (LayeredGradientDescent, LayeredGradientDescentPlusPlus):
        return LayersFitter(kind)
    how = kind.fitting
    found = {
        name: getattr(process, attribute, None) for name, attribute in how.of_process + how.of_process_if_any
    }
    return Fitter(kind, how, {name: jnp.asarray(value) for name, value in found.items() if value is not None})


def with_special_cases(
    fitted: dict[str, Fitted], fitters: Mapping[str, AnyFitter], evidence: Sequence[Evidence]
) -> dict[str, Fitted]:
    """Return the fits, each replaced by a fitted special case of it unless it is better than by chance."""
    best = dict(fitted)
    special = {name: fitter.kind.fitting.extends for name, fitter in fitters.items() if name in fitted}
    waiting = {name: found[0] for name, found in special.items() if found and found[0] in fitted}

    def beyond(name: str) -> Fitted:
        fitter = fitters[name]
        assert isinstance(fitter, Fitter | LayersFitter)
        return fitter.fit_beyond(best[waiting[name]], best[name], evidence)

    while ready := [name for name, simpler in waiting.items() if simpler not in waiting]:
        best |= dict(zip(ready, in_parallel(beyond, ready), strict=True))
        waiting = {name: simpler for name, simpler in waiting.items() if name not in ready}
    return best


def learners_for(process: Any) -> tuple[str, ...]:
    """Return the ids of the learners that read the data of a process."""
    return tuple(fitters(process))
