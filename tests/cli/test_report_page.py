"""Every block of docs/report.md runs, and its table of what can be shown holds."""

from pathlib import Path

import pytest
from blocks import BLOCK, run

import stored_records as stored

PAGE = (Path(__file__).parents[2] / "docs" / "report.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_every_block_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    stored.store("runs", name="products")
    stored.certificate("proof.json")
    stored.training("regression")
    stored.identification("answer")
    names = {"__name__": "report"}
    outputs = run(PAGE, names)
    assert [kind for _, kind, _ in BLOCK.findall(PAGE)] == ["sh", "sh", "sh", "latex", "python", "python"]
    assert "{'holds': 1}" in outputs[-2].text
    assert "flow.png" in outputs[-1].pictures
    assert "zheng2024/assumption-4.1" in Path("report.html").read_text(encoding="utf-8")
    assert names["shown"]["data"][0]["name"] == "flow" and names["pdf"].is_file()
    assert {path.name for path in Path("paper").iterdir()} >= {"figures.tex", "references.bib"}
