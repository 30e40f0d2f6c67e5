"""Values as strict JSON: the types that a record may hold, and their canonical text."""

import json
import math
from collections.abc import Mapping
from fractions import Fraction
from pathlib import PurePath
from typing import Annotated, Any

from pydantic import BeforeValidator, JsonValue

MAX_DEPTH = 64
"""The deepest nesting of lists and tables that is read; what reads or shows them calls itself at every level."""


def parse_json(text: str | bytes, **how: Any) -> Any:
    """The value of a JSON text, with the arguments of `json.loads`.

    Raises:
        ValueError: it is no JSON, no UTF-8, or nested too deeply.
    """
    try:
        value = json.loads(text, **how)
        if not is_too_deep(value):
            return value
    except RecursionError:
        pass
    raise ValueError(f"nested more than {MAX_DEPTH} levels deep")


class RepeatedKeyError(Exception):
    """A name occurs twice in one JSON object; JSON readers disagree about which value counts."""


def without_repetition(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """The object of these names and values, an `object_pairs_hook` of `json.loads`.

    Raises:
        RepeatedKeyError: a name occurs twice.
    """
    found: dict[str, object] = {}
    for name, value in pairs:
        if name in found:
            raise RepeatedKeyError(name)
        found[name] = value
    return found


def is_too_deep(value: Any) -> bool:
    """Whether lists and tables are nested more than `MAX_DEPTH` levels deep."""
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        inner = (
            one.values() if isinstance(one, dict) else one for one in level if isinstance(one, dict | list)
        )
        level = [one for among in inner for one in among if isinstance(one, dict | list)]
        if not level:
            return False
    return True


def plain(value: Any, where: str = "value") -> JsonValue:
    """Return `value` as strict JSON: None, bool, int, finite float, str, list, dict with string keys.

    Arrays and their scalars become (nested) lists and numbers, tuples lists, mapping keys strings, a
    `Fraction` the string `"p/q"`, a complex number `{"re": …, "im": …}`, and the floats that JSON lacks the
    strings `"nan"`, `"inf"` and `"-inf"`.

    Args:
        value: what to convert; arrays need no library here, only a `tolist` method.
        where: the name of the value in errors.

    Raises:
        TypeError: something in `value` has no such form; the message says where.
        ValueError: two keys of a mapping are the same string.
    """
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        # NaN and infinities by name: they must survive a record, and strict JSON has no numbers for them.
        return float(value) if math.isfinite(value) else str(float(value))
    if isinstance(value, complex):
        return {"re": plain(value.real), "im": plain(value.imag)}
    if isinstance(value, Fraction | PurePath):
        return str(value)
    if isinstance(value, Mapping):
        result = {str(key): plain(item, f"{where}[{key!r}]") for key, item in value.items()}
        if len(result) != len(value):
            raise ValueError(f"{where}: two keys read the same as text; rename one")
        return result
    if isinstance(value, list | tuple):
        return [plain(item, f"{where}[{i}]") for i, item in enumerate(value)]
    if hasattr(value, "tolist"):
        return plain(value.tolist(), where)
    raise TypeError(
        f"{where}: a {type(value).__name__} has no place in a record; "
        "convert it to numbers, strings, lists or mappings"
    )


def canonical_json(value: Any) -> str:
    """Return the canonical JSON text of `value` (see `plain`): keys sorted, no spaces, ASCII only."""
    return json.dumps(plain(value), sort_keys=True, separators=(",", ":"), allow_nan=False)


def as_list(value: Any) -> Any:
    """An array as nested lists; anything else as it is."""
    return value.tolist() if hasattr(value, "tolist") else value


PlainValue = Annotated[JsonValue, BeforeValidator(plain)]
PlainMapping = Annotated[dict[str, JsonValue], BeforeValidator(plain)]
"""A field of names and values that strict JSON holds; arrays become lists."""
