"""Results as HTML, for notebooks."""

import abc
from collections.abc import Iterable, Sequence
from html import escape


class Printed:
    """What prints as one line, and in a notebook as a table.

    A subclass says its title, such as `Flow of LinearAttention`, and its values by name.
    """

    @abc.abstractmethod
    def _printed(self) -> tuple[str, dict[str, str]]:
        """Return title and values, as texts."""

    def _explained(self) -> tuple[str, str] | None:
        """Return one more row, for the table only."""
        return None

    def __repr__(self) -> str:
        title, values = self._printed()
        return f"<{title}: {', '.join(f'{name} {value}'.rstrip() for name, value in values.items())}>"

    def _repr_html_(self) -> str:
        title, values = self._printed()
        more = self._explained()
        return html_table(title, [*values.items(), *([more] if more else [])])


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
