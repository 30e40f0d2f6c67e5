"""Results that several claims of one paper share are computed once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from mesascope.records import canonical_json

from ._claim import Settings

S = TypeVar("S", bound=Settings)
P = ParamSpec("P")
Result = TypeVar("Result")
_CACHED = 8  # results of one function; those asked for least recently go first


def shared(
    kind: type[S],
) -> Callable[[Callable[Concatenate[S, P], Result]], Callable[Concatenate[S, P], Result]]:
    """Decorate a function of settings: called again with equal ones, it returns the cached result.

    The function is given the settings of this class only, so that its result cannot depend on others. Further arguments,
    which a record could hold, are part of the key.
    """

    def decorate(function: Callable[Concatenate[S, P], Result]) -> Callable[Concatenate[S, P], Result]:
        results: OrderedDict[str, Result] = OrderedDict()

        @wraps(function)
        def cached(settings: S, /, *more: P.args, **named: P.kwargs) -> Result:
            chosen = kind.of(settings)
            key = canonical_json([chosen.as_table(), more, named])
            if key not in results:
                results[key] = function(chosen, *more, **named)
                while len(results) > _CACHED:
                    results.popitem(last=False)
            results.move_to_end(key)
            return results[key]

        return cached

    return decorate
