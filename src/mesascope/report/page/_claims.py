"""Claims in the page: the table of outcomes, and a section for every paper."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from mesascope.records import SIGNS, ClaimRecord, Outcome, Provenance

from .._material import ClaimEntry
from ._bibliography import citation, title_of
from ._figures import figure_html
from ._html import Markup, join, tag
from ._values import brief, folded, listing, named, scrolled, specification

_APART = ("meaning", "error", "traceback")  # details that have a place of their own


def outcome(found: Outcome) -> Markup:
    """An outcome with its sign, so that it is not shown by colour alone."""
    return tag("span", f"{SIGNS[found]} {found}", class_=f"outcome {_look(found)}")


def _look(found: Outcome) -> str:
    """The class of an outcome in the style sheet."""
    return found.partition(" at ")[0].replace(" ", "-")


def identifier(record: ClaimRecord, several: bool) -> str:
    """The anchor of a claim: its id; with the preset, where there are records of several."""
    return f"{record.id}/{record.preset}" if several else record.id


# At a glance


def glance(claims: Sequence[ClaimEntry]) -> Markup:
    """The number of claims with each outcome; a row for every paper; the names of claims that do not simply hold."""
    counts = Counter(entry.record.outcome for entry in claims)
    totals = [
        tag("li", tag("b", counts[one]), " ", outcome(one), class_="total") for one in SIGNS if counts[one]
    ]
    presets = list(dict.fromkeys(entry.record.preset for entry in claims))
    head = tag(
        "tr",
        *(
            tag("th", name, scope="col")
            for name in ("paper", *(["preset"] if len(presets) > 1 else []), "claims", *SIGNS)
        ),
    )
    rows = [
        row for paper, entries in by_paper(claims) for row in _paper_rows(paper, entries, len(presets) > 1)
    ]
    table = tag("table", tag("caption", "Outcomes by paper"), tag("thead", head), tag("tbody", *rows))
    return join(tag("ul", *totals, class_="totals"), scrolled(table), _not_plain(claims))


def by_paper(claims: Sequence[ClaimEntry]) -> Iterator[tuple[str, list[ClaimEntry]]]:
    """The claims of each paper, in their order."""
    for paper, entries in groupby(claims, key=lambda entry: entry.record.id.partition("/")[0]):
        yield paper, list(entries)


def _paper_rows(paper: str, entries: Sequence[ClaimEntry], with_preset: bool) -> Iterator[Markup]:
    for preset in dict.fromkeys(entry.record.preset for entry in entries):
        found = Counter(entry.record.outcome for entry in entries if entry.record.preset == preset)
        yield tag(
            "tr",
            tag("th", tag("a", paper, href=f"#{paper}", title=title_of(paper)), scope="row"),
            tag("td", preset or "–") if with_preset else None,
            tag("td", found.total()),
            *(tag("td", found[one] or "", class_=_look(one) if found[one] else None) for one in SIGNS),
        )


def _not_plain(claims: Sequence[ClaimEntry]) -> Markup | None:
    several = repeated(claims)
    lines = [
        tag(
            "li",
            outcome(entry.record.outcome),
            " ",
            tag(
                "a",
                f"{_title(entry.record, several)}: {entry.record.title}",
                href=f"#{identifier(entry.record, entry.record.id in several)}",
            ),
        )
        for one in ("contradicted", "not reproduced at this scale", "undecided", "holds with a difference")
        for entry in claims
        if entry.record.outcome == one
    ]
    return join(tag("h3", "What does not simply hold"), tag("ul", *lines, class_="plain")) if lines else None


def repeated(claims: Sequence[ClaimEntry]) -> set[str]:
    """The ids of claims with records of several presets."""
    return {id for id, count in Counter(entry.record.id for entry in claims).items() if count > 1}


def _title(record: ClaimRecord, several: set[str]) -> str:
    return f"{record.id} ({record.preset})" if record.id in several else record.id


# Claim by claim


def papers(claims: Sequence[ClaimEntry], names: Mapping[int, str]) -> Iterator[Markup]:
    """A section for every paper.

    Args:
        claims: in their order.
        names: of the figures in the page, by the identity of the figure.
    """
    several = repeated(claims)
    for paper, entries in by_paper(claims):
        yield tag(
            "section",
            tag("h2", title_of(paper), id=paper),
            tag("p", citation(paper), class_="citation"),
            *(_claim(entry, several, names) for entry in entries),
            aria_labelledby=paper,
        )


def _claim(entry: ClaimEntry, several: set[str], names: Mapping[int, str]) -> Markup:
    record = entry.record
    anchor = identifier(record, record.id in several)
    name = record.id.partition("/")[2] + (f" ({record.preset})" if record.id in several else "")
    rest = {key: value for key, value in record.details.items() if key not in _APART and not _interval(key)}
    return tag(
        "article",
        tag(
            "h3",
            tag("a", name, href=f"#{anchor}", class_="anchor"),
            f": {record.title} ",
            outcome(record.outcome),
            " ",
            tag("span", record.evidence, class_="evidence"),
            id=anchor,
        ),
        tag("p", record.statement, class_="statement"),
        tag("p", record.difference, class_=f"difference {_look(record.outcome)}")
        if record.difference
        else None,
        tag("p", f"{record.source} · origin: {record.origin}", class_="source"),
        _error(record),
        _measured(record),
        _said(record),
        *(figure_html(names[id(figure)], figure) for _, figure in entry.figures),
        folded("Every case and number", listing(rest)) if rest else None,
        folded("Setting", specification(record.setting)) if record.setting else None,
        provenance_html(record.provenance, *_run_facts(record)),
    )


def _error(record: ClaimRecord) -> Markup | None:
    error = record.details.get("error")
    if error is None:
        return None
    trace = record.details.get("traceback")
    shown = folded("Traceback", tag("pre", trace, tabindex=0)) if trace else None
    return tag("div", tag("p", f"It could not be checked: {error}"), shown, class_="failure")


def _said(record: ClaimRecord) -> Markup:
    told = []
    if _apart(record):
        told += [tag("dt", "expected"), tag("dd", brief(record.expected))]
    if record.tolerance is not None:
        told += [tag("dt", "tolerance"), tag("dd", brief(record.tolerance))]
    meaning = record.details.get("meaning")
    parts = ", ".join(f"{name}: {decision}" for name, decision in record.parts.items())
    for title, text in (
        ("parts", parts),
        ("criterion", record.criterion),
        ("what the numbers are", meaning),
        ("history", record.history),
    ):
        if text:
            told += [tag("dt", title), tag("dd", text)]
    return tag("dl", *told, class_="said")


def _measured(record: ClaimRecord) -> Markup | None:
    """Measured and expected values, with the intervals in the record."""
    if record.measured is None and record.expected is None:
        return None
    measured, expected = _rows(record.measured), {} if _apart(record) else _rows(record.expected)
    rows: dict[str, list[Any]] = {}
    for column, values in enumerate((measured, expected)):
        for key, value in values.items():
            rows.setdefault(key, [None, None, None])[column] = value
    for key, value in _intervals(record.details).items():
        row = key if key in rows else next(iter(rows)) if key == "" else f"{key} "
        rows.setdefault(row, [None, None, None])[2] = value
    shown = [n for n in range(3) if any(row[n] is not None for row in rows.values())]
    names = [("measured", "expected", "interval")[n] for n in shown]
    head = tag("tr", tag("td"), *(tag("th", name, scope="col") for name in names))
    body = [
        tag(
            "tr",
            tag("th", named(key) or "value", scope="row"),
            *(tag("td", "" if row[n] is None else brief(row[n])) for n in shown),
        )
        for key, row in rows.items()
    ]
    return scrolled(tag("table", tag("thead", head), tag("tbody", *body), class_="measured"))


def _apart(record: ClaimRecord) -> bool:
    """Whether the expected value of several numbers is one sentence."""
    return isinstance(record.measured, dict) and isinstance(record.expected, str)


def _rows(value: Any) -> dict[str, Any]:
    return dict(value) if isinstance(value, dict) else {"": value}


_INTERVAL = re.compile(r"intervals?_(\d+)(.*)")


def _interval(key: str) -> bool:
    return _INTERVAL.fullmatch(key) is not None


def _intervals(details: Mapping[str, Any]) -> dict[str, Any]:
    """The intervals of a record, by the names of their values; "" for the only one."""
    found: dict[str, Any] = {}
    for key, value in details.items():
        match = _INTERVAL.fullmatch(key)
        if match is None:
            continue
        of = match[2].removeprefix("_of_the_").removeprefix("_of_").strip("_")
        level = f"{match[1]} %: "
        if isinstance(value, dict):
            found |= {name: join(level, brief(ends)) for name, ends in value.items()}
        else:
            found[of] = join(level, brief(value))
    return found


def _run_facts(record: ClaimRecord) -> Iterator[str]:
    if record.preset:
        yield f"{record.preset} preset"
    yield f"{record.seconds:.1f} s"
    if record.seed is not None:
        yield f"seed {record.seed}"


def provenance_html(provenance: Provenance, *facts: str) -> Markup:
    """Date, machine and code in one line; the rest of the provenance below it."""
    commit = (
        f" ({provenance.commit[:10]}{', changed' if provenance.dirty else ''})" if provenance.commit else ""
    )
    line = [
        *facts,
        provenance.created[:10],
        f"mesascope {provenance.mesascope}{commit}",
        provenance.processor,
    ]
    return folded(
        tag("span", " · ".join(filter(None, line)), class_="provenance"),
        listing(provenance.model_dump(mode="json")),
    )
