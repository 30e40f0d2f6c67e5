"""Weights of predictions, given as a table or as a list."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeAlias

from ..specs import (
    Number,
    SpecError,
    SpecTypeError,
    as_list,
    checked_at,
    in_file_form,
    show,
    show_number,
    weight,
)

Pairs: TypeAlias = tuple[tuple[int, Number], ...]
"""Pairs (length, weight) with weights other than 0, sorted."""


def given_weights(value: Any) -> Any:
    """Return a table from lengths to weights, a tuple of all weights, or None; weights are finite and not negative."""
    given = as_list(value)
    if given is None:
        return None
    if isinstance(given, Mapping):
        table: dict[int, Number] = {}
        for key, one in given.items():
            length = _length(key)
            if length in table:
                raise SpecError(f"{length} is given twice; keep one")
            table[length] = checked_at(weight, one, str(key))
        return table
    if not isinstance(given, list | tuple):
        raise SpecTypeError(f"must be a table from lengths to weights, or their list, got {show(given)}")
    if given and all(isinstance(one, tuple) and len(one) == 2 for one in given):  # stored pairs
        return {length: checked_at(weight, one, i) for i, (length, one) in enumerate(given)}
    return tuple(checked_at(weight, one, i) for i, one in enumerate(given))


def _length(key: Any) -> int:
    text = str(key)
    if isinstance(key, bool) or not (text.isascii() and text.isdigit() and len(text) <= 15):
        raise SpecTypeError(f"{show(key)} is not a number of tokens or examples; write an integer")
    return int(text)


def checked_weights(what: str, lengths: range, given: Any) -> Pairs | None:
    """Return the pairs (length, weight) with weights other than 0, sorted by length; errors are at the field `weights`.

    Args:
        what: the name of a length for messages, in the singular, e.g. "context length".
        lengths: all lengths.
        given: what `given_weights` returned.
    """
    if given is None:
        return None
    bounds = f"{lengths[0]} … {lengths[-1]}"
    if isinstance(given, tuple):
        if len(given) != len(lengths):
            what = f"has {len(given)} numbers, expected {len(lengths)}, one for each {what} {bounds}"
            raise SpecError(what, "weights")
        given = dict(zip(lengths, given, strict=True))
    for length in given:
        if length not in lengths:
            raise SpecError(f"{what}s are {bounds}, got {length}", "weights", str(length))
    pairs = tuple((length, given[length]) for length in sorted(given) if given[length])
    if not pairs:
        raise SpecError(
            "all weights are zero, so that nothing is to be learned; make one positive", "weights"
        )
    return pairs


def meaning_of(weights: Pairs | None, count: int, what: str) -> str:
    """Return what the weighted sum of `count` losses is: `sum over 98 context lengths`; empty for one of weight 1.

    Args:
        weights: the pairs; None if all weights are 1.
        count: how many there are.
        what: the name of a length, in the singular.
    """
    given = [float(weight) for _, weight in weights or ()]
    if all(weight == 1 for weight in given):
        return "" if count == 1 else f"sum over {count} {what}s"
    if count == 1:
        return f"{given[0]:g} × that of one {what}"
    mean = min(given) == max(given) and math.isclose(sum(given), 1)
    return f"{'mean' if mean else 'weighted sum'} over {count} {what}s"


def written_weights(pairs: Pairs | None) -> dict[str, Any] | None:
    """Return a table from lengths to weights, in the form of specifications."""
    return None if pairs is None else {str(length): in_file_form(weight) for length, weight in pairs}


def show_weights(pairs: Pairs) -> str:
    """Return e.g. `w_99=1`, or the number of weights if there are more than three."""
    return (
        f"{len(pairs)} weights" if len(pairs) > 3 else ", ".join(f"w_{t}={show_number(w)}" for t, w in pairs)
    )
