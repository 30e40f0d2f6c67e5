"""Runs with the same meaning have one id, all others have different ids."""

import copy
import importlib
from fractions import Fraction

import numpy as np
import pytest

from mesascope.records import RecordError, canonical_json, code_digest
from mesascope.specs import SpecError
from mesascope.studies import CertifySpec, FlowSpec, IdentifySpec, LossSpec, TrainSpec, parse_spec
from mesascope.studies.sweeps import _run_id
from mesascope.studies.sweeps._modules import importable
from mesascope.studies.sweeps._run_id import canonical, planned_run

FLOW = {
    "law": {"kind": "gaussian", "scale": 1.0},
    "dim": 2,
    "horizon": 5,
    "init": {"kind": "diagonal", "a": 0.5, "b": 2},
}
TRAIN = {
    "process": {"kind": "linear-regression", "dim": 2},
    "examples": 3,
    "model": {"kind": "prompt-linear-transformer", "layers": 1},
    "optimizer": {"method": "adam", "learning_rate": 1e-2},
}
SPECS = [
    (FlowSpec, FLOW),
    (
        FlowSpec,
        {**FLOW, "weights": {"3": 0.5, "2": "1/3"}, "rho": 1, "until": 3.0, "engine": "exact-moments"},
    ),
    (
        LossSpec,
        {**{k: FLOW[k] for k in ("law", "dim", "horizon")}, "w_kq": [[1.0] * 4] * 4, "w_pv": [[0] * 4] * 2},
    ),
    (CertifySpec, {**FLOW, "law": {"kind": "moments", "moments": [1, 0, "1/3", 0, "1/2", 0, 3]}}),
    (TrainSpec, TRAIN),
    (IdentifySpec, {**TRAIN, "optimizer": None} | {"tasks": 10}),
]
SPECS[-1][1].pop("optimizer")


def id_of(data, kind=FlowSpec):
    return planned_run("flow", parse_spec(data, kind)).id


def flow(**changes):
    return {**copy.deepcopy(FLOW), **changes}


@pytest.mark.parametrize(("kind", "data"), SPECS)
def test_a_plan_is_read_back_unchanged(kind, data):
    spec = parse_spec(data, kind)
    there = canonical(spec)
    assert canonical_json(canonical(parse_spec(there, kind))) == canonical_json(there)
    assert planned_run("x", parse_spec(there, kind)) == planned_run("x", spec)


@pytest.mark.parametrize(
    "same",
    [
        dict(reversed(FLOW.items())),
        flow(law="gaussian"),
        flow(law={"kind": "gaussian", "scale": 1}),
        flow(law={"kind": "gaussian", "scale": "1"}),
        flow(law={"kind": "gaussian", "scale": Fraction(2, 2)}),
        flow(init={"b": 2.0, "kind": "diagonal", "a": 0.50}),
        flow(method="flow", rho="t-1", mask=None, process="diagonal-unitary"),
    ],
)
def test_equal_meaning_gives_an_equal_id(same):
    assert id_of(same) == id_of(FLOW)


def test_other_numbers_are_other_runs():
    others = [
        FLOW,
        flow(dim=3),
        flow(init={"kind": "diagonal", "a": 0.5, "b": 2.0000000000000004}),
        # the float nearest to 1/10 is not 1/10, which matters in a proof
        flow(init={"kind": "diagonal", "a": 0.1, "b": 2}),
        flow(init={"kind": "diagonal", "a": "0.1", "b": 2}),
        flow(mask="off-diagonal"),
    ]
    ids = {id_of(one) for one in others}
    assert len(ids) == len(others)
    assert planned_run("descent", parse_spec(FLOW, FlowSpec)).id not in ids


def test_equal_exact_numbers_give_an_equal_id():
    one, other = (flow(init={"kind": "diagonal", "a": a, "b": 2}) for a in ("1/2", "0.50"))
    assert id_of(one) == id_of(other)


def test_the_content_of_files_counts(tmp_path):
    file = tmp_path / "x.npy"
    data = flow(law={"kind": "empirical", "file": str(file)})
    with pytest.raises(SpecError, match=r"cannot read .*x\.npy"):
        id_of(data)
    np.save(file, [1.0, -1.0])
    before = id_of(data)
    np.save(file, [1.0, -1.0, 2.0])
    assert id_of(data) != before
    np.save(file, [1.0, -1.0])
    assert id_of(data) == before


