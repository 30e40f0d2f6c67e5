"""The whole page: templates filled with records and figures."""

import base64
import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from importlib.resources import files
from itertools import groupby
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from mesascope.records import SIGNS

from .._material import Entry, Material
from .._tex import tex_to_html
from .._theme import style_sheet
from ._bibliography import reference
from ._claims import look, summary
from ._figures import drawn
from ._studies import axis_names, axis_values, outcome_columns, statuses
from ._values import brief, columns, named, number


def page(material: Material, title: str, created: str) -> str:
    """The report as one HTML document that loads nothing: scripts and styles are inside.

    Args:
        material: what it shows.
        title: its heading.
        created: the time it is made, ISO 8601.
    """
    from plotly.offline import get_plotlyjs

    scripts = [get_plotlyjs(), _file("page.js")] if any(material.figures) else []
    papers = [(paper, list(claims)) for paper, claims in groupby(material.of("claim"), _paper)]
    template = _environment().get_template("page.html")
    return template.render(
        **{"title": title, "created": created, "problems": material.problems, "papers": papers},
        entries=[entry for entry in material.entries if entry.kind != "claim"],
        policy=_policy(scripts),
        style=Markup(style_sheet() + _file("page.css")),
        scripts=list(map(Markup, scripts)),
        **_overview(papers),
    )


def _paper(entry: Entry) -> str:
    return str(entry.record.id).partition("/")[0]


def _environment() -> Environment:
    """The templates, with what they call; all text is escaped, except markup."""
    environment = Environment(
        loader=PackageLoader("mesascope.report.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    functions = (
        axis_names,
        axis_values,
        brief,
        columns,
        drawn,
        look,
        named,
        number,
        outcome_columns,
        statuses,
        summary,
    )
    filters: dict[str, Any] = {one.__name__: one for one in functions} | {
        "as_json": partial(json.dumps, indent=1, ensure_ascii=False),
        "rational": lambda text: float(Fraction(text)),
        "tex": lambda text: Markup(tex_to_html(text)),
    }
    tests: dict[str, Any] = {"nested": lambda value: isinstance(value, list | tuple | dict)}
    names: dict[str, Any] = {"reference": reference, "signs": SIGNS}
    environment.filters.update(filters)
    environment.tests.update(tests)
    environment.globals.update(names)
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    return environment


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


def _overview(papers: list[tuple[str, list[Entry]]]) -> dict[str, Any]:
    """Numbers of claims by outcome, rows of papers, and the claims that do not simply hold."""
    claims = [entry for _, entries in papers for entry in entries]
    counts = Counter(entry.record.outcome for entry in claims)
    unusual = ("contradicted", "not reproduced at this scale", "undecided", "holds with a difference")
    return {
        "totals": {one: counts[one] for one in SIGNS if counts[one]},
        "several_presets": len({entry.record.preset for entry in claims}) > 1,
        "rows": [row for paper, entries in papers for row in _rows(paper, entries)],
        "exceptions": [entry for one in unusual for entry in claims if entry.record.outcome == one],
    }


def _rows(paper: str, entries: list[Entry]) -> Iterator[tuple[str, str | None, Counter[str]]]:
    """Numbers of claims by outcome, for each preset."""
    for preset in dict.fromkeys(entry.record.preset for entry in entries):
        yield paper, preset, Counter(one.record.outcome for one in entries if one.record.preset == preset)
