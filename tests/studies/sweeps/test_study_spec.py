"""The points of a study, and its errors."""

import datetime
import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesascope.studies import FlowSpec, SpecError, StudySpec, parse_spec, read_spec
from mesascope.studies.sweeps._prepare import check
from mesascope.studies.sweeps._values import LogRangeSpec, RangeSpec


def points_of(study, **more):
    return list(parse_spec(study, StudySpec, **more).points())


def test_without_axes_there_is_one_point(study_with):
    (point,) = points_of(study_with())
    assert point.place == ()
    assert point.spec == parse_spec(study_with()["base"], FlowSpec)


def test_points_are_the_product_and_the_last_axis_changes_fastest(study_with):
    axes = [
        {"path": "init.a", "values": [0.1, 0.2]},
        {"path": "dim", "range": {"start": 2, "stop": 4, "step": 1}},
    ]
    points = points_of(study_with(axes=axes))
    assert [p.place for p in points] == list(itertools.product(range(2), range(3)))
    assert [(p.spec.init.a, p.spec.dim) for p in points] == list(itertools.product([0.1, 0.2], [2, 3, 4]))


def test_zipped_fields_change_together(study_with):
    pair = [{"path": "init.a", "values": [0.1, 0.2]}, {"path": "init.b", "values": [3, 4]}]
    axes = [{"zip": pair, "name": "start"}, {"path": "horizon", "values": [5, 6]}]
    study = parse_spec(study_with(axes=axes), StudySpec)
    assert [(p.spec.init.a, p.spec.init.b, p.spec.horizon) for p in study.points()] == [
        (0.1, 3, 5),
        (0.1, 3, 6),
        (0.2, 4, 5),
        (0.2, 4, 6),
    ]
    assert study.axes[0].dimension == "start"
    assert study.axes[0].coordinates == ("init.a", "init.b")


def test_values_of_a_zip_may_repeat_if_its_places_differ(study_with):
    pair = [{"path": "init.a", "values": [0.1, 0.1]}, {"path": "init.b", "values": [3, 4]}]
    assert [(p.spec.init.a, p.spec.init.b) for p in points_of(study_with(axes=[{"zip": pair}]))] == [
        (0.1, 3),
        (0.1, 4),
    ]


def test_seeds_count_from_zero_or_are_listed(study_with):
    base = {**study_with()["base"], "init": {"kind": "gaussian", "scale": 0.1}}
    for seeds, expected in ((3, [0, 1, 2]), ([7, 5], [7, 5])):
        points = points_of(study_with(base=base, axes=[{"path": "init.seed", "seeds": seeds}]))
        assert [p.spec.init.seed for p in points] == expected


def test_values_may_be_tables_with_labels(study_with):
    laws = [{"kind": "sparse"}, {"label": "heavy", "value": {"kind": "studentt", "df": 9}}]
    study = parse_spec(study_with(axes=[{"path": "law", "values": laws}]), StudySpec)
    assert [p.spec.law.kind for p in study.points()] == ["sparse", "studentt"]
    assert [choice.labels for choice in study.choices[0]] == [("sparse",), ("heavy",)]


def test_the_path_of_an_axis_may_lead_into_a_list(study_with):
    parts = [{"probability": "1/2", "law": {"kind": k}} for k in ("gaussian", "sparse")]
    base = {**study_with()["base"], "law": {"kind": "mixture", "parts": parts}}
    points = points_of(study_with(base=base, axes=[{"path": "law.parts.1.law.scale", "values": [2, 3]}]))
    assert [p.spec.law.parts[1][1].scale for p in points] == [2, 3]
    assert base["law"]["parts"][1]["law"] == {"kind": "sparse"}


def test_relative_files_start_at_the_specification(study_with, tmp_path):
    np.save(tmp_path / "x.npy", [1.0, -1.0])
    file = tmp_path / "study.toml"
    file.write_text(
        'name = "s"\nkind = "flow"\n[base]\ndim = 2\nhorizon = 5\ninit = {kind = "diagonal", a = 1, b = 1}\n'
        '[[axes]]\npath = "law"\nvalues = [{kind = "empirical", file = "x.npy"}]\n'
    )
    (point,) = read_spec(file, StudySpec).points()
    assert point.spec.law.file == tmp_path / "x.npy"


# Numbers along an axis


def test_steps_are_decimals_as_written():
    assert RangeSpec(start=0.1, stop=0.5, step=0.1).numbers() == [0.1, 0.2, 0.3, 0.4, 0.5]
    assert RangeSpec(start=1, stop=0, step=-0.25).numbers() == [1, 0.75, 0.5, 0.25, 0]
    assert RangeSpec(start=1, stop=6, step=2).numbers() == [1, 3, 5]
    assert RangeSpec(start=0, stop=1, count=3).numbers() == [0.0, 0.5, 1.0]
    assert RangeSpec(start="1/3", stop=1, count=3).numbers() == ["1/3", "2/3", "1"]
    assert all(type(x) is int for x in RangeSpec(start=10, stop=40, count=4).numbers())


