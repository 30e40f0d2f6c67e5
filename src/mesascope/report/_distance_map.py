"""Models × learners: how far every learner is from every model."""

from collections.abc import Mapping, Sequence

from mesascope.records import CellMap, Figure, LayersRecord, Panel

_NEAREST, _FURTHEST = 1e-8, 1.0  # of the distances whose colours differ
_COLUMNS = 24  # more names of learners cannot be read


def distance_map(distances: Mapping[str, Mapping[str, float]], title: str, caption: str) -> Figure:
    """The distances of learners from models as coloured cells, a row for each model.

    Columns are the learners that are nearest to some model, at most 24: first those that are the nearest of one.

    Args:
        distances: the name of a model → the name of a learner → its distance.
        title: of the figure.
        caption: of the figure.
    """
    columns = _nearest(list(distances.values()))
    cells = [[_shown(of.get(name)) for name in columns] for of in distances.values()]
    trace = CellMap(
        x=[float(place) for place in range(len(columns))],
        y=[float(place) for place in range(len(cells))],
        z=cells[::-1],
        xnames=tuple(columns),
        ynames=tuple(distances)[::-1],
        colorlabel="distance: share of the model's mean square unexplained",
        scale="log",
        limits=(_NEAREST, _FURTHEST),
        missing="not compared",
    )
    panel = Panel(
        title="Distances of the nearest learners", xlabel="learner", ylabel="model", traces=(trace,)
    )
    return Figure(title=title, panels=(panel,), caption=caption, width="page")


def layers_figure(record: LayersRecord, data: str) -> Figure:
    """The distances of learners from the layers of a record, with given and with trained weights, on one kind of data.

    Raises:
        KeyError: the record has no such data.
    """
    layers = record.data[data]
    given = {rule: one.given.distances for rule, one in layers.items()}
    trained = {f"{rule}, trained": one.trained.distances for rule, one in layers.items()}
    caption = "Layers whose keys are inputs and whose values are outputs, with the best constant gates; below, trained layers."
    return distance_map(given | trained, f"What layers compute: {data}", caption)


def _nearest(distances: Sequence[Mapping[str, float]]) -> list[str]:
    """Return the learners that are nearest to some model: all first ones, then all second ones, up to a number."""
    rankings = [sorted(of, key=of.__getitem__) for of in distances]
    chosen: dict[str, None] = {}
    for place in range(max(map(len, rankings), default=0)):
        for ranking in rankings:
            if place < len(ranking) and len(chosen) < _COLUMNS:
                chosen.setdefault(ranking[place])
    return list(chosen)


def _shown(distance: float | None) -> float | None:
    return None if distance is None else min(max(distance, _NEAREST), _FURTHEST)
