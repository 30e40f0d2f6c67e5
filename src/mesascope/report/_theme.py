"""Colours of figures in a browser."""

from dataclasses import dataclass

from ._style import PALETTE, THEORY


@dataclass(frozen=True)
class Theme:
    """The colours of a figure, as CSS writes them.

    Attributes:
        ink: of text, axes and theory.
        paper: of the background.
        grid: of the lines behind the data.
        missing: of cells without a value.
        series: of the series, in their order.
        diverging: of a matrix, from its least to its greatest entry; 0 has nearly the colour of the background.
        lines: between the blocks of a matrix.
    """

    ink: str = THEORY
    paper: str = "#FFFFFF"
    grid: str = "#E3E3E3"
    missing: str = "#D4D4D4"
    series: tuple[str, ...] = PALETTE
    diverging: tuple[str, ...] = (
        *("#053061", "#2166AC", "#4393C3", "#92C5DE", "#D1E5F0", "#F7F7F7"),
        *("#FDDBC7", "#F4A582", "#D6604D", "#B2182B", "#67001F"),
    )
    lines: str = "#000000"

    def color(self, series: int | None) -> str:
        """The colour of a series; None is theory."""
        return self.ink if series is None else self.series[series % len(self.series)]


LIGHT = Theme()
"""The colours on white."""

# On black the first colours are lighter: contrast 4.5 to 1 with the background, distinct with colour vision deficiencies.
DARK = Theme(
    ink="#E8E8E8",
    paper="#15181C",
    grid="#32373D",
    missing="#4A4F55",
    series=("#3F8BC3", "#F08A4B", "#2FBB89", "#DB8FB8", "#92CDF4", "#FCC841"),
    diverging=(
        *("#9FDBFF", "#66B5EA", "#3F8FC8", "#2F6C97", "#20425A", "#22272D"),
        *("#583323", "#97512F", "#D0703F", "#F09A6E", "#FFC6A3"),
    ),
    lines="#9AA1A9",
)
"""The colours on black."""

# The names of variables of a style sheet, for a page that knows the theme only when it is opened.
VARIABLES = Theme(
    ink="var(--ink)",
    paper="var(--paper)",
    grid="var(--grid)",
    missing="var(--missing)",
    series=tuple(f"var(--series-{n})" for n in range(len(PALETTE))),
)


def style_sheet() -> str:
    """CSS that gives `VARIABLES` the values of `LIGHT`, or those of `DARK` for readers who prefer dark screens."""
    dark = f"@media screen and (prefers-color-scheme: dark) {{ {_values(DARK)} }}"
    return f"{_values(LIGHT)}\n{dark}\n"


def _values(theme: Theme) -> str:
    named = {"ink": theme.ink, "paper": theme.paper, "grid": theme.grid, "missing": theme.missing}
    named |= {f"series-{n}": color for n, color in enumerate(theme.series)}
    return f":root {{ {' '.join(f'--{name}: {color};' for name, color in named.items())} }}"