def test_ratios_are_rounded_correctly():
    assert LogRangeSpec(start=0.001, stop=100, count=6).numbers() == [0.001, 0.01, 0.1, 1, 10, 100]
    assert LogRangeSpec(start=32, stop=1024, count=6).numbers() == [32, 64, 128, 256, 512, 1024]
    assert all(type(x) is int for x in LogRangeSpec(start=32, stop=1024, count=6).numbers())
    assert LogRangeSpec(start=5, stop=7, count=1).numbers() == [5]
    # to rounding: numpy's powers are not correctly rounded themselves
    ours = LogRangeSpec(start=0.3, stop=17.0, count=9).numbers()
    np.testing.assert_allclose(ours, np.geomspace(0.3, 17, 9), rtol=4 * np.finfo(float).eps)


@given(st.fractions(-5, 5), st.fractions(-5, 5), st.integers(2, 20))
def test_exact_ranges_are_exact(start, stop, count):
    numbers = [Fraction(x) for x in RangeSpec(start=str(start), stop=str(stop), count=count).numbers()]
    assert (numbers[0], numbers[-1]) == (start, stop)
    assert len({b - a for a, b in itertools.pairwise(numbers)}) == 1


# Subsets


def test_a_random_subset_is_drawn_without_repetition_and_stays_the_same(study_with):
    axes = [{"path": p, "range": {"start": 0.1, "stop": 1, "count": 2000}} for p in ("init.a", "init.b")]
    # four million points, which are not enumerated
    study = parse_spec(study_with(axes=axes, subset={"kind": "random", "count": 6, "seed": 1}), StudySpec)
    places = list(study.places())
    assert len(set(places)) == 6 and places == sorted(places)
    assert places[0] == (140, 1933)  # forever: ids of runs that were computed depend on it
    again = parse_spec(study_with(axes=axes, subset={"kind": "random", "count": 6, "seed": 2}), StudySpec)
    assert set(again.places()).isdisjoint(places)


@pytest.mark.parametrize("count", [1, 7, 8, 15, 16, 40])
def test_a_random_subset_has_at_most_all_points(study_with, count):
    axes = [{"path": p, "values": [0.1, 0.2, 0.3, 0.4]} for p in ("init.a", "init.b")]
    study = parse_spec(study_with(axes=axes, subset={"kind": "random", "count": count}), StudySpec)
    assert len(set(study.places())) == study.size == min(count, 16)
    # a study that is extended keeps what was computed
    more = parse_spec(study_with(axes=axes, subset={"kind": "random", "count": count + 1}), StudySpec)
    assert set(study.places()) <= set(more.places())


@pytest.mark.slow
def test_a_million_points_are_a_study_and_more_are_not(study_with):
    def grid(rows, columns):
        ranges = {"init.a": rows, "law.scale": columns}
        axes = [
            {"path": path, "range": {"start": 1, "stop": 2, "count": count}} for path, count in ranges.items()
        ]
        return parse_spec(study_with(axes=axes), StudySpec)

    study = grid(1000, 1000)
    assert study.size == len(set(study.places())) == 10**6
    first = next(study.points())  # the others are not made
    assert (first.place, first.spec.init.a, first.spec.law.scale) == ((0, 0), 1, 1)
    with pytest.raises(
        SpecError, match=r"^axes: 1000 × 1001 = 1001000 points are more than 1000000; take fewer"
    ):
        grid(1000, 1001)


def test_a_coarser_grid_keeps_every_kth_value(study_with):
    axes = [{"path": "init.a", "values": [1, 2, 3, 4, 5]}, {"path": "init.b", "values": [1, 2]}]
    study = parse_spec(study_with(axes=axes, subset={"kind": "grid", "every": 2}), StudySpec)
    assert [(p.spec.init.a, p.spec.init.b) for p in study.points()] == [(1, 1), (3, 1), (5, 1)]


# Errors


def axis(**fields):
    return {"axes": [{"path": "init.a", "values": [1]}, fields]}


