"""Models × learners: how far every learner is from every model."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mesascope.records import CellMap, Figure, Panel

_NEAREST, _FURTHEST = 1e-8, 1.0  # of the distances whose colours differ
_COLUMNS = 24  # more names of learners cannot be read


def distance_map(
    rankings: Mapping[str, Sequence[Mapping[str, Any]]], title: str, caption: str = ""
) -> Figure | None:
    """The distances of learners from models as coloured cells, a row for each model, nearest learners only.

    Columns are the learners that are among the nearest of some model, sorted by the first model that is near them.

    Args:
        rankings: the name of a model → its learners, the nearest first, each with `learner` and `distance`.
        title: of the figure.
        caption: of the figure.

    Returns:
        The figure; None for less than two models.
    """
    if len(rankings) < 2:
        return None
    columns = _nearest(rankings.values())
    distances = [{one["learner"]: one["distance"] for one in ranking} for ranking in rankings.values()]
    cells = [[_shown(found.get(name)) for name in columns] for found in distances]
    trace = CellMap(
        x=[float(place) for place in range(len(columns))],
        y=[float(place) for place in range(len(cells))],
        z=cells[::-1],
        xnames=tuple(columns),
        ynames=tuple(rankings)[::-1],
        colorlabel="distance: share of the model's mean square unexplained",
        scale="log",
        limits=(_NEAREST, _FURTHEST),
        missing="not compared",
    )
    panel = Panel(title="Distance of every learner", xlabel="learner", ylabel="model", traces=(trace,))
    return Figure(title=title, panels=(panel,), caption=caption, width="page")


def _nearest(rankings: Iterable[Sequence[Mapping[str, Any]]]) -> list[str]:
    """Return the learners that are nearest to some model: all first ones, then all second ones, up to a number."""
    rankings = [sorted(ranking, key=lambda one: float(one["distance"])) for ranking in rankings]
    chosen: dict[str, None] = {}
    for place in range(max(map(len, rankings), default=0)):
        for ranking in rankings:
            if place < len(ranking) and len(chosen) < _COLUMNS:
                chosen.setdefault(str(ranking[place]["learner"]))
    return list(chosen)


def _shown(distance: float | None) -> float | None:
    return None if distance is None else min(max(distance, _NEAREST), _FURTHEST)
