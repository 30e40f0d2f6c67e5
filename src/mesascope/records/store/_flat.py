"""Nested mappings as flat ones, their keys joined by dots."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def flat(value: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Every value that is no mapping, by its path. A complex number, `{"re": …, "im": …}`, is one value."""
    return dict(_leaves(value, prefix))


def _leaves(value: Mapping[str, Any], path: str) -> Iterator[tuple[str, Any]]:
    for name, one in value.items():
        at = f"{path}.{name}" if path else name
        if isinstance(one, Mapping) and one and set(one) != {"re", "im"}:
            yield from _leaves(one, at)
        else:
            yield at, one
