"""The directive `kinds`: what specifications can name of a family, with fields, from the docstrings.

```{kinds} process
```
"""

from docutils import nodes
from sphinx.util.docutils import SphinxDirective
from typeset import typeset

from mesascope import studies
from mesascope.dynamics import Optimizer
from mesascope.specs import REQUIRED, field_help, known_kinds, summary


class Kinds(SphinxDirective):
    """A table of the kinds of a family: names, what they are, fields (in brackets those that may be left out)."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """The table, parsed."""
        rows = ["| `kind` | what it is | fields |", "|---|---|---|"]
        for name, kind in known_kinds(self.arguments[0]).items():
            listed = "<br>".join(map(_field, field_help(kind))) or "–"
            rows.append(
                "| " + " | ".join(_cell(text) for text in (f"`{name}`", summary(kind), listed)) + " |"
            )
        return self.parse_text_to_nodes(typeset("\n".join(rows)))


class Fields(SphinxDirective):
    """A table of the fields of a specification (in brackets those that may be left out)."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The table, parsed."""
        found = {**vars(studies), "Optimizer": Optimizer}[self.arguments[0]]
        rows = ["| field | what it is |", "|---|---|"]
        rows += [f"| {_cell(_name(field))} | {_cell(field.text)} |" for field in field_help(found)]
        return self.parse_text_to_nodes(typeset("\n".join(rows)))


def _field(field):
    return f"{_name(field)}: {field.text}"


def _name(field):
    return f"`{field.name}`" if field.default is REQUIRED else f"[`{field.name}`]"


def _cell(text: str) -> str:
    return text.replace(r"\|", r"\Vert ").replace("|", "∣")


def setup(app):
    """Add the directive."""
    app.add_directive("kinds", Kinds)
    app.add_directive("fields", Fields)
    return {"parallel_read_safe": True}