def test_files_count_by_content_and_not_by_path(tmp_path):
    one, other = tmp_path / "x.npy", tmp_path / "elsewhere" / "y.npy"
    other.parent.mkdir()
    parts = [
        {"probability": p, "law": {"kind": "empirical", "file": str(file)}}
        for p, file in (("1/3", one), ("2/3", other))
    ]
    mixed = flow(law={"kind": "mixture", "parts": parts})
    np.save(one, [1.0, -1.0])
    np.save(other, [2.0, -2.0])
    before = id_of(mixed)
    np.save(one, [2.0, -2.0])
    np.save(other, [1.0, -1.0])
    assert id_of(mixed) != before  # they have swapped their contents
    alone = id_of(flow(law={"kind": "empirical", "file": str(one)}))
    np.save(other, [2.0, -2.0])
    assert id_of(flow(law={"kind": "empirical", "file": str(other)})) == alone


def test_the_source_of_a_function_counts(tmp_path):
    module = tmp_path / "module_with_an_id.py"
    module.write_text("def f(x): return x[:, -1]\n")
    data = {**FLOW, "model": {"kind": "function", "name": "module_with_an_id:f"}}
    del data["init"]
    with pytest.raises(RecordError, match="module_with_an_id"):
        id_of(data, IdentifySpec)
    with importable([str(tmp_path)]):
        before = id_of(data, IdentifySpec)
        module.write_text("def f(x): return 0 * x[:, -1]\n")
        assert id_of(data, IdentifySpec) != before
        (tmp_path / "another_module.py").write_text(module.read_text())
        data["model"]["name"] = "another_module:f"
        assert id_of(data, IdentifySpec) != before


def test_code_that_computes_counts_and_other_code_does_not(tmp_path, monkeypatch):
    for name in (
        "core/a.py",
        "cli/b.py",
        "specs/e.py",
        "studies/c.py",
        "studies/sweeps/_d.py",
        "studies/sweeps/_compute.py",
        "studies/sweeps/_isolation.py",
        "studies/sweeps/_worker.py",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x = 1\n")

    def code():
        return code_digest(tmp_path, _run_id.computing_files(tmp_path))

    before = code()
    for name in ("cli/b.py", "studies/sweeps/_d.py"):
        (tmp_path / name).write_text("x = 2\n")
        assert code() == before
    for name in (
        "core/a.py",
        "specs/e.py",
        "studies/c.py",
        *(f"studies/sweeps/{one}" for one in _run_id._OF_SWEEPS),
    ):
        now = code()
        (tmp_path / name).write_text("x = 2\n")
        assert code() != now
    now = code()
    monkeypatch.setattr(
        "mesascope.records._identity.package_version", lambda name: "9" if name == "diffrax" else None
    )
    assert code() != now


LAW = """
from mesascope.processes import IdenticalLaw
from mesascope.specs import kind
from laws_of_others.numbers import SCALE

@kind("of-another-package")
class Law(IdenticalLaw):
    def line_moment(self, order):
        return SCALE**order if order % 2 == 0 else 0

    def sample(self, key, dim, shape=()):
        raise NotImplementedError
"""


def test_the_sources_of_an_installed_package_count(tmp_path, monkeypatch):
    package = tmp_path / "laws_of_others"
    package.mkdir()
    (package / "__init__.py").write_text("from . import laws")
    (package / "laws.py").write_text(LAW)
    (package / "numbers.py").write_text("SCALE = 1")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("laws_of_others")
    data = flow(law="of-another-package")
    before = id_of(data)
    assert id_of(data) == before
    (package / "numbers.py").write_text("SCALE = 12")
    assert id_of(data) != before


LEARNER = """
from mesascope.learners import Context, Learner, Scalar, learner

@learner("constant-answer", Scalar("value", 0.1, 10.0), example={"value": 0.5})
class ConstantAnswer(Learner):
    reads = Context
    value: float

    def respond(self, features):
        raise NotImplementedError
"""


def test_the_sources_of_learners_of_other_packages_count(tmp_path, monkeypatch):
    identification = {name: value for name, value in TRAIN.items() if name != "optimizer"}
    alone, every = {**identification, "learners": ["zero"]}, identification
    before = [id_of(one, IdentifySpec) for one in (alone, every)]
    (tmp_path / "learners_of_others.py").write_text(LEARNER)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("learners_of_others")
    with_it = [id_of(one, IdentifySpec) for one in (alone, every)]
    assert with_it[0] == before[0] and with_it[1] != before[1]
    (tmp_path / "learners_of_others.py").write_text(LEARNER + "# edited")
    assert id_of(every, IdentifySpec) not in (before[1], with_it[1])
