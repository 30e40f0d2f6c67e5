"""`mesascope identify` of functions and modules of users."""

import json
import os
import re
import shlex
import subprocess
import sys
import warnings
from itertools import count

import pytest

from mesascope.studies._identify_function import NamedFunction

QUESTION = {
    "law": "gaussian",
    "dim": 2,
    "horizon": 6,
    "tasks": 100,
    "learners": ["zero", "gradient-descent", "ridge"],
}
STEP = """
import numpy as np

def step(contexts):
    x, y, query = contexts[:, :-1], contexts[:, 1:], contexts[:, -1]
    return 0.2 / x.shape[1] * np.einsum("bim,bip,bp->bm", y, x.conj(), query)
"""


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


_numbers = count()


@pytest.fixture
def module(tmp_path):
    """Write a module with a new name in the current folder; return the name."""

    def write(text):
        name = f"my_models_{next(_numbers)}"
        (tmp_path / f"{name}.py").write_text(text)
        return name

    return write


@pytest.mark.slow
def test_every_verdict_is_an_answer(run, spec, module):
    body = "    return np.sin(3 * contexts[:, -1]) + contexts[:, 0] ** 2\n"
    name = module(f"import numpy as np\ndef odd(contexts):\n{body}")
    command = ("identify", "--model", f"{name}:odd", "--process", spec(QUESTION))
    ended = run(*command, "--json")
    assert (ended.status, ended.json["verdict"], ended.json["candidates"]) == (0, "none", [])
    assert re.match(r"none: .* unexplained.*\n  the nearest", run(*command).out, re.S)


def test_a_function_in_place_of_a_model(run, spec, module):
    name = module(STEP)
    by_option = run("identify", "--model", f"{name}:step", "--process", spec(QUESTION), "--json").json
    question = {**QUESTION, "model": {"kind": "function", "name": f"{name}:step"}}
    by_file = run("identify", spec(question), "--json").json
    for found in (by_option, by_file):
        del found["provenance"]
    assert by_option == by_file
    assert by_option["candidates"] == ["gradient-descent"] and by_option["reading"] is None


def test_modules_beside_the_specification_are_found(run, spec, module, tmp_path, monkeypatch):
    name = module(STEP)
    path = spec({**QUESTION, "model": {"kind": "function", "name": f"{name}:step"}})
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    before = list(sys.path)
    assert run("identify", path, "--json").status == 0
    assert sys.path == before


@pytest.mark.slow
def test_models_and_modules_can_be_named(run, spec, module):
    named = module(
        "import mesascope as ms\nmodel = ms.LinearAttention.diagonal(2, 0.5, 0.4)\n"
        "import equinox as eqx\ncompiled = eqx.filter_jit(model)\n"
    )
    ours = run("identify", "--model", f"{named}:model", "--process", spec(QUESTION), "--json").json
    assert ours["reading"]["algorithm"] == "gradient-descent"
    compiled = run("identify", "--model", f"{named}:compiled", "--process", spec(QUESTION), "--json").json
    assert compiled["candidates"] == ours["candidates"] == ["gradient-descent"]


def test_a_model_that_answers_any_name_with_an_error_of_its_own_is_asked_for_predictions(run, spec, module):
    name = module(
        f"{STEP}\nclass Wrapped:\n    def __getattr__(self, name):\n        return {{}}[name]\n"
        "    def __call__(self, contexts):\n        return step(contexts)\nmodel = Wrapped()\n"
        "class Ends(Wrapped):\n    def __call__(self, contexts):\n        raise GeneratorExit\nends = Ends()\n"
    )
    found = run("identify", "--model", f"{name}:model", "--process", spec(QUESTION), "--json").json
    assert found["candidates"] == ["gradient-descent"]
    ended = run("identify", "--model", f"{name}:ends", "--process", spec(QUESTION))
    assert f"{name}:ends raised GeneratorExit" in ended.refusal


@pytest.mark.slow
def test_a_module_of_torch_can_be_named(run, spec, module):
    pytest.importorskip("torch")
    name = module(
        "import torch\nclass Step(torch.nn.Module):\n    def forward(self, contexts):\n"
        "        x, y, query = contexts[:, :-1], contexts[:, 1:], contexts[:, -1]\n"
        "        return 0.2 / x.shape[1] * torch.einsum('bim,bip,bp->bm', y, x.conj(), query)\nmodel = Step()\n"
    )
    found = run("identify", "--model", f"{name}:model", "--process", spec(QUESTION), "--json").json
    assert found["candidates"] == ["gradient-descent"]


NOISY = f"""
import os, subprocess, sys
print("imported")
{STEP}
def noisy(contexts):
    print("called")
    os.write(1, b"past Python\\n")
    subprocess.run(["echo", "of a child"])
    return step(contexts)
"""


