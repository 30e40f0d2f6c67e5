"""Every block of docs/store.md runs, and its tables are complete."""

import doctest
import re
import shlex
from pathlib import Path
from typing import get_args

import pytest

from mesascope.cli import main
from mesascope.cli._runs import RUNS  # tyro: doctest leaves a list in builtins, which it cannot import
from mesascope.records.store._filters import STATUSES, read_filters
from mesascope.records.store.exporters import Format

PAGE = (Path(__file__).parents[2] / "docs" / "store.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_every_block_runs_and_gives_what_the_page_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names, kinds = {}, []
    for kind, text in re.findall(r"```(\w+)\n(.*?)```", PAGE, re.S):
        kinds.append(kind)
        if kind == "python":
            exec(compile(text, "page", "exec"), names)
        elif kind == "pycon":
            example = doctest.DocTestParser().get_doctest(text, names, "page", None, 0)
            assert not doctest.DocTestRunner().run(example, clear_globs=False).failed, capsys.readouterr().out
        else:
            for line in text.replace("\\\n", "").splitlines():
                assert main(shlex.split(line)[1:]) == 0, line
    assert kinds == ["python", "python", "pycon", "sh"]
    assert Path("results/runs.csv").exists() and "1 removed" in capsys.readouterr().out


def test_every_part_of_the_command_is_shown():
    for part in RUNS:
        assert f"\nmesascope runs {part} " in PAGE


def test_tables_are_complete():
    assert set(re.findall(r"^\| `(\w+)` \| an? ", PAGE, re.M)) >= set(get_args(Format))
    (statuses,) = re.findall(r"^\| `status` \| (.*) \|$", PAGE, re.M)
    assert statuses == ", ".join(f"`{one}`" for one in STATUSES)
    for name in [
        "kind",
        "study",
        "code",
        "error",
        "started",
        "ended",
        "seconds",
        "attempts",
        "spec.x",
        "outcome.x",
    ]:
        assert f"`{name.replace('.x', '.PATH')}`" in PAGE
        read_filters([f"{name}=1"])
