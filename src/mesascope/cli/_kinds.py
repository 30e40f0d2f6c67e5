"""`mesascope kinds`."""

from dataclasses import dataclass
from typing import Annotated, Any

from tyro.conf import FlagCreatePairsOff, Positional, arg

from ._output import DONE, InputError, print_json, prints_to_stderr, results
from ._plugin import PluginOption


@dataclass(frozen=True)
class Kinds(PluginOption):
    """List the kinds that specifications can name, by family: laws, processes, models, layers, learners and more.

    With FAMILY, every kind is listed with its fields; with NAME, that kind alone. Kinds of files given by --plugin and of
    installed packages are included.
    """

    family: Annotated[Positional[str], arg(metavar="[FAMILY]")] = ""
    """law, process, model, layer, learner, …; by default the names of all families and kinds."""
    name: Annotated[Positional[str], arg(metavar="[NAME]")] = ""
    """A kind of the family, such as delta-net of rule."""
    json: FlagCreatePairsOff[bool] = False
    """Print one JSON object: families, from names to kinds, each with summary, fields and an example."""

    def run(self) -> int:
        """Print; return the exit status."""
        from mesascope.specs import families, known_kinds, unknown

        with prints_to_stderr():
            known = families()  # loads installed packages
            if (self.family or self.name) and self.family not in known:
                owners = [
                    f"`mesascope kinds {name} {self.family}`"
                    for name in known
                    if self.family in known_kinds(name)
                ]
                if owners:
                    raise InputError(f"{self.family!r} is a kind; see {' and '.join(owners)}")
                raise InputError(unknown("family", self.family, known))
            found = {name: known_kinds(name) for name in ((self.family,) if self.family else known)}
            if self.name and self.name not in found[self.family]:
                raise InputError(unknown(self.family, self.name, list(found[self.family])))
            if self.name:
                found = {self.family: {self.name: found[self.family][self.name]}}
            tables = {
                family: {name: _table(kind) for name, kind in kinds.items()}
                for family, kinds in found.items()
                if self.json or self.family
            }
        if self.json:
            print_json({"families": tables})
        elif self.family:
            for name, table in tables[self.family].items():
                _print_kind(name, table)
        else:
            for family, kinds in found.items():
                results().print(f"[bold]{family}[/bold]: {', '.join(kinds)}", soft_wrap=True, highlight=False)
            results().print("`mesascope kinds FAMILY` explains them", markup=False)
        return DONE


def _table(kind: type[Any]) -> dict[str, Any]:
    from mesascope.report import tex_to_text
    from mesascope.specs import REQUIRED, field_help, specification, summary

    return {
        "summary": tex_to_text(summary(kind)),
        "fields": [
            {"name": one.name, "text": tex_to_text(one.text), "required": one.default is REQUIRED}
            | ({} if one.default is REQUIRED else {"default": specification(one.default)})
            for one in field_help(kind)
        ],
        "example": specification(kind.example())
        if hasattr(kind, "specification")
        else {"kind": kind.name, **kind.example_fields},
    }


def _print_kind(name: str, table: dict[str, Any]) -> None:
    from rich.text import Text

    results().print(Text.assemble((name, "bold"), f"  {table['summary']}"), soft_wrap=True)
    for field in table["fields"]:
        default = (
            "" if field["required"] or field["default"] is None else f" (default {_short(field['default'])})"
        )
        results().print(f"    {field['name']}: {field['text']}{default}", markup=False, soft_wrap=True)


def _short(value: Any) -> str:
    import json

    return json.dumps(value, ensure_ascii=False)