ZIP = [{"path": "init.a", "values": [1, 2]}, {"path": "init.b", "values": [1]}]
TWICE = [{"path": "init.a", "values": [1, 1, 1]}, {"path": "init.b", "values": [3, 4, 3]}]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"colour": 1}, "unknown field 'colour'"),
        ({"name": "A b"}, "name: must be lower-case letters"),
        ({"name": "../x"}, "name: must be lower-case letters"),
        ({"kind": "flows"}, "kind: unknown value 'flows'; did you mean 'flow'?"),
        ({"base": 3}, "base: must be a table"),
        ({"base": {"dim": 2}}, "base.law: missing"),
        ({"axes": [{"path": "init.a"}]}, "axes[0]: needs exactly one of values, range"),
        (axis(path="init.b", values=[1], seeds=2), "axes[1]: needs exactly one of"),
        (axis(path="init.b", values=[]), "axes[1].values: must be a list"),
        (axis(path="init.b", values=[1, "x"]), "axes[1].values[1]: 'x' is not a rational number"),
        (axis(path="init.b", values=[1, 2, 1]), "axes[1].values[2]: 1 is given twice"),
        (axis(path="init.b", values=[datetime.date(2026, 1, 1)]), "axes[1].values[0]: a date has no place"),
        (
            axis(path="init.b", values=[{"label": [1], "value": 1}]),
            "axes[1].values[0].label: must be a string or a number",
        ),
        (axis(path="init.c", values=[1]), "axes[1].path: unknown field 'c'"),
        (axis(path="dim.c", values=[1]), "axes[1].path: dim is 2 in base, not a table with a field c"),
        (axis(path="init.a", values=[1]), "axes[1]: init.a changes along axis 0 already"),
        (axis(path="init", values=[{"kind": "diagonal"}]), "axes[1]: init changes along axis 0 already"),
        (axis(path="in it", values=[1]), "axes[1].path: must name a field"),
        (
            axis(path="horizon", values=[5, 2]),
            "axes[1].values[1]: must be at least 3, got 2 (at init.a = 1, h",
        ),
        (axis(path="law", values=[{"kind": "studentt", "df": -1}]), "axes[1].values[0].df: must be greater"),
        (axis(path="horizon", range={"start": 1, "stop": 2}), "axes[1].range: needs either step or count"),
        (
            axis(path="horizon", range={"start": 5, "stop": 1, "step": 1}),
            "axes[1].range.step: must lead from",
        ),
        (
            axis(path="horizon", log_range={"start": 0, "stop": 1, "count": 2}),
            "axes[1].log_range.start: must be",
        ),
        (axis(path="horizon", seeds=0), "axes[1].seeds: must be the number of seeds, 1 …"),
        (axis(path="horizon", seeds=[-1]), "axes[1].seeds[0]: must be an integer 0"),
        (
            axis(path="horizon", values=[5], name="init.a"),
            "axes[1]: has the name init.a, which axis 0 has already",
        ),
        ({"axes": [{"zip": ZIP}]}, "axes[0].zip[1]: has 1 values, but axis 0 of the zip has 2"),
        ({"axes": [{"zip": TWICE}]}, "axes[0].zip: places 0 and 2 are both 1, 3; keep one"),
        ({"axes": [{"zip": ZIP[:1]}]}, "axes[0].zip: must have at least 2 entries"),
        ({"subset": {"kind": "randm"}}, "subset.kind: unknown kind 'randm'; did you mean 'random'?"),
        ({"subset": {"kind": "random", "count": 0}}, "subset.count: must be at least 1"),
    ],
)
def test_errors_say_where(study_with, changes, message):
    with pytest.raises(SpecError) as error:
        points_of(study_with(**changes))
    assert str(error.value).startswith(message)
    assert len(str(error.value).splitlines()) == 1


def test_the_specification_of_a_run_is_not_a_study(study_with):
    for run in (study_with()["base"], {"model": {}, "kind": "train"}):
        with pytest.raises(
            SpecError, match=r"^this specifies a run \(it has a (law|model)\), not a study; put"
        ):
            points_of(run)
    with pytest.raises(SpecError, match=r"^base: missing"):
        points_of({"name": "s", "kind": "flow"})


def test_seeds_of_a_training_are_an_axis(study_with, prompts_with):
    base = prompts_with(seeds=[1, 2])
    with pytest.raises(SpecError, match=r"^base\.seeds: would make several runs of one; .*path = \"seed\""):
        points_of(study_with(kind="train", base=base))


def test_files_that_cannot_be_read_are_named_with_their_place(study_with):
    laws = ["gaussian", {"kind": "empirical", "file": "/nowhere/x.npy"}]
    study = parse_spec(study_with(axes=[{"path": "law", "values": laws}]), StudySpec)
    with pytest.raises(
        SpecError, match=r"^axes\[0\]\.values\[1\]\.file: cannot read /nowhere/x\.npy: .*\(at law = "
    ):
        check(study)
    asked = {
        "process": {"kind": "orthogonal-ar", "dim": 2, "law": "gaussian"},
        "horizon": 4,
        "model": {"kind": "function", "name": "no_such_module:f"},
    }
    study = parse_spec(study_with(kind="identify", base=asked), StudySpec)
    with pytest.raises(SpecError, match=r"^base\.model\.name: no_such_module:f: there is no file"):
        check(study)


def pools(**more):
    pool = {"kind": "task-pool", "tasks": 4, "process": {"kind": "linear-regression", "dim": 2}}
    base = {
        "process": pool,
        "examples": 3,
        "model": {"kind": "prompt-linear-transformer", "layers": 1},
        **more,
    }
    return {
        "name": "pools",
        "kind": "train",
        "base": base,
        "axes": [{"path": "process.tasks", "values": [1, 16]}],
    }


def test_the_number_of_tasks_of_a_pool_is_an_axis():
    assert [point.spec.process.size for point in points_of(pools())] == [1, 16]
