"""What the README shows is true."""

import json
import re
import subprocess
import sys
from pathlib import Path

import jax
import pytest
from blocks import RUNNERS

import mesascope as ms
from mesascope.cli import main
from mesascope.papers import PAPERS, claims

ROOT = Path(__file__).parents[1]
README, COMMANDS = (
    (ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "docs/reference/commands.md")
)


def specification(name):
    """The file of this name on the page of commands, which the README names without showing it."""
    assert f" {name}" in README
    return re.search(rf"```toml\n(# {name}\n.*?)```", COMMANDS, re.S).group(1)


@pytest.mark.slow
def test_the_example_runs_and_says_what_the_text_says():
    code = re.search(r"<!-- example -->\n```python\n(.*?)```", README, re.S).group(1)
    assert len([line for line in code.splitlines() if line.strip()]) <= 15
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loss, flow, limit = done.stdout.strip().splitlines()
    assert float(loss) > 0
    ended = re.fullmatch(r"<Flow of LinearAttention: converged at time \S+, loss .*, a_j b_j (\S+)>", flow)
    assert float(ended[1]) == pytest.approx(float(limit), rel=1e-9)  # of ten digits
    assert float(limit) == 0.19190508852558863


@pytest.mark.slow
def test_training_comes_to_the_best_step_of_gradient_descent_in_python_and_from_a_file(
    tmp_path, monkeypatch, capsys
):
    """In one process, so that both ways share their compiled code."""
    names = {"jax": jax, "ms": ms}
    exec(re.search(r"<!-- training -->\n```python\n(.*?)```", README, re.S).group(1), names)
    best = float(capsys.readouterr().out.splitlines()[-1])
    (tmp_path / "regression.toml").write_text(specification("regression.toml"))
    monkeypatch.chdir(tmp_path)
    assert main(["train", "regression.toml", "--json"]) == 0
    trained, from_file = names["training"].loss, json.loads(capsys.readouterr().out)
    ends = (trained.value, trained.standard_error), (from_file["loss"], from_file["loss_standard_error"])
    for loss, error in ends:
        # 5 standard errors, and two percent for a constant learning rate and only 1000 steps
        assert abs(loss - best) < 5 * error + 0.02 * best
    _is_named_as_a_step(names, tmp_path, capsys)


def _is_named_as_a_step(names, folder, capsys):
    """In Python and from a file; with the learners of the example, for the time that all of them take."""
    exec(re.search(r"<!-- identification -->\n```python\n(.*?)```", README, re.S).group(1), names)
    answer = names["answer"]
    assert (answer.verdict, answer.candidates) == ("identified", ("gradient-descent",))
    assert answer.ranking[0].interval[1] < 0.01
    _prints_what_comes_first(capsys)
    question = specification("question.toml")
    (folder / "question.toml").write_text(f"{question}learners = {json.dumps(names['names'])}")
    capsys.readouterr()
    assert main(["identify", "question.toml", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["candidates"] == ["gradient-descent"]


def _prints_what_comes_first(capsys):
    """The first block of the README."""
    capsys.readouterr()
    code, text = re.search(
        r"<!-- question -->\n```python\n(.*?)```\n\n```text\n(.*?)```", README, re.S
    ).groups()
    exec(code, {})
    RUNNERS["text"](text, {"printed": capsys.readouterr().out})


@pytest.mark.slow
def test_the_specification_is_one(tmp_path):
    (tmp_path / "spec.toml").write_text(specification("spec.toml"))
    command = [sys.executable, "-m", "mesascope", "flow", str(tmp_path / "spec.toml"), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert '"converged": true' in done.stdout


def test_the_numbers_of_claims_and_papers_are_those_of_the_registry():
    assert f"{len(claims())} claims of {len(PAPERS)} papers" in README


def test_links_and_pictures_exist():
    for target in re.findall(r"\]\((?!http)([^)#]+)[)#]", README):
        assert (ROOT / target).exists(), target


def test_the_landing_page_leads_to_every_page():
    """The README leads to it alone."""
    index = ROOT / "docs" / "index.md"
    told = re.findall(r"\]\((?!http)([^)#]+)[)#]", index.read_text(encoding="utf-8"))
    told += [f"{line}.md" for line in re.findall(r"^[a-z]\S+$", index.read_text(encoding="utf-8"), re.M)]
    led = {path for target in told for path in index.parent.glob(target)}
    pages = {path for path in index.parent.rglob("*.md") if "_build" not in path.parts} - {index}
    assert pages - led - {path for path in pages if path.parent.name == "api"} == set()
