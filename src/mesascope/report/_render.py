"""Figures as files for print."""

import errno
import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from mesascope.records import Figure, RecordError, RunDirectory, atomic_path

from ._legend import add_legends
from ._style import DPI, RC, WIDTH
from ._traces import draw, number_whole, panel_height, turn_crowded_names, write_plainly
from ._wrap import letters_across, wrap

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

# No creation date, no version of the library: equal figures are equal files.
_METADATA: dict[str, dict[str, Any]] = {
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "png": {"Software": None},
}

Format = Literal["pdf", "png"]


class FigureError(ValueError):
    """A figure that cannot be drawn; the message says which, why, and the fix."""


_ALL: tuple[Format, ...] = ("pdf", "png")


def render(
    figure: Figure, path_stem: str | os.PathLike[str], formats: Sequence[Format] = _ALL
) -> tuple[Path, ...]:
    """Draw a figure into one file for each format, for print at the width of a column or page.

    Equal figures give equal bytes, on one machine and version of matplotlib; each file appears as a whole.

    Args:
        figure: the figure as traces.
        path_stem: path of the files without extension; its folder is made if missing.
        formats: `"pdf"` (vector, embedded TrueType fonts) and `"png"` (300 dots per inch).

    Returns:
        The files' paths, in the order of `formats`.

    Raises:
        ValueError: an unknown format.
        FigureError: matplotlib cannot draw it, such as a text whose TeX mathematics it cannot read.
        RecordError: a file cannot be written.
    """
    unknown = [name for name in formats if name not in _METADATA]
    if unknown:
        raise ValueError(f"render: no format {unknown[0]!r}; use {' or '.join(map(repr, _METADATA))}")

    import matplotlib

    stem = Path(path_stem)
    paths = []
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    # The caller's own settings (a matplotlibrc, say) neither leak in nor are changed.
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(RC)
        try:
            canvas = Canvas(dpi=DPI, layout="constrained")
            FigureCanvasAgg(canvas)
            draw_panels(figure, canvas)
            canvas.draw_without_rendering()
            canvas.set_layout_engine("none")  # found once, for all formats: it takes most of the time
            for name in formats:
                path = stem.with_name(f"{stem.name}.{name}")
                with atomic_path(path) as temporary:
                    canvas.savefig(temporary, format=name, metadata=_METADATA[name])
                paths.append(path)
        except (RecordError, MemoryError):
            raise
        except Exception as error:  # of matplotlib, about numbers or formulas that a record may hold
            if full := _disk_error(error):
                raise RecordError(
                    f"cannot write {stem}: {full.strerror}; free space or choose another output folder"
                ) from error
            first = " ".join(str(error).split())
            raise FigureError(
                f"figure {figure.title!r} cannot be drawn ({first}); correct its numbers, or the text between $ signs"
            ) from error
    return tuple(paths)


def _disk_error(error: BaseException | None) -> OSError | None:
    """The error of the disk because of which a file of a figure could not be ended, which raises another one."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
            return error
        error = error.__context__
    return None


def draw_panels(figure: Figure, canvas: "Canvas") -> "list[Axes]":
    """Draw all panels into a figure of matplotlib, at the width of a column or page; return their axes."""
    count = len(figure.panels)
    width = WIDTH[figure.width or ("column" if count == 1 else "page")]
    across = min(count, figure.across or _across(count, width))
    rows = [figure.panels[first : first + across] for first in range(0, count, across)]
    heights = [max(panel_height(panel, width / across) for panel in row) for row in rows]
    several = count > 1

    canvas.set_size_inches(width, sum(heights) + 0.3 * several)
    grid = canvas.add_gridspec(len(rows), across, height_ratios=heights)
    drawn = []
    for number, panel in enumerate(figure.panels):
        axes = canvas.add_subplot(grid[divmod(number, across)])
        axes.set_xscale(panel.xscale)
        axes.set_yscale(panel.yscale)
        write_plainly(axes)
        drawn.append((axes, draw(axes, panel)))
        number_whole(axes, panel)
        letters = letters_across(0.85 * width / across)
        axes.set_title(wrap(panel.title, letters), linespacing=1.0)
        axes.set_xlabel(wrap(panel.xlabel, letters), linespacing=1.0)
        tall = letters_across(0.85 * heights[number // across])
        axes.set_ylabel(wrap(panel.ylabel, tall), linespacing=1.0)
    if several:
        canvas.suptitle(wrap(figure.title, letters_across(0.9 * width)))
    turn_crowded_names(canvas)
    add_legends(canvas, drawn)
    return [axes for axes, _ in drawn]


def _across(count: int, width: float) -> int:
    if width == WIDTH["column"]:
        return 1
    return 3 if count % 3 == 0 or count == 5 else 2


def render_run(folder: str | os.PathLike[str]) -> tuple[Path, ...]:
    """Draw every figure of a run directory as PDF and PNG beside its traces, unless the files are up to date.

    A drawing that is newer than the traces is left as it is. A warning names each figure whose traces cannot be read.

    Args:
        folder: the run directory.

    Returns:
        The drawings' paths, `figures/NAME.pdf` and `figures/NAME.png` for every figure, sorted by name.

    Raises:
        RecordError: there is no such folder, or a drawing cannot be written.
        FigureError: a figure cannot be drawn.
    """
    run = RunDirectory(folder)
    if not run.path.is_dir():
        raise RecordError(f"no run directory at {run.path}; reproduce something into it first")
    drawn: list[Path] = []
    for name in run.figures():
        stem = run.figure_stem(name)
        paths = tuple(stem.with_name(f"{stem.name}.{form}") for form in _ALL)
        if not _up_to_date(stem.with_name(f"{stem.name}.json"), paths):
            try:
                figure = run.read_figure(name)
            except RecordError as error:
                warnings.warn(f"a figure is left out: {error}", stacklevel=2)
                continue
            paths = render(figure, stem, _ALL)
        drawn.extend(paths)
    return tuple(drawn)


def _up_to_date(source: Path, drawings: tuple[Path, ...]) -> bool:
    try:
        written = source.stat().st_mtime_ns
        # Strictly newer: on a file system with coarse times, equal ones leave open which came first.
        return all(path.stat().st_size > 0 and path.stat().st_mtime_ns > written for path in drawings)
    except FileNotFoundError:
        return False
