"""The pages of papers: their blocks run, they name every claim, their pictures exist and are small."""

import re
from pathlib import Path

import pytest

from mesascope.papers import PAPERS, claims

FOLDER = Path(__file__).parents[2] / "docs" / "papers"
PAGES = sorted(page.stem for page in FOLDER.glob("*.md") if page.stem in PAPERS)


def _text(paper):
    return (FOLDER / f"{paper}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("paper", PAGES)
def test_every_block_runs(paper, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", _text(paper), re.S)
    assert blocks
    names = {"__name__": paper}
    for block in blocks:
        exec(compile(block, f"{paper}.md", "exec"), names)


@pytest.mark.parametrize("paper", PAGES)
def test_every_claim_is_told_with_its_id(paper):
    told = set(re.findall(rf"`({paper}/[a-z0-9.-]+)`", _text(paper)))
    assert told == {claim.id for claim in claims(paper)}


@pytest.mark.parametrize("paper", PAGES)
def test_pictures_exist_and_are_small(paper):
    pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", _text(paper))
    assert pictures
    for picture in pictures:
        assert (FOLDER / picture).stat().st_size <= 150_000, picture
