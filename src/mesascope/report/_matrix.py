"""Claims as a matrix: a row for each paper, a cell for each claim."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import chain, repeat
from typing import Self, get_args

from mesascope.records import IMPORTANCE, SIGNS, ClaimRecord, Evidence

from ._style import PALETTE
from ._theme import style_sheet

_, _VERMILLION, _GREEN, _PURPLE, _SKY, _ORANGE = PALETTE
_SIGNS = dict[str, str](SIGNS.items())
_COLORS = dict[str, str](zip(SIGNS, (_GREEN, _SKY, _VERMILLION, _ORANGE, _PURPLE), strict=True))
_OTHER_COLOR, _OTHER_SIGN = "#B4B9C0", "–"  # of an outcome that no record has, such as "not checked"
_SQUARE = "M-9-9h18v18h-18z"
_SHAPES = dict[str, tuple[str, int]](
    zip(
        get_args(Evidence),
        (
            ("M-9.5-10h19v9.5c0 5.5-4.5 9-9.5 11c-5-2-9.5-5.5-9.5-11z", 0),  # a shield
            (_SQUARE, 0),
            ("M10.2 0a10.2 10.2 0 1 1-20.4 0a10.2 10.2 0 1 1 20.4 0z", 0),
            ("M0-11.5l11.5 20.5h-23z", 3),
            ("M0-12l12 12l-12 12l-12-12z", 0),
        ),
        strict=True,
    )
)
"""Evidence → its shape, and how far below the centre the sign stands."""
_PITCH, _LINE, _MARGIN = 28, 30, 15  # pixels
_OF_NAMES, _OF_WORDS = 8, 7.3  # pixels of a letter, on average at most, in names of papers and in words
_STYLE = """
.matrix { font: 13px system-ui, sans-serif; max-width: 100%; height: auto; }
.matrix text { fill: var(--ink); dominant-baseline: central; }
.matrix .shape { stroke: var(--ink); }
.matrix .plain { fill: none; }
.matrix .sign { fill: #000; font-size: 14px; font-weight: 700; text-anchor: middle; }
.matrix a { cursor: pointer; text-decoration: none; outline: none; }
.matrix a:is(:hover, :focus-visible) .shape { stroke-width: 3.5; }
.matrix a:is(:hover, :focus-visible) .name { text-decoration: underline; }
"""


@dataclass(frozen=True)
class MatrixCell:
    """One claim in a matrix.

    Attributes:
        id: of the claim, `paper/claim`.
        title: of the claim.
        evidence: one of `mesascope.records.Evidence`; the shape of the cell.
        outcome: one of `mesascope.records.Outcome`, or a word of its own where there is no record; colour and sign.
        link: where the cell leads to; nowhere if it is empty.
    """

    id: str
    title: str
    evidence: str
    outcome: str
    link: str = ""

    @classmethod
    def of(cls, record: ClaimRecord, link: str = "") -> Self:
        """The cell of a record."""
        return cls(record.id, record.title, record.evidence, record.outcome, link)

    @property
    def described(self) -> str:
        """All of it in words."""
        return f"{self.id}: {self.title} – {self.evidence} – {self.outcome}"


@dataclass(frozen=True)
class MatrixRow:
    """The claims of one paper.

    Attributes:
        name: of the paper.
        cells: its claims.
        link: where the name leads to; nowhere if it is empty.
    """

    name: str
    cells: tuple[MatrixCell, ...]
    link: str = ""


def importance(outcome: str) -> int:
    """The place of an outcome in `mesascope.records.IMPORTANCE`; an outcome that is not in it comes last."""
    places: dict[str, int] = {known: place for place, known in enumerate(IMPORTANCE)}
    return places.get(outcome, len(places))


def most_important_first(rows: Iterable[MatrixRow]) -> list[MatrixRow]:
    """The rows by the outcomes of their claims, and the cells of each; where these are equal, in the order given."""
    inside = (
        replace(row, cells=tuple(sorted(row.cells, key=lambda cell: importance(cell.outcome))))
        for row in rows
    )
    return sorted(inside, key=_of_row)


def _of_row(row: MatrixRow) -> list[int]:
    """What does not simply hold counts, in its order; how much else there is does not."""
    last = importance(IMPORTANCE[-1])
    return [*(place for cell in row.cells if (place := importance(cell.outcome)) < last), last]


def matrix(
    rows: Sequence[MatrixRow],
    *,
    columns: int = 32,
    stacked: bool = False,
    alone: bool = True,
    one_stop: bool = False,
) -> str:
    """The matrix as SVG: the shape of a cell is its evidence, its colour and sign its outcome.

    Args:
        rows: the papers.
        columns: cells in a line; a paper with more takes several lines.
        stacked: whether names stand above their cells, for a narrow page, and not beside them.
        alone: whether it is a file of its own, with colours that follow the reader's theme. Inside a page it takes the
            page's variables `--ink` and `--paper`.
        one_stop: whether the Tab key stops at the first cell only, for a page in which arrow keys move between cells.
    """
    left = 0 if stacked else _OF_NAMES * max((len(row.name) for row in rows), default=0) + 12
    longest = max((len(row.cells) for row in rows), default=0)
    width = left + _PITCH * (columns if stacked else max(min(columns, longest), 20))
    stops = chain([' tabindex="0"'], repeat(' tabindex="-1"')) if one_stop else repeat("")
    legend, y = _legend([cell for row in rows for cell in row.cells], width, _MARGIN)
    parts = [legend]
    y += 12
    for row in rows:
        drawn, y = _row(row, columns, left, y, stacked, stops)
        parts.append(drawn)
    return _document("".join(parts), width + 2, y - _MARGIN + 4, alone)


def _document(content: str, width: int, height: int, alone: bool) -> str:
    colors = style_sheet() if alone else ""
    ground = f'<rect width="{width}" height="{height}" style="fill:var(--paper)"/>' if alone else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="matrix" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="group" aria-label="Claims by paper: a cell for each claim">'
        f"<style>{colors}{_STYLE}</style>{ground}\n{content}</svg>\n"
    )


def _row(
    row: MatrixRow, columns: int, left: int, y: int, stacked: bool, stops: Iterator[str]
) -> tuple[str, int]:
    """The row with its first line at `y`, and where the next one begins."""
    name = _linked(f'<text class="name" x="2" y="{y}">{escape(row.name)}</text>', row.link)
    begin = y + 26 if stacked else y
    cells = "".join(
        _cell(cell, left + _PITCH * (at % columns) + _MARGIN, begin + _LINE * (at // columns), next(stops))
        for at, cell in enumerate(row.cells)
    )
    lines = max(1, -(-len(row.cells) // columns))
    label = escape(f"{row.name}: {len(row.cells)} claims")
    return f'<g role="group" aria-label="{label}">{name}\n{cells}</g>\n', begin + _LINE * lines


def _cell(cell: MatrixCell, x: int, y: int, stop: str) -> str:
    words = escape(cell.described)
    drawn = f"<title>{words}</title>{_mark(*_SHAPES[cell.evidence], cell.outcome)}"
    placed = f'transform="translate({x} {y})"'
    if not cell.link:
        return f'<g {placed} role="img" aria-label="{words}">{drawn}</g>\n'
    leads = f'href="{escape(cell.link)}" data-claim="{escape(cell.id)}"{stop}'
    return f'<a {placed} {leads} aria-label="{words}">{drawn}</a>\n'


def _mark(shape: str, lower: int, outcome: str) -> str:
    """A shape in the colour of an outcome, with its sign."""
    color, sign = _COLORS.get(outcome, _OTHER_COLOR), _SIGNS.get(outcome, _OTHER_SIGN)
    return f'<path class="shape" d="{shape}" fill="{color}"/><text class="sign" y="{lower}" aria-hidden="true">{sign}</text>'


def _linked(content: str, link: str) -> str:
    return f'<a href="{escape(link)}">{content}</a>' if link else content


def _legend(cells: Sequence[MatrixCell], width: int, y: int) -> tuple[str, int]:
    """What shapes and colours mean, with how many claims have each, and where the next line begins."""
    outcomes = Counter(cell.outcome for cell in cells)
    evidence = Counter(cell.evidence for cell in cells)
    named = dict.fromkeys(
        [*SIGNS, *outcomes]
    )  # those without a claim too: that none is contradicted is worth saying
    blocks = [
        [(_mark(_SQUARE, 0, one), f"{one}: {outcomes[one]}") for one in named],
        [
            (f'<path class="shape plain" d="{shape}"/>', f"{one}: {evidence[one]}")
            for one, (shape, _) in _SHAPES.items()
        ],
    ]
    parts = []
    for items in blocks:
        drawn = list(_items(items, width, y))
        parts += [part for part, _ in drawn]
        y = drawn[-1][1] + _LINE
    return f'<g role="group" aria-label="legend">{"".join(parts)}</g>\n', y


def _items(items: Iterable[tuple[str, str]], width: int, y: int) -> Iterator[tuple[str, int]]:
    """Entries of a legend in as many lines as they need, each with the height of its line."""
    x = 0
    for mark, words in items:
        needed = _PITCH + round(_OF_WORDS * len(words)) + 8
        if x and x + needed > width:
            x, y = 0, y + _LINE
        text = f'<text x="16" y="0">{escape(words)}</text>'
        yield f'<g transform="translate({x + _MARGIN} {y})">{mark}{text}</g>\n', y
        x += needed
