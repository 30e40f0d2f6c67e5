"""Distances of learners from models as coloured cells."""

from mesascope.report import distance_map


def test_a_row_for_each_model_from_above_and_a_column_for_each_learner_by_their_nearest_models():
    models = {"a": {"ridge": 0.5, "zero": 2.0, "newton": 1e-12}, "b": {"zero": 0.1}}
    (cells,) = distance_map(models, "Title", "").panels[0].traces
    assert cells.ynames == ("b", "a") and cells.xnames == ("newton", "zero", "ridge")
    # Distances beyond the colours have the colours at the ends; one that was not compared has no cell.
    assert cells.z == ((None, 0.1, None), (1e-8, 1.0, 0.5))


def test_the_nearest_learners_of_every_model_are_shown_if_there_are_too_many():
    many = {f"l{n}": 0.1 + n / 100 for n in range(40)}
    (cells,) = distance_map({"a": many, "b": many | {"l39": 0.01}}, "Title", "").panels[0].traces
    assert len(cells.xnames) == 24 and {"l0", "l39"} <= {*cells.xnames} and "l38" not in cells.xnames
