"""What several claims of one paper are about is computed once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from mesascope.records import canonical_json

from ._claim import Settings

Result = TypeVar("Result")
_KEPT = 8  # results of one function; those asked for least recently go first


def shared(*names: str) -> Callable[[Callable[[Settings], Result]], Callable[[Settings], Result]]:
    """Decorate a function of settings: asked again with the same ones it gives the same result, computed once.

    The function is given the settings of these names only, so that its result cannot depend on others.
    """

    def decorate(function: Callable[[Settings], Result]) -> Callable[[Settings], Result]:
        kept: OrderedDict[str, Any] = OrderedDict()

        @wraps(function)
        def asked(settings: Settings) -> Result:
            chosen = {name: settings[name] for name in names}
            key = canonical_json(chosen)
            if key not in kept:
                kept[key] = function(chosen)
                while len(kept) > _KEPT:
                    kept.popitem(last=False)
            kept.move_to_end(key)
            return kept[key]

        return asked

    return decorate
