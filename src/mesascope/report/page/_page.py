"""The whole page: templates filled with records and figures."""

import base64
import hashlib
import json
import math
from fractions import Fraction
from functools import partial
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from mesascope.records import SIGNS

from .._material import Material
from .._tex import tex_to_html
from .._theme import style_sheet
from ._bibliography import reference
from ._claims import look, summary
from ._figures import drawn, figure_anchor
from ._opening import opening
from ._studies import axis_names, axis_values, outcome_columns, statuses
from ._values import brief, columns, named, number

# Records may hold any character; those that HTML does not allow are shown as the sign for a character that is unknown.
_CONTROLS = {code: "\ufffd" for code in (*range(32), *range(127, 160)) if chr(code) not in "\t\n\r"}


def page(material: Material, title: str, created: str) -> str:
    """The report as one HTML document that loads nothing: scripts and styles are inside.

    Args:
        material: what it shows.
        title: its heading.
        created: the time it is made, ISO 8601.
    """
    scripts = [get_plotlyjs(), _file("page.js")] if any(material.figures) else []
    template = _environment().get_template("page.html")
    return template.render(
        **{"title": title, "created": created, "problems": material.problems},
        entries=[entry for entry in material.entries if entry.kind != "claim"],
        policy=_policy(scripts),
        style=Markup(style_sheet() + _file("page.css")),
        scripts=list(map(_Script, scripts)),
        **opening(material.of("claim")),
    )


def _environment() -> Environment:
    """The templates, with what they call; all text is escaped, except markup."""
    environment = Environment(
        loader=PackageLoader("mesascope.report.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_printable,
    )
    functions = (
        axis_names,
        axis_values,
        brief,
        columns,
        drawn,
        figure_anchor,
        look,
        named,
        number,
        outcome_columns,
        statuses,
        summary,
    )
    filters: dict[str, Any] = {one.__name__: one for one in functions} | {
        "as_json": partial(json.dumps, indent=1, ensure_ascii=False),
        "rational": _rational,
        "tex": lambda text: Markup(tex_to_html(text)),
    }
    tests: dict[str, Any] = {"nested": lambda value: isinstance(value, list | tuple | dict)}
    names: dict[str, Any] = {"reference": reference, "signs": SIGNS}
    environment.filters.update(filters)
    environment.tests.update(tests)
    environment.globals.update(names)
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    return environment


class _Script(Markup):
    """A program of the page, which holds whatever characters its digest was computed of."""


def _printable(value: Any) -> Any:
    if not isinstance(value, str) or isinstance(value, _Script):
        return value
    return type(value)(str(value).translate(_CONTROLS))


def _rational(text: str) -> float:
    try:
        return float(Fraction(text))
    except OverflowError:  # a certificate may hold any number; only its check says which are proved
        return math.inf


def _file(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _policy(scripts: list[str]) -> str:
    """The security policy of the page: it may run its own scripts, named by their digests, and nothing else."""
    digests = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests) or "'none'"
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )
