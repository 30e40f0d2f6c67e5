"""The directive `public-names`: what a package offers, from its docstrings, which are Markdown with LaTeX.

    ```{public-names} mesascope.dynamics.landscape
    :except: mesascope.dynamics
    ```

    ```{names-of-mesascope} gradient_flow descend
    :rooms: objectives
    :of: learners
    ```

is a table of names of `mesascope` itself: those that are listed, then all of these rooms that no table of the page lists, then
those that a room offers without `mesascope` having them.

A package offers what its `__init__`, or the stub of that, gives to others (`from ._file import X as X`), a module that is no
package what it defines; names with a leading underscore are nobody else's.
"""

import ast
import importlib
import inspect
import re
import textwrap
from pathlib import Path
from types import ModuleType
from typing import ClassVar

from docutils import nodes
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.docutils import SphinxDirective
from sphinx.util.inspect import stringify_signature
from typeset import typeset

SECTIONS = {"Args": "Arguments", "Attributes": "Attributes", "Returns": "Returns", "Raises": "Raises"}
SECTION = re.compile(r"^(Args|Attributes|Returns|Raises):\n((?:[ ]+.*\n|\n)+)", re.M)
LABEL = re.compile(r"^(Returns|Raises|Sources?): ", re.M)
ENTRY = re.compile(r"(\*{0,2}\w[\w.*, ]*):\s+(.*)", re.S)


def names_of(package: str) -> dict[str, object]:
    """Public name → object, in the order of the package."""
    module = importlib.import_module(package)
    defines_all = not hasattr(module, "__path__")
    offered = {name: getattr(module, name) for name in getattr(module, "__all__", vars(module))}
    return {
        name: value
        for name, value in offered.items()
        if not (name.startswith("_") or isinstance(value, ModuleType))
        and (not defines_all or getattr(value, "__module__", None) == package)
    }


class PublicNames(SphinxDirective):
    """Describe every public name of a package, but for those of the packages after `except`."""

    required_arguments = 1
    option_spec: ClassVar = {"except": str.split}

    def run(self) -> list[nodes.Node]:
        """The descriptions, parsed."""
        package = self.arguments[0]
        told = {id(value) for other in self.options.get("except", ()) for value in names_of(other).values()}
        self.state.document.settings.env.ref_context["py:module"] = (
            package  # where names in signatures are looked up
        )
        parts = [inspect.getdoc(importlib.import_module(package))]
        parts += [
            describe(package, name, value)
            for name, value in names_of(package).items()
            if id(value) not in told
        ]
        return self.parse_text_to_nodes(typeset("\n".join(parts)))


TABLE = re.compile(r"^```\{names-of-mesascope\}(?P<names>.*)\n(?P<options>(?::.*\n)*)```$", re.M)


