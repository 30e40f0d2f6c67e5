"""Tables in plain text."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from ._intervals import Measured


class Tabled:
    """What prints as the text of its `__str__`, in notebooks too."""

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table with the first column left-aligned and the others right-aligned."""
    lines = [list(header), *(list(row) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if i else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def with_interval(measured: Measured, at: int | tuple[()]) -> str:
    """Return the text of an entry of a measurement, with its interval; `()` is that of a single number."""
    return f"{measured.value[at]:.3g} [{measured.low[at]:.3g}, {measured.high[at]:.3g}]"


def layer_names(count: int) -> list[str]:
    """Return the names of the streams: the embedding, then the layers."""
    return ["embedding", *(f"layer {layer}" for layer in range(1, count))]
