"""The classes of all kinds by family and name."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any, TypeAlias

Kind: TypeAlias = tuple[str, str, type[Any]]
"""The family, the name and the class of a kind."""
FAMILIES: dict[str, dict[str, type[Any]]] = {}
"""Family → kind → class."""
LOCK = RLock()
"""Held while files are loaded, and while classes are registered with JAX."""
_recorded: list[Kind] = []


def register(family: str, name: str, cls: type[Any]) -> None:
    """Register a class as a kind of a family; a class of the same name from outside this package is replaced.

    Raises:
        ValueError: the family has another class of that name.
    """
    known = FAMILIES.setdefault(family, {})
    if name in known and not _is_new_version(cls, known[name]):
        raise ValueError(f"the {family} '{name}' is {_full_name(known[name])}; choose another name")
    known[name] = cls
    _recorded.append((family, name, cls))


def _is_new_version(cls: type[Any], known: type[Any]) -> bool:
    """Return whether a class is a known one again, e.g. after its file or its notebook cell was edited."""
    foreign = not (is_ours(cls) or is_ours(known))
    return cls.__qualname__ == known.__qualname__ and (cls.__module__ == known.__module__ or foreign)


def is_ours(cls: type[Any]) -> bool:
    """Return whether a class is declared in this package."""
    return cls.__module__.startswith("mesascope.")


def _full_name(cls: type[Any]) -> str:
    return f"mesascope's {cls.__qualname__}" if is_ours(cls) else cls.__qualname__


@contextmanager
def recorded_kinds(check: Callable[[list[Kind]], None]) -> Iterator[list[Kind]]:
    """Yield a list that holds, after the block, each kind from outside this package that the block registered.

    If the block fails, or `check` of these kinds does, they are forgotten.
    """
    start, kinds = len(_recorded), list[Kind]()
    before = {family: dict(known) for family, known in FAMILIES.items()}
    try:
        yield kinds
        kinds.extend(kind for kind in _recorded[start:] if not is_ours(kind[2]))
        check(kinds)
    except BaseException:
        for family, name, cls in _recorded[start:]:
            if not is_ours(cls):
                FAMILIES[family].pop(name, None)
                if name in before.get(family, {}):
                    FAMILIES[family][name] = before[family][name]
        raise