@pytest.mark.slow
def test_the_output_of_functions_goes_to_standard_error(spec, module):
    # -P: Python itself does not look in the current directory
    name, path = module(NOISY), spec({**QUESTION, "learners": ["zero", "gradient-descent"]})
    done = subprocess.run(
        [
            sys.executable,
            *["-P", "-m", "mesascope", "identify", "--model"],
            f"{name}:noisy",
            "--process",
            path,
            "--json",
        ],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
    )
    assert done.returncode == 0
    assert json.loads(done.stdout)["candidates"] == ["gradient-descent"]
    assert {"imported", "called", "past Python", "of a child"} == set(done.stderr.split("\n")) - {""}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "return contexts[:, -1, 0]",
            "model: must answer contexts of shape (100, 2, 2) with predictions of shape (100, 2)",
        ),
        (
            "return contexts[:, -1] * np.nan",
            "model: its predictions are infinite or nan for 100 % of the tasks; fix",
        ),
        (
            "return np.random.normal(size=contexts[:, -1].shape)",
            "model: answers the same contexts differently when asked again; switch off dropout",
        ),
        (
            "return contexts[:, -1] / helper()",
            "model: {name}:predict raised ZeroDivisionError in {name}.py:6: division by zero; fix it there",
        ),
        (
            "raise SystemExit('enough')",
            "model: {name}:predict raised SystemExit in {name}.py:4: enough; fix it there",
        ),
        (
            "raise type('Own', (BaseException,), {'__str__': lambda self: 1})",
            "model: {name}:predict raised Own in {name}.py:4: its message cannot be made (TypeError)",
        ),
    ],
)
def test_functions_that_cannot_be_used(run, spec, module, tmp_path, body, message):
    name = module(
        f"import numpy as np\n\ndef predict(contexts):\n    {body}\ndef helper():\n    return 1 / 0\n"
    )
    path = spec(QUESTION)
    refused = run(
        "identify", "--model", f"{name}:predict", "--process", path, "--json", "--figures", "figures"
    ).refusal
    assert refused.startswith(f"mesascope identify: {path}: {message.format(name=name)}")


@pytest.mark.parametrize(
    ("text", "attribute", "message"),
    [
        ("", "predict", "module {name} has no 'predict'"),
        (
            "import no_such_package",
            "predict",
            "{name}:predict needs the package 'no_such_package', which is not installed;",
        ),
        (
            "\nx = 1 / 0",
            "predict",
            "{name}:predict raised ZeroDivisionError in {name}.py:2: division by zero; fix it there",
        ),
        ("def predict(:", "predict", "{name}:predict raised SyntaxError in {name}.py:1: "),
        ("\n\nimport sys; sys.exit(3)", "predict", "{name}:predict raised SystemExit in {name}.py:3: 3; fix"),
        (
            "def make():\n    return 1",
            "make",
            "{name}:make takes no arguments, so that it cannot answer contexts; write model",
        ),
        (
            "class Net:\n    pass",
            "Net",
            "{name}:Net is a class, not a model; write model = Net(…) in {name}, and name",
        ),
        ("net = 3", "net", "must be a model, or a function of contexts (batch, t, d), got int"),
    ],
)
def test_names_without_a_model(run, spec, module, tmp_path, text, attribute, message):
    name, path = module(text), spec(QUESTION)
    refused = run(
        "identify", "--model", f"{name}:{attribute}", "--process", path, "--figures", "figures", "--json"
    ).refusal
    assert refused.startswith(f"mesascope identify: {path}: model.name: {message.format(name=name)}")
    assert not (tmp_path / "figures").exists()


def test_interrupted(run, spec, module):
    name = module(
        "import os, signal\ndef slow(contexts):\n    try:\n        os.kill(os.getpid(), signal.SIGINT)\n"
        "        for _ in range(10**9):\n            pass\n    except Exception:\n        return contexts[:, -1]\n"
    )
    ended = run("identify", "--model", f"{name}:slow", "--process", spec(QUESTION), "--json")
    assert (ended.status, ended.out, ended.err) == (130, "", "mesascope identify: interrupted\n")


def test_interrupted_while_compiled_code_calls_a_function_of_python(run, spec, module):
    """Compiled code turns the exception into another one."""
    name = module(
        "import os, signal, jax, numpy as np\ndef press(x):\n    os.kill(os.getpid(), signal.SIGINT)\n"
        "    for _ in range(10**9):\n        pass\n"
        "def slow(contexts):\n    x = jax.numpy.asarray(contexts[:, -1])\n"
        "    return np.asarray(jax.jit(lambda x: jax.pure_callback(press, x, x))(x))\n"
    )
    ended = run("identify", "--model", f"{name}:slow", "--process", spec(QUESTION), "--json")
    assert (ended.status, ended.out, ended.err) == (130, "", "mesascope identify: interrupted\n")


def as_a_command(arguments, redirection="", **environment):
    """Run the command in a shell."""
    line = " ".join(shlex.quote(str(a)) for a in (sys.executable, "-m", "mesascope", "identify", *arguments))
    return subprocess.run(
        f"{line} {redirection}",
        shell=True,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "JAX_PLATFORMS": "cpu", **environment},
    )


@pytest.mark.slow
def test_a_closed_standard_error(spec, module):
    name, path = module(NOISY), spec({**QUESTION, "learners": ["zero", "gradient-descent"]})
    done = as_a_command(["--model", f"{name}:noisy", "--process", path, "--json"], "2>&-")
    assert done.returncode == 0
    assert json.loads(done.stdout)["verdict"] == "identified"
    done = as_a_command(["--model", "no.module:here", "--process", path], "2>&-")
    assert (done.returncode, done.stdout) == (2, "")


def test_copies_that_a_function_makes_of_the_process_end():
    def forks(contexts):
        copy = os.fork()
        return os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1]) if copy else contexts

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # JAX has threads, which copies lack
        assert NamedFunction("module:forks", forks)(0) == 1
