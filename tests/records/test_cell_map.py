import numpy as np
import pytest
from pydantic import ValidationError

from mesascope.records import CellMap, Figure, Panel

GOOD = {"x": [1, 2, 4], "y": [0.1, 1.0], "z": [[0, 1, 2], [2, 1, None]], "colorlabel": "c"}


def test_missing_entries_survive_json_and_arrays():
    values = np.array([[0.5, np.nan, 2.0], [1.0, 1.0, np.nan]])
    trace = CellMap(**GOOD | {"z": values})
    assert trace.z == ((0.5, None, 2.0), (1.0, 1.0, None)) and trace.known == [0.5, 2.0, 1.0, 1.0]
    panel = Panel(title="t", xlabel="x", ylabel="y", xscale="log", yscale="log", traces=(trace,))
    figure = Figure(title="f", panels=(panel,))
    assert Figure.model_validate_json(figure.model_dump_json()) == figure


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"z": [[0, 1], [1, 2]]}, "2 rows of 3 entries"),
        ({"z": [[0, 1, 2]]}, "2 rows of 3 entries"),
        ({"x": [1, 1, 2]}, "x must increase"),
        ({"y": [1.0, 0.1]}, "y must increase"),
        ({"xnames": ("a", "b")}, "2 xnames for 3 places"),
        ({"kinds": ("a", "b")}, "number the 2 kinds"),
        ({"scale": "log"}, "no logarithmic colour"),
        ({"z": [[0, 1, float("inf")], [0, 1, 2]]}, "finite"),
    ],
)
def test_maps_that_cannot_be_drawn_are_refused(change, words):
    with pytest.raises(ValidationError, match=words):
        CellMap(**GOOD | change)


def test_a_map_stands_alone_and_its_places_need_logarithms():
    trace, negative = CellMap(**GOOD), CellMap(**GOOD | {"x": [-1, 2, 4]})
    words = {"title": "t", "xlabel": "x", "ylabel": "y"}
    with pytest.raises(ValidationError, match="shares no panel"):
        Panel(**words, traces=(trace, trace))
    with pytest.raises(ValidationError, match="values ≤ 0 on the logarithmic x axis"):
        Panel(**words, xscale="log", traces=(negative,))
