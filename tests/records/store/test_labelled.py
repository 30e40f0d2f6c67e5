"""A study becomes one labelled data set."""

import numpy as np
import pytest

from mesascope.records import RecordError, StudyAxis, StudyPoint, StudyRecord


def _study(store, made, outcomes, axes=None, extra=()):
    points = []
    for number, outcome in enumerate(outcomes):
        plan = made.planned(number)
        store.folders.plan(plan)
        if outcome is not None:
            error = None if outcome else "failed"
            store.folders.finish(made.ended(plan, outcome=outcome, error=error))
        points.append(StudyPoint(run=plan.id, place=(number // 3, number % 3)))
    axes = axes or (
        StudyAxis(name="init.a", labels=(0.1, 0.2, 0.3)),
        StudyAxis(name="law", labels=("g", "s", "c")),
    )
    record = StudyRecord(name="grid", kind="flow", spec={"x": 1}, axes=axes, points=(*points, *extra))
    store.write_study(record)
    store.enter([point.run for point in points])
    return store.to_xarray("grid")


def test_a_study_becomes_one_labelled_data_set(store, made):
    shared = {"w": [[1.0, 2.0], [3.0, "nan"]], "text": "yes", "c": {"re": 1.0, "im": 2.0}, "status": 5.0}
    outcomes = [{"loss": 0.1 * k, "n": k, "ragged": [1.0] * k, "flag": True, **shared} for k in range(5)]
    outcomes[1]["mixed"], outcomes[2]["mixed"] = "text", 1.0
    shared_run = StudyPoint(run=made.planned(0).id, place=(2, 2))
    data = _study(store, made, [*outcomes, {}, None], extra=(shared_run,))
    assert dict(data.sizes) == {"init.a": 3, "law": 3, "w_row": 2, "w_column": 2}
    assert data["init.a"].values.tolist() == [0.1, 0.2, 0.3] and data["law"].values.tolist() == [
        "g",
        "s",
        "c",
    ]
    assert data["status"].values.ravel().tolist() == ["done"] * 5 + ["failed", "planned", "", "done"]
    assert data["run"].values[0, 1] == made.planned(1).id and data["run"].values[2, 1] == ""
    loss = data["loss"].values.ravel()
    assert loss[:5].tolist() == [0.1 * k for k in range(5)] and np.isnan(loss[5:8]).all() and loss[8] == 0
    assert data["n"].values.ravel()[:5].tolist() == [0, 1, 2, 3, 4] and data["flag"].dtype == float
    assert data["w"].sel({"init.a": 0.2, "law": "s"}).values[1, 0] == 3.0 and np.isnan(
        data["w"].values[1, 1, 1, 1]
    )
    assert (
        data["text"].dtype == object
        and data["text"].values[0, 0] == "yes"
        and np.isnan(data["text"].values[2, 1])
    )
    assert data["c"].values[0, 0] == 1 + 2j and data["outcome.status"].values[0, 0] == 5
    assert data.attrs["left_out"] == ["mixed", "ragged"]
    assert (
        data.attrs["study"] == "grid"
        and data.attrs["code"] == ["code-1"]
        and data.attrs["spec"] == '{"x": 1}'
    )


def test_a_study_without_axes_is_one_number_for_each_name(store, made):
    plan = made.planned(0)
    store.folders.plan(plan)
    store.folders.finish(made.ended(plan, outcome={"loss": 0.5, "product": [1.0, 2.0]}))
    point = StudyPoint(run=plan.id, place=())
    store.write_study(StudyRecord(name="one", kind="flow", spec={}, axes=(), points=(point,)))
    store.enter([plan.id])
    data = store.to_xarray("one")
    assert data["loss"].dims == () and float(data["loss"]) == 0.5
    assert data["product"].values.tolist() == [1.0, 2.0] and data["status"].item() == "done"


def test_complete_studies_keep_types_and_zipped_axes_share_a_dimension(store, made):
    zipped = StudyAxis(name="pair", coordinates={"p": (1, 2, 3), "q": ("x", "y", "z")})
    axes = (StudyAxis(name="n", labels=(1, 2)), zipped)
    data = _study(store, made, [{"n": k, "ok": k > 2, "v": [k, k]} for k in range(6)], axes)
    assert (
        data["outcome.n"].dtype == np.int64
        and data["ok"].dtype == bool
        and data["v"].dims == ("n", "pair", "v_index")
    )
    assert data["p"].dims == data["q"].dims == ("pair",) and data["q"].values.tolist() == ["x", "y", "z"]
    assert data.isel(n=1, pair=2)["outcome.n"] == 5
    assert "left_out" not in data.attrs
    assert store.studies() == {"grid": {"done": 6}}
    with pytest.raises(RecordError, match="no study 'gird' in this store; it has: grid"):
        store.to_xarray("gird")


@pytest.mark.parametrize("name", ["w_row", "w_column", "v_index", "w", "run"])
def test_equal_names_of_axes_and_outcomes_are_distinguished(store, made, name):
    outcome = {"w": [[1.0, 2.0, 3.0]], "v": [1.0, 2.0], "w_column": 7.0}
    axes = (StudyAxis(name="first", labels=(1,)), StudyAxis(name=name, labels=(1, 2)))
    data = _study(store, made, [outcome] * 2, axes)
    assert data.sizes[name] == 2 and data[name].values.tolist() == [1, 2]
    found = data.data_vars.values()
    assert {variable.dims[:2] for variable in found} == {("first", name)}
    shapes = sorted(variable.shape for variable in found if variable.dtype == float)
    assert shapes == [(1, 2), (1, 2, 1, 3), (1, 2, 2)]
