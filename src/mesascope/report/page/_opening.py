"""What the page opens with: the matrix of claims, what was found here, and where the other figures are."""

import re
from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple, get_args

from markupsafe import Markup, escape

from mesascope.papers import INSIGHTS
from mesascope.records import IMPORTANCE, Evidence

from .._material import Entry, Figures
from .._matrix import MatrixCell, MatrixRow, importance, matrix

_WIDE, _NARROW = 28, 12  # cells in a line that fit the page, and a phone


class Finding(NamedTuple):
    """What was found here that no paper says: the claim's entry, a paragraph, and its figure, if that was drawn."""

    entry: Entry
    text: Markup
    figures: Figures


def opening(claims: Sequence[Entry]) -> dict[str, Any]:
    """What the templates show before and of the claims.

    The claims that do not simply hold come first, whatever their paper, then the others by paper and evidence.
    """
    rows = [MatrixRow(paper, tuple(map(_cell, found)), f"#{paper}") for paper, found in _papers(claims)]
    unusual = sorted(
        (one for one in claims if not _holds(one)), key=lambda one: importance(one.record.outcome)
    )
    findings = [found for insight in INSIGHTS for found in _findings(insight, claims)]
    above = {one.entry.anchor: {name for name, _ in one.figures} for one in findings}
    return {
        "matrices": [
            ("wide", Markup(matrix(rows, columns=_WIDE, alone=False))),
            ("narrow", Markup(matrix(rows, columns=_NARROW, stacked=True, alone=False))),
        ],
        "findings": findings,
        "figures_above": above,
        "other_figures": [
            (one, name, figure)
            for one in claims
            for name, figure in one.figures
            if name not in above.get(one.anchor, ())
        ],
        "unusual": unusual,
        "papers": [
            (paper, sorted(filter(_holds, found), key=_evidence), [one for one in found if not _holds(one)])
            for paper, found in _papers(claims)
        ],
    }


def _papers(claims: Sequence[Entry]) -> list[tuple[str, list[Entry]]]:
    """The claims by paper; they come in the order of papers."""
    return [(paper, list(found)) for paper, found in groupby(claims, _paper)]


def _paper(entry: Entry) -> str:
    return str(entry.record.id).partition("/")[0]


def _cell(entry: Entry) -> MatrixCell:
    record = entry.record
    return MatrixCell(entry.name, record.title, record.evidence, record.outcome, f"#{entry.anchor}")


def _holds(entry: Entry) -> bool:
    return bool(entry.record.outcome == IMPORTANCE[-1])


def _evidence(entry: Entry) -> int:
    return get_args(Evidence).index(entry.record.evidence)


def _findings(insight: Any, claims: Sequence[Entry]) -> list[Finding]:
    """The finding for each preset under which its claim was checked; it is none unless the claim holds."""
    name = f"{insight.claim.partition('/')[0]}/{insight.figure}"
    return [
        Finding(one, _with_code(insight.text), tuple(figure for figure in one.figures if figure[0] == name))
        for one in claims
        if one.record.id == insight.claim and _holds(one)
    ]


def _with_code(text: str) -> Markup:
    """The text, its names between backticks as code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))