def rooms_of_names() -> dict[str, str]:
    """Name of `mesascope` itself → room that it comes from, from the stub."""
    import mesascope

    stub = ast.parse(Path(mesascope.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    found = [one for one in stub.body if isinstance(one, ast.ImportFrom) and one.module]
    return {alias.name: one.module for one in found for alias in one.names}


def listed(page: str, names: list[str], rooms: list[str]) -> list[str]:
    """The names in a table of a page: the given ones, then those of the rooms that no table of the page names."""
    named = {name for table in TABLE.finditer(page) for name in table["names"].split()}
    rest = [name for name, room in rooms_of_names().items() if room in rooms and name not in named]
    return [*names, *sorted(rest, key=str.lower)]


class NamesOfMesascope(SphinxDirective):
    """A table of names with the first line of what is said of each."""

    optional_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar = {"rooms": str.split, "of": str}

    def run(self) -> list[nodes.Node]:
        """The table, parsed."""
        import mesascope

        page = Path(self.env.doc2path(self.env.docname)).read_text(encoding="utf-8")
        homes = rooms_of_names()
        names = listed(page, " ".join(self.arguments).split(), self.options.get("rooms", []))
        rows = ["| name | what it is |", "|---|---|"]
        rows += [
            _row(f"ms.{name}", f"mesascope.{homes[name]}.{name}", getattr(mesascope, name)) for name in names
        ]
        if room := self.options.get("of"):
            offered = names_of(f"mesascope.{room}")
            rows += [
                _row(f"ms.{room}.{name}", f"mesascope.{room}.{name}", value)
                for name, value in sorted(offered.items(), key=lambda pair: pair[0].lower())
                if name not in homes and (inspect.isclass(value) or inspect.isroutine(value))
            ]
        return self.parse_text_to_nodes(typeset("\n".join(rows)))


def _row(shown: str, full: str, value: object) -> str:
    summary = (inspect.getdoc(value) or "").split("\n\n")[0].replace("\n", " ")
    cell = summary.replace(r"\|", r"\Vert ").replace("|", "∣")
    return f"| {{py:obj}}`{shown} <{full}>` | {cell} |"


def describe(package: str, name: str, value: object) -> str:
    """Markdown that describes one public name."""
    if inspect.isclass(value):
        kind = "exception" if issubclass(value, BaseException) else "class"
        text = _text(inspect.cleandoc(value.__doc__ or "")) + "\n".join(_members(value))
        return _directive(kind, name + _signature(value), text, colons=6)
    if inspect.isroutine(value) or hasattr(value, "__wrapped__"):
        return _directive("function", name + _signature(value), _text(inspect.getdoc(value) or ""), colons=6)
    return _directive("data", name, _text(_comment(package, name)), colons=6)


def _members(owner):
    for name, raw in vars(owner).items():
        value = raw if isinstance(raw, property) else getattr(owner, name, None)
        documented = inspect.cleandoc(getattr(value, "__doc__", None) or "")
        if name.startswith("_") or not documented:
            continue
        if isinstance(raw, property):
            yield _directive("property", name, _text(documented))
        elif inspect.isroutine(value):
            kind = "classmethod" if inspect.ismethod(value) else "method"
            of_class = kind == "classmethod" or isinstance(raw, staticmethod)
            kind = "staticmethod" if isinstance(raw, staticmethod) else kind
            signature = _signature(value, without_first=not of_class)
            yield _directive(kind, name + signature, _text(documented))


def _directive(kind, signature, text, colons=4):
    return f"\n{':' * colons}{{py:{kind}}} {signature}\n{text}\n{':' * colons}\n"


def _signature(value, without_first=False):
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    if without_first:
        signature = signature.replace(parameters=list(signature.parameters.values())[1:])
    if inspect.isclass(value):
        signature = signature.replace(return_annotation=inspect.Signature.empty)
    return stringify_signature(signature, unqualified_typehints=True)


def _text(docstring: str) -> str:
    """Sections of a docstring as lists; all else is Markdown already."""
    return LABEL.sub(r"**\1:** ", SECTION.sub(_section, docstring.rstrip() + "\n"))


def _section(found):
    title, body = SECTIONS[found[1]], textwrap.dedent(found[2]).strip("\n")
    entries = re.split(r"\n(?=\S)", body)
    told = [ENTRY.fullmatch(entry) for entry in entries]
    if title == "Returns" or not all(told):
        return f"\n**{title}**\n\n{body}\n\n"
    items = "\n".join(f"- `{one[1]}`: {one[2]}" for one in told)
    return f"\n**{title}**\n\n{items}\n\n"


def _comment(package, name):
    """The comment `#: …` at a constant, where it is defined."""
    module = importlib.import_module(package)
    stub = Path(module.__file__).with_suffix(".pyi")
    source = stub.read_text(encoding="utf-8") if stub.exists() else inspect.getsource(module)
    for statement in ast.parse(source).body:
        if isinstance(statement, ast.ImportFrom) and name in {alias.asname for alias in statement.names}:
            package = importlib.util.resolve_name("." * statement.level + (statement.module or ""), package)
            return _comment(package, name)
    return "\n".join(ModuleAnalyzer.for_module(package).find_attr_docs().get(("", name), ()))


def setup(app):
    """Add the directives."""
    app.add_directive("public-names", PublicNames)
    app.add_directive("names-of-mesascope", NamesOfMesascope)
    return {"parallel_read_safe": True}
