"""Results as HTML, for notebooks."""

from collections.abc import Iterable, Sequence
from html import escape


def html_table(title: str, rows: Iterable[Sequence[str]], head: Sequence[str] = ()) -> str:
    """Return a title and a table as HTML; everything is escaped.

    Args:
        title: one line.
        rows: the texts of their cells.
        head: the names of the columns; none for a table of names and values.
    """
    titles = _row("th", head) if head else ""
    return f"<p><b>{escape(title)}</b></p><table>{titles}{''.join(_row('td', row) for row in rows)}</table>"


def _row(cell: str, texts: Sequence[str]) -> str:
    return f"<tr>{''.join(f'<{cell}>{escape(text)}</{cell}>' for text in texts)}</tr>"
