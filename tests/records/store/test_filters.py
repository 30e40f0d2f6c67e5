"""Filters find what Python would find, on SQLite and on PostgreSQL."""

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mesascope.records import RecordError, RunFolders, open_store

PLACES = st.sampled_from(["a", "b.c", "b.d", "list.1", "digits.3", "absent"])
SCALARS = st.one_of(
    st.integers(-3, 3), st.sampled_from([0.1, 0.5, 1e22, -0.0, "x", "y", "0.1", "é", True, False, None])
)


@pytest.fixture(scope="module")
def searched(request, tmp_path_factory):
    """Two stores of the same runs, on SQLite and, where there is one, on PostgreSQL; and their specifications."""
    made = request.getfixturevalue("made")
    folders = RunFolders.create(tmp_path_factory.mktemp("searched") / "store")
    values = [0, 1, 3, -1, 0.1, 0.5, 0.7, 1e22, "x", "z", "0.1", "é", True, False, None, [1], {"e": 1}]
    specs = {}
    for number, value in enumerate(values):
        spec = {
            "a": value,
            "b": {"c": value, "d": values[-number]},
            "list": [9, value],
            "digits": {"3": value},
        }
        plan = made.planned(number, **spec)
        folders.plan(plan)
        folders.finish(made.ended(plan, outcome=spec))
        specs[plan.id] = spec
    server = request.getfixturevalue("server")
    server.psql("CREATE DATABASE searched")
    with open_store(folders.root) as one, open_store(folders.root, server.get_uri("searched")) as two:
        yield (one, two), specs


def _at(spec, path):
    for part in path.split("."):
        if isinstance(spec, list):
            spec = spec[int(part)]
        elif isinstance(spec, dict) and part in spec:
            spec = spec[part]
        else:
            return ...
    return spec


def _kind(value):
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value)


def _holds(value, sign, other):
    same = value is not ... and _kind(value) == _kind(other)
    equal = same and value == other
    if sign in ("=", "!="):
        return equal == (sign == "=")
    if not same or value is None or isinstance(value, bool):
        return equal and sign in ("<=", ">=")
    less = value < other if _kind(value) == "number" else value.encode() < other.encode()
    return {"<": less, "<=": less or equal, ">": not less and not equal, ">=": not less}[sign]


def _written(value):
    import json

    return json.dumps(value) if not isinstance(value, str) or value == "0.1" else value


@pytest.mark.slow
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    head=st.sampled_from(["spec", "outcome"]),
    path=PLACES,
    sign=st.sampled_from(["=", "!=", "<", "<=", ">", ">="]),
    value=SCALARS,
)
def test_filters_find_what_python_finds(searched, head, path, sign, value):
    stores, specs = searched
    expected = {run for run, spec in specs.items() if _holds(_at(spec, path), sign, value)}
    for store in stores:
        text = f"{head}.{path}{sign}{_written(value)}"
        assert {row.id for row in store.rows([text])} == expected, (text, store)
        assert store.count([text]) == len(expected)


@pytest.mark.slow
def test_several_filters_hold_together(store, made):
    runs = [made.compute(store.folders, number) for number in range(6)]
    store.refresh()
    found = store.rows(
        ["spec.init.a>=0.2", "outcome.loss<2.5", "kind=flow", "seconds<1", f"id={runs[3][:4]}"]
    )
    assert [row.id for row in found] == [runs[3]]
    assert store.rows(["started>2026-01-02"]) == [] and len(store.rows(["ended<2026-01-01T00:02"])) == 2
    assert store.find(runs[2][:10]).id == runs[2]
    first = Counter(made.planned(number).id[0] for number in range(17))  # 17 runs, 16 digits
    for number in range(17):
        store.folders.plan(made.planned(number))
    store.refresh()
    with pytest.raises(RecordError, match="several runs begin with"):
        store.find(max(first, key=first.get))
    with pytest.raises(RecordError, match="no run begins with"):
        store.find("0" * 32)


def test_unknown_fields_are_refused_as_misspelt(store, made):
    store.refuse_unknown(["spec.init.a=1", "outcome.loss<1"])  # an empty store knows no fields
    store.folders.plan(made.planned(1, nothing=None, list=[1, {"x": 2}]))
    store.refresh()
    known = ["spec.init.a!=7", "spec.nothing=null", "spec.list.1.x=3", "status=failed", "kind=flow"]
    store.refuse_unknown([*known, "outcome.loss<1", "outcome.z<1"])  # nobody has an outcome yet
    store.folders.finish(
        made.ended(store.folders.planned(made.planned(1).id), outcome={"w": [[1.0]], "c": 2})
    )
    store.refresh()
    store.refuse_unknown([*known, "outcome.c<1"])
    for text, message in (
        ("spec.init.z!=3", "'spec.init.z!=3': no run has a field spec.init.z; `mesascope runs show ID`"),
        ("spec.list.2=1", "no run has a field spec.list.2;"),
        (
            "outcome.w.0.0=1",
            "no run has a field outcome.w.0.0 that is searched (long and nested lists are not)",
        ),
        ("study=one", "no study 'one' in this store; it has: none"),
        ("state=done", "did you mean 'status'?"),
    ):
        with pytest.raises(RecordError) as caught:
            store.refuse_unknown(["status=done", text])
        assert message in str(caught.value) and "\n" not in str(caught.value)
    store.folders.plan(made.planned(2).model_copy(update={"kind": "train"}))
    store.refresh()
    store.refuse_unknown(["outcome.only.trainings.have<1"])  # none of them is done yet
    with pytest.raises(RecordError, match="no run has a field spec"):
        store.refuse_unknown(["spec.init.z!=3"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("done", "write NAME=VALUE"),
        ("sate=done", "filter by one of status, study"),
        ("status=finished", "a status is one of planned, running, done, failed"),
        ("status<done", "only = and !="),
        ("id=xyz", "hexadecimal"),
        ("seconds=long", "compared with a number"),
        ("spec.=1", "filter by one of"),
        ("spec.a..b=1", "filter by one of"),
        ('spec."a"=1', "filter by one of"),
        (f"spec.{'.'.join('1' * 30)}=1", "at most 8 parts"),
        (f"spec.a={'9' * 400}", ""),
        (f"seconds<-{'9' * 400}", ""),
        ("spec.a=[1]", "compare with a number, a text"),
        ("spec.a';drop table runs;--=1 or 1=1", ""),
    ],
)
def test_bad_filters_are_reported_in_one_line(searched, text, message):
    for store in searched[0]:
        before = store.count()
        try:
            assert store.rows([text]) == [] and not message
        except RecordError as error:
            assert message in str(error) and "\n" not in str(error)
        assert store.count() == before > 0
