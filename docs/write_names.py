"""Write the names of all kinds where they are listed: `make names`.

Public names go into the stubs that the package's names are read from, the rules of memory layers and the number of learners
between marks in README.md and docs/identify.md. Everything else in these files stays as it is.
"""

import re
import sys
from pathlib import Path
from typing import Any

from mesascope.specs import Built, families, known_kinds

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "mesascope"
AT_THE_TOP = {
    "law",
    "process",
    "task",
    "noise",
    "covariance",
    "target",
    "engine",
    "model",
    "layer",
    "embedding",
    "readout",
}
"""Families whose kinds are names of `mesascope` itself, and not of their rooms only."""


def stubs() -> dict[Path, str]:
    """The stubs as they should be, by their paths."""
    lines: dict[Path, set[str]] = {}
    for family in families():
        for kind in known_kinds(family).values():
            module, name = _home(kind)
            room, _, rest = module.removeprefix("mesascope.").partition(".")
            if not module.startswith("mesascope.") or not (PACKAGE / room / "__init__.pyi").exists():
                continue  # of a plugin, or a formula of a paper, which is a name of its module
            lines.setdefault(PACKAGE / room / "__init__.pyi", set()).add(
                f"from .{rest} import {name} as {name}"
            )
            if family in AT_THE_TOP and not (family == "model" and not issubclass(kind, Built)):
                lines.setdefault(PACKAGE / "__init__.pyi", set()).add(f"from .{room} import {name} as {name}")
    return {path: _merged(path, added) for path, added in lines.items()}


def pages() -> dict[Path, str]:
    """README and the page on `identify` as they should be, by their paths."""
    learners = {"learners": str(len(known_kinds("learner")))}
    rules = {"rules": ", ".join(f"`{name}`" for name in known_kinds("rule"))}
    marked = {ROOT / "README.md": learners | rules, ROOT / "docs" / "identify.md": learners}
    return {path: _marked(path, values) for path, values in marked.items()}


def _marked(path: Path, marked: dict[str, str]) -> str:
    """The text of a page with these values between their marks, `<!--name-->` and `<!--/name-->`.

    Raises:
        ValueError: a mark is not there once.
    """
    text = path.read_text(encoding="utf-8")
    for name, value in marked.items():
        text, count = re.subn(rf"(<!--{name}-->).*?(<!--/{name}-->)", rf"\g<1>{value}\g<2>", text)
        if count != 1:
            raise ValueError(f"{path.name}: has the mark <!--{name}--> {count} times; write it once")
    return text


def _home(kind: Any) -> tuple[str, str]:
    """Module and name of what builds objects of a kind: the class, its owner, or a function."""
    maker = kind.function if issubclass(kind, Built) else kind
    owner = getattr(maker, "__self__", maker)
    return owner.__module__, owner.__qualname__


def _merged(path: Path, added: set[str]) -> str:
    imports, rest = [], []
    for line in path.read_text(encoding="utf-8").splitlines():
        (imports if line.startswith("from ") else rest).append(line)
    imports = [line for line in imports if _leads_somewhere(path.parent, line)]
    return "\n".join([*sorted({*imports, *added}, key=_order), *rest]) + "\n"


def _leads_somewhere(folder: Path, line: str) -> bool:
    """Whether the module of an import is there and has the name."""
    _, module, _, name, *_ = line.split()
    place = folder.joinpath(*module.removeprefix(".").split("."))
    files = (place.with_suffix(".py"), place / "__init__.py", place / "__init__.pyi")
    return any(re.search(rf"\b{name}\b", file.read_text(encoding="utf-8")) for file in files if file.exists())


def _order(line: str) -> tuple[Any, ...]:
    """As the linter sorts imports: by module; constants, then classes, then functions."""
    _, module, _, name, *_ = line.split()
    kind = 0 if name.isupper() and len(name) > 1 else 1 if name[0].isupper() else 2
    return (module != ".", module, kind, name)


if __name__ == "__main__":
    for path, text in {**stubs(), **pages()}.items():
        if path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            sys.stdout.write(f"{path.relative_to(ROOT)}\n")
