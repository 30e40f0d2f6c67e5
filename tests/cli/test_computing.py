"""`mesascope loss` and `mesascope flow`."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

CASES = json.loads((Path(__file__).parents[1] / "data" / "population_loss.json").read_text())
ANSWERS = ("name", "loss", "grad_w_kq", "grad_w_pv")
FLOW = """
dim = 5
horizon = 100
[law]
kind = "gaussian"
scale = 1.0
[init]
kind = "diagonal"
a = 0.1
b = 0.1
"""


def question(case):
    return {name: value for name, value in case.items() if name not in ANSWERS}


def check(found, case):
    assert set(found) == {"loss", "standard_error", "grad_w_kq", "grad_w_pv"}
    assert found["loss"] == pytest.approx(case["loss"], rel=1e-10)
    for name in ("grad_w_kq", "grad_w_pv"):
        expected = np.array(case[name])
        np.testing.assert_allclose(found[name], expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max())


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_reference_values(run, spec, case):
    ended = run("loss", spec(question(case)), "--json")
    assert (ended.status, ended.err) == (0, "")
    check(ended.json, case)


@pytest.mark.slow
def test_the_command_itself(spec):
    # JAX_ENABLE_X64=0: the command switches 64-bit mode on itself
    case = CASES[2]
    done = subprocess.run(
        [sys.executable, "-m", "mesascope", "loss", "-", "--json"],
        input=json.dumps(question(case)),
        capture_output=True,
        text=True,
        check=False,
        env={"JAX_ENABLE_X64": "0", "JAX_PLATFORMS": "cpu"},
    )
    assert (done.returncode, done.stderr) == (0, "")
    check(json.loads(done.stdout), case)


@pytest.mark.slow
@pytest.mark.parametrize("home", [{"HOME": "/dev/null"}, {"XDG_CACHE_HOME": "/dev/null/cache"}])
def test_no_home_is_needed(spec, home):
    """HOME is no folder, or is not set and the cache is none: compiled programs are not kept, and nothing is said of it."""
    path = spec(question(CASES[2]))
    kept = {"HOME", "XDG_CACHE_HOME", "JAX_COMPILATION_CACHE_DIR"}
    environment = {name: value for name, value in os.environ.items() if name not in kept}
    done = subprocess.run(
        [sys.executable, "-m", "mesascope", "loss", path, "--json"],
        capture_output=True,
        text=True,
        check=False,
        env=environment | home,
    )
    assert (done.returncode, done.stderr) == (0, "")
    check(json.loads(done.stdout), CASES[2])


@pytest.mark.slow
def test_the_command_itself_refuses(tmp_path):
    for arguments in (["loss", str(tmp_path)], ["flow", "none.toml", "--json"]):
        done = subprocess.run(
            [sys.executable, "-m", "mesascope", *arguments], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)


def test_loss_for_people(run, spec):
    ended = run("loss", spec(question(CASES[0])))
    assert ended.status == 0
    assert ended.out.startswith("loss 1.44705 (sum over 3 context lengths)\ngradient in w_kq\n")
    assert max(map(len, ended.out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"law": {"kind": "gaussian", "scale": float("nan")}}, "law.scale: must be finite"),
        ({"law": {"kind": "studentt", "df": 5}}, "law: E x^6 does not exist for StudentT(df=5, scale=1)"),
        ({"engine": "enumeration", "horizon": 500}, "engine: Enumeration: dim 2 and horizon 500 need"),
        ({"horizn": 5}, "unknown field 'horizn'; did you mean 'horizon'?"),
    ],
)
def test_refused(run, spec, tmp_path, changes, message):
    path = spec({**question(CASES[0]), **changes})
    assert run("loss", path, "--json").refusal.startswith(f"mesascope loss: {path}: {message}")
    assert list(tmp_path.iterdir()) == [path]


def test_overflow_is_a_failure_that_still_prints(run, spec):
    ended = run("loss", spec({**question(CASES[0]), "w_pv": [[1e200, 0, 0, 0], [0, 1, 0, 0]]}), "--json")
    assert ended.status == 1
    assert isinstance(ended.json["loss"], str)  # "nan" or "inf": JSON has no such numbers
    assert len(ended.err.splitlines()) == 1


@pytest.mark.slow
def test_flow_of_the_paper(run, spec):
    ended = run("flow", spec(FLOW, "flow.toml"), "--json")
    assert (ended.status, ended.err) == (0, "")
    found = ended.json
    # Theorem 4.1 of zheng2024 at d = 5, T = 100, σ = 1
    assert found["limit_product"] == pytest.approx(0.19190508852558863, rel=1e-14)
    np.testing.assert_allclose(found["product"], [found["limit_product"]] * 5, rtol=1e-8)
    assert found["converged"] is True and found["result"] == "converged"
    assert np.shape(found["w_kq"]) == (10, 10) and np.shape(found["w_pv"]) == (5, 10)
    assert {"loss", "gradient_norm", "time", "steps", "message"} < set(found)


def test_flow_for_people(run, spec):
    ended = run("flow", spec(FLOW.replace("[law]", "until = 0.01\n[law]"), "flow.toml"))
    assert (ended.status, ended.err) == (0, "")
    assert ended.out.startswith("finished: ")
    assert max(map(len, ended.out.splitlines())) <= 80


SMALL_START = """
dim = 1
horizon = 10
solver = "rodas4"
[law]
kind = "gaussian"
scale = 1
[init]
kind = "diagonal"
a = 1e-4
b = 1e-4
"""


@pytest.mark.slow
def test_a_flow_with_its_plateaus(run, spec):
    found = run("flow", spec(SMALL_START, "flow.toml"), "--plateaus", "--json").json
    first, last = found["plateaus"]
    assert (first["order"], first["index"], last["order"], last["leaves"]) == (2, 1, 0, "inf")
    assert last["loss"] == pytest.approx(found["loss"], rel=1e-9)
    assert first["predicted"] == pytest.approx(first["leaves"], rel=0.1)  # a constant beside the logarithm
    shown = run("flow", spec(SMALL_START, "flow.toml"), "--plateaus").out.splitlines()
    assert shown[-3].split() == list(first)
    assert max(map(len, shown)) <= 80


def test_a_descent_has_no_plateaus(run, spec):
    path = spec(SMALL_START.replace('solver = "rodas4"', "method='descent'\nlr=0.1\nsteps=5"), "flow.toml")
    message = run("flow", path, "--plateaus").refusal
    assert message.endswith(
        "method: plateaus are those of a flow; use method = 'flow', or leave out --plateaus"
    )


@pytest.mark.slow
def test_a_failed_flow_still_prints(run, spec):
    ended = run(
        "flow", spec(FLOW.replace("[law]", "method='descent'\nlr=1e9\nsteps=50\n[law]"), "f.toml"), "--json"
    )
    assert (ended.status, ended.json["result"]) == (1, "diverged")
    assert ended.err.startswith("mesascope flow: diverged: ") and len(ended.err.splitlines()) == 1
