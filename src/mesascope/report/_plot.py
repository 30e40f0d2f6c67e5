"""Results as figures of matplotlib, for notebooks."""

from typing import TYPE_CHECKING, Any

from mesascope.records import AlongRecord, Figure, IdentificationRecord
from mesascope.specs import show

from ._along import along_figure
from ._identification import identification_figures
from ._phase_figure import phase_figure
from ._render import draw_panels
from ._study_figures import array_figure
from ._style import RC

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SCREEN_DPI = 150


def plot(result: Any, name: str | None = None) -> "list[Axes]":
    """Draw a result as reports draw it, with matplotlib's pyplot: a notebook shows it, a program calls `plt.show()`.

    Args:
        result: a flow, descent or training; what `phase_diagram` returned; the arrays of a study; the finding of a claim, or
            what `reproduce` returned; an identification, or its record with curves; one along training, or its record; or a
            `Figure`.
        name: which figure, of several; by default the first.

    Returns:
        The axes of its panels, to be changed further.

    Raises:
        TypeError: objects of this type have no figure.
        ValueError: it holds no figure, or none of this name.
    """
    import matplotlib.pyplot as plt

    figures = _figures(result)
    if not figures:
        raise ValueError(f"plot: this {type(result).__name__} holds no figures")
    if name is not None and name not in figures:
        raise ValueError(f"plot: there is no figure {show(name)}; there are {', '.join(figures)}")
    figure = figures[next(iter(figures)) if name is None else name]
    with plt.rc_context(RC):
        return draw_panels(figure, plt.figure(dpi=_SCREEN_DPI, layout="constrained"))


def _figures(result: Any) -> dict[str, Figure]:
    if isinstance(result, Figure):
        return {"figure": result}
    if isinstance(result, IdentificationRecord):
        return identification_figures(result)
    if isinstance(result, AlongRecord):
        return {"figure": along_figure(result)}
    if hasattr(result, "changes") and callable(record := getattr(result, "record", None)):
        return {"figure": along_figure(record())}
    if hasattr(result, "verdict") and callable(record := getattr(result, "record", None)):
        return identification_figures(record())
    if callable(draw := getattr(result, "figure", None)):
        return {"figure": draw()}
    if isinstance(several := getattr(result, "figures", None), dict):
        return several
    if type(result).__module__.startswith("xarray"):
        if "critical_point" in result:
            return {"figure": phase_figure(result, "Phase diagram")}
        if "run" in result:
            return {"figure": array_figure(result)}
        raise TypeError(
            "plot: these arrays are neither a phase diagram nor those of a study; pass all that `to_xarray` returned"
        )
    raise TypeError(
        f"plot: cannot draw {type(result).__name__}; give a flow, descent, training, identification, phase diagram, what "
        "reproduce returned, or Figure"
    )
