"""The whole page: head, overview of outcomes, contents, sections."""

import base64
import hashlib
from collections.abc import Iterator
from importlib.resources import files

from .._material import Material
from .._theme import style_sheet
from ._claims import glance, papers
from ._findings import certificate_html, identification_html
from ._html import Markup, join, tag
from ._runs import run_html, study_html, training_html


def page(material: Material, title: str, created: str) -> str:
    """The report as one HTML document that loads nothing: scripts and styles are inside.

    Args:
        material: what it shows.
        title: its heading.
        created: the time it is made, ISO 8601.
    """
    from plotly.offline import get_plotlyjs

    names = {id(figure): f"figure/{name}" for name, figure in material.figures}
    body = [*_sections(material, names)]
    scripts = [Markup(get_plotlyjs()), Markup(_file("page.js"))] if names else []
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_policy(scripts)),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="generator", content="mesascope"),
        tag("title", title),
        tag("style", Markup(style_sheet() + _file("page.css"))),
    )
    told = f"Made on {created[:10]} from stored records; nothing was computed for it."
    main = tag("main", _glance(material), *body, id="content")
    document = tag(
        "html",
        head,
        tag(
            "body",
            tag("a", "Skip to the contents", href="#content", class_="skip"),
            tag("header", tag("h1", title), tag("p", told)),
            _contents(material),
            main,
            tag("footer", tag("p", "Report of mesascope. Numbers carry their full digits as tooltips.")),
            *(tag("script", script) for script in scripts),
        ),
        lang="en",
    )
    return f"<!DOCTYPE html>\n{document}\n"


def _file(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _policy(scripts: list[Markup]) -> str:
    """The security policy of the page: it may run its own scripts, named by their digests, and nothing else."""
    digests = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests) or "'none'"
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def _glance(material: Material) -> Markup:
    problems = [
        tag(
            "div",
            tag("p", "These records were asked for and cannot be read:"),
            tag("ul", *lines),
            class_="failure",
        )
        for lines in [[tag("li", one) for one in material.problems]]
        if lines
    ]
    if not material.claims:
        return join(*problems)
    return tag(
        "section",
        tag("h2", "Outcomes", id="outcomes"),
        *problems,
        glance(material.claims),
        aria_labelledby="outcomes",
    )


def _links(material: Material) -> Iterator[tuple[str, str]]:
    """The anchors and titles of the parts of the page."""
    if material.claims:
        yield "outcomes", "Outcomes"
    for paper in dict.fromkeys(entry.record.id.partition("/")[0] for entry in material.claims):
        yield paper, paper
    for study in material.studies:
        yield f"study-{study.record.name}", f"study {study.record.name}"
    for run in material.runs:
        yield f"run-{run.row.id}", f"run {run.row.id[:12]}"
    for n, training in enumerate(material.trainings, start=1):
        yield f"training-{n}", f"training {training.folder.name}"
    for n, one in enumerate(material.identifications, start=1):
        yield f"identification-{n}", f"identification {one.file.parent.name}"
    for n, certificate in enumerate(material.certificates, start=1):
        yield f"certificate-{n}", f"certificate {certificate.file.name}"


def _contents(material: Material) -> Markup:
    items = [tag("li", tag("a", name, href=f"#{anchor}")) for anchor, name in _links(material)]
    return tag("nav", tag("ul", *items), aria_label="Contents")


def _sections(material: Material, names: dict[int, str]) -> Iterator[Markup]:
    yield from papers(material.claims, names)
    for study in material.studies:
        yield study_html(study, names)
    for run in material.runs:
        yield run_html(run, names)
    for n, training in enumerate(material.trainings, start=1):
        yield training_html(n, training, names)
    for n, one in enumerate(material.identifications, start=1):
        yield identification_html(n, one, names)
    for n, certificate in enumerate(material.certificates, start=1):
        yield certificate_html(n, certificate)
