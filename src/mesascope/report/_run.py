"""All figures of a run directory."""

import os
from pathlib import Path

from mesascope.records import RecordError, RunDirectory

from ._render import Format, render

_FORMATS: tuple[Format, ...] = ("pdf", "png")


def render_run(folder: str | os.PathLike[str]) -> tuple[Path, ...]:
    """Draw every figure of a run directory as PDF and PNG beside its traces, unless the files are up to date.

    A drawing that is newer than the traces is left as it is.

    Args:
        folder: the run directory.

    Returns:
        The drawings' paths, `figures/NAME.pdf` and `figures/NAME.png` for every figure, sorted by name.

    Raises:
        RecordError: there is no such folder, a figure's record cannot be read, or a drawing not written.
        ValueError: a text of a figure cannot be typeset.
    """
    run = RunDirectory(folder)
    if not run.path.is_dir():
        raise RecordError(f"no run directory at {run.path}; reproduce something into it first")
    drawn: list[Path] = []
    for name in run.figures():
        stem = run.figure_stem(name)
        paths = tuple(stem.with_name(f"{stem.name}.{form}") for form in _FORMATS)
        if not _up_to_date(stem.with_name(f"{stem.name}.json"), paths):
            paths = render(run.read_figure(name), stem, _FORMATS)
        drawn.extend(paths)
    return tuple(drawn)


def _up_to_date(source: Path, drawings: tuple[Path, ...]) -> bool:
    try:
        written = source.stat().st_mtime_ns
        # Strictly newer: on a file system with coarse times, equal ones leave open which came first.
        return all(path.stat().st_size > 0 and path.stat().st_mtime_ns > written for path in drawings)
    except FileNotFoundError:
        return False
