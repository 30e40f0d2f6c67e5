"""Every block of docs/report.md runs, and its table of what can be shown holds."""

import re
import shlex
from pathlib import Path

import stored_records as stored
from mesascope.cli import main

PAGE = (Path(__file__).parents[2] / "docs" / "report.md").read_text(encoding="utf-8")


def test_every_block_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    stored.store("runs", name="products")
    stored.certificate("proof.json")
    stored.training("regression")
    stored.identification("answer")
    names, kinds = {}, []
    for kind, text in re.findall(r"```(\w+)\n(.*?)```", PAGE, re.S):
        kinds.append(kind)
        if kind == "python":
            exec(compile(text, "page", "exec"), names)
        elif kind == "sh":
            for line in text.splitlines():
                assert main(shlex.split(line)[1:]) == 0, line
    assert kinds == ["sh", "sh", "sh", "latex", "python", "python"]
    assert "{'verified': 1}" in capsys.readouterr().out
    assert "zheng2024/assumption-4.1" in Path("report.html").read_text(encoding="utf-8")
    assert names["shown"]["data"][0]["name"] == "flow" and names["pdf"].is_file()
    assert {path.name for path in Path("paper").iterdir()} >= {"figures.tex", "references.bib"}
