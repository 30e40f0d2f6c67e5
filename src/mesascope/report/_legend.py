"""Legends that cover no data: inside the axes if there is a free place, otherwise below them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ._wrap import letters_across, wrap

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend
    from matplotlib.transforms import Bbox

_PLACES: tuple[Any, ...] = (
    "upper right",
    "upper left",
    "lower right",
    "lower left",
    "center right",
    "center left",
    "upper center",
    "lower center",
    "center",
)

# label → the artists of that name, each with its series
Entries = dict[str, list[tuple[Any, int | None]]]


class _Beside(tuple[Any, ...]):
    """Artists of one kind in several colours: shown side by side, where other groups lie on each other."""


def add_legends(figure: "Figure", panels: Sequence[tuple["Axes", Entries]]) -> None:
    """Give every panel with named traces its legend, or all panels one below if they name much the same traces.

    A legend below makes the figure higher by its own height, so that it takes no room from the data.
    """
    named = [(axes, entries) for axes, entries in panels if entries]
    if shared := _shared([entries for _, entries in named]):
        _below_all(figure, shared)
        return
    waiting = dict(named)
    heights: dict[int, float] = {}  # height in inches of the highest legend below, by row of panels
    # A legend below moves the other axes, which may spoil a place found before: begin again after each.
    while True:
        figure.draw_without_rendering()
        crowded = [axes for axes, entries in waiting.items() if not _inside(axes, entries)]
        if not crowded:
            return
        for axes in waiting:
            if (legend := axes.get_legend()) is not None:
                legend.remove()
        for axes in crowded:
            _below(figure, axes, waiting.pop(axes), heights)


def _shared(panels: Sequence[Entries]) -> Entries:
    """The entries of all panels together, if every panel has half of the names or more, in the same style; otherwise none."""
    together: Entries = {}
    for entries in panels:
        together |= {name: artists for name, artists in entries.items() if name not in together}
    in_all = [name for name in together if len({_look(entries.get(name)) for entries in panels}) == 1]
    return together if len(panels) > 1 and 2 * len(in_all) >= len(together) else {}


def _look(artists: list[tuple[Any, int | None]] | None) -> frozenset[tuple[type, int | None]]:
    return frozenset((type(artist), series) for artist, series in artists or ())


def _arguments(entries: Entries, width: float) -> dict[str, Any]:
    """Handles and labels of a legend no wider than `width` inches."""
    from matplotlib.legend_handler import HandlerTuple

    handles: list[Any] = []
    for artists in entries.values():
        kinds = {type(artist) for artist, _ in artists}
        group = [artist for artist, _ in artists]
        if len(group) == 1:
            handles.append(group[0])
        else:
            handles.append(tuple(group) if len(kinds) == len(group) else _Beside(group[:4]))
    return {
        "handles": handles,
        "labels": [wrap(label, letters_across(width) - 6) for label in entries],
        "handler_map": {_Beside: HandlerTuple(ndivide=None)},
    }


def _below_all(figure: "Figure", entries: Entries) -> None:
    arguments = _arguments(entries, figure.get_figwidth())
    for columns in range(len(entries), 0, -1):
        legend = figure.legend(**arguments, loc="outside lower center", ncols=columns)
        size = legend.get_window_extent()
        if columns == 1 or size.width <= 0.98 * figure.get_figwidth() * figure.dpi:
            figure.set_figheight(figure.get_figheight() + size.height / figure.dpi)
            return
        legend.remove()


def _below(figure: "Figure", axes: "Axes", entries: Entries, heights: dict[int, float]) -> None:
    from matplotlib.transforms import ScaledTranslation

    place = axes.get_subplotspec()
    assert place is not None  # every axes that is drawn here comes from add_subplot
    slot = figure.get_figwidth() / place.get_gridspec().ncols
    # From the axes' lower edge to the foot of their labels: in inches, which the layout leaves alone.
    frame, whole = axes.get_window_extent(), axes.get_tightbbox()
    drop = (frame.y0 - whole.y0) / figure.dpi if whole is not None else 0.0
    under = axes.transAxes + ScaledTranslation(0, -drop, figure.dpi_scale_trans)
    arguments = _arguments(entries, slot)
    for columns in range(min(len(entries), 4), 0, -1):
        legend = axes.legend(
            **arguments,
            loc="upper center",
            bbox_to_anchor=(0.5, 0.0),
            bbox_transform=under,
            borderaxespad=0.4,
            ncols=columns,
        )
        size = legend.get_window_extent()
        if columns == 1 or size.width <= 0.95 * slot * figure.dpi:
            break
    row, needed = place.rowspan.start, size.height / figure.dpi + 0.05
    more = max(needed - heights.get(row, 0.0), 0.0)
    heights[row] = heights.get(row, 0.0) + more
    figure.set_figheight(figure.get_figheight() + more)
    figure.draw_without_rendering()


def _inside(axes: "Axes", entries: Entries) -> bool:
    """Place the legend on a free spot inside the axes; returns whether there is one."""
    arguments = _arguments(entries, axes.get_window_extent().width / axes.figure.dpi)
    for place in _PLACES:
        legend = axes.legend(**arguments, loc=place, edgecolor="0.8")  # its marks are no data
        legend.get_frame().set_linewidth(0.4)
        if not _covers(axes, legend):
            return True
        legend.remove()
    return False


def _covers(axes: "Axes", legend: "Legend") -> bool:
    from matplotlib.collections import Collection
    from matplotlib.lines import Line2D
    from matplotlib.patches import StepPatch

    box = legend.get_window_extent()
    frame = axes.get_window_extent()
    if box.width > 0.9 * frame.width or box.height > 0.9 * frame.height:
        return True
    clear = box.padded(4)
    for artist in axes.get_children():
        if isinstance(artist, Line2D):
            path = artist.get_transform().transform_path(artist.get_path())
            joined = artist.get_linestyle() not in ("None", "none", "")
            if clear.count_contains(path.vertices) or (joined and path.intersects_bbox(clear, filled=False)):
                return True
        elif isinstance(artist, StepPatch):
            path = artist.get_transform().transform_path(artist.get_path())
            if path.intersects_bbox(clear, filled=True):
                return True
        elif isinstance(artist, Collection) and _collection_covers(artist, clear):
            return True
    return False


def _collection_covers(artist: Any, box: "Bbox") -> bool:
    transform = artist.get_transform()
    return any(
        transform.transform_path(path).intersects_bbox(box, filled=True) for path in artist.get_paths()
    )
