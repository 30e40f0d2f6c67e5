"""The pages of papers: every paper has one whose examples run, and the table shows what the records say."""

import importlib.util
import re
from pathlib import Path

import jax
import pytest

from mesascope.papers import PAPERS, claims
from mesascope.records import RunDirectory

DOCS = Path(__file__).parents[1] / "docs"
FOLDER = DOCS / "papers"


def _writer():
    spec = importlib.util.spec_from_file_location("write_claims", DOCS / "write_claims.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("paper", PAPERS)
def test_a_page_names_every_claim_and_shows_its_figures(paper):
    text = (FOLDER / f"{paper}.md").read_text(encoding="utf-8")
    figures = re.findall(r"!\[[^\]]{20,}\]\(([^)]+\.png)\)", text)
    assert figures and all((FOLDER / figure).stat().st_size < 200_000 for figure in figures)
    named = set(re.findall(r"`([a-z0-9./…-]+)`", text))
    for claim in claims(paper):
        name = claim.id.removeprefix(f"{paper}/")
        assert any(
            {name, claim.id} & {one} or re.fullmatch(re.escape(one).replace("…", ".+"), name) for one in named
        ), f"{claim.id} is not on its page"


@pytest.mark.slow
@pytest.mark.parametrize("paper", PAPERS)
def test_examples_on_the_page_run(paper, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": paper}
    blocks = re.findall(
        r"```python\n(.*?)```", (FOLDER / f"{paper}.md").read_text(encoding="utf-8"), re.DOTALL
    )
    assert blocks
    for block in blocks:
        exec(block, names)
    jax.config.update("jax_enable_x64", True)


def test_the_table_is_what_the_records_say_and_no_claim_lacks_a_verdict():
    writer = _writer()
    assert (FOLDER / "README.md").read_text(encoding="utf-8") == writer.page()
    assert {one.id for one in writer.run_of("quick").claims()} == {claim.id for claim in claims()}


def test_records_are_taken_over_from_runs(tmp_path, monkeypatch):
    writer = _writer()
    run = FOLDER / "records" / "quick"
    monkeypatch.setattr(writer, "FOLDER", tmp_path)
    writer.main([run])
    assert RunDirectory(tmp_path / "records" / "quick").claims() == RunDirectory(run).claims()
    assert (tmp_path / "README.md").stat().st_size > 10_000


def test_statements_that_speak_of_both_presets_have_one_set_of_settings():
    # such a claim counts as checked at the paper's sizes
    for claim in claims():
        if "both presets" in claim.statement:
            assert claim.settings["quick"] == claim.settings["paper"], claim.id
