"""docs/studies.md is correct: its files are read, its programs run, its commands print what it shows."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from mesascope.cli import main
from mesascope.cli._parse import parse
from mesascope.studies import StudySpec, read_spec
from mesascope.studies.sweeps._axes import AxisSpec

PAGE = (Path(__file__).parents[3] / "docs" / "studies.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.S)
COMMANDS = [line for kind, text in BLOCKS if kind == "sh" for line in text.replace("\\\n", "").splitlines()]


@pytest.fixture
def files(tmp_path, monkeypatch):
    """The files of the page, in the current folder."""
    monkeypatch.chdir(tmp_path)
    for kind, text in BLOCKS:
        if kind in ("toml", "python"):
            Path(re.match(r"# (\S+)\n", text).group(1)).write_text(text, encoding="utf-8")


def test_its_studies_have_the_points_that_it_names(files):
    products = read_spec("products.toml", StudySpec)
    assert products.shape == (3, 2)
    assert [choice.labels for choice in products.choices[1]] == [("gaussian",), ("heavy",)]
    zipped = read_spec("zipped.toml", StudySpec)
    assert (zipped.shape, zipped.size) == ((2, 3), 4)
    assert len(list(products.points())) + len(list(zipped.points())) == 10


@pytest.mark.slow
def test_its_commands_and_its_program(files, capsys):
    here = [line for line in COMMANDS if line.startswith("mesascope") and "--store runs" in line]
    assert len(here) == 4
    outputs = []
    for line in here:
        assert main(shlex.split(line)[1:]) == 0, line
        outputs.append(capsys.readouterr().out)
    assert outputs[0].startswith("products: 6 done, 0 failed, 0 reused, of 6 runs")
    assert outputs[1].startswith("products: 0 done, 0 failed, 6 reused, of 6 runs")
    finished = subprocess.run(
        [sys.executable, "compute.py"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONWARNINGS": "error"},
    )
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.startswith("0 0 6\n[")


def test_the_error_that_it_shows(files, capsys):
    text = Path("products.toml").read_text()
    ranged = "range = {start = 0.1, stop = 0.5, step = 0.2}"
    assert ranged in text
    Path("products.toml").write_text(text.replace(ranged, 'values = [0.1, 0.3, "x"]'))
    command, *lines = next(text for kind, text in BLOCKS if kind == "text").splitlines()
    assert main(shlex.split(command)[2:]) == 2
    assert capsys.readouterr().err.startswith(" ".join(line.strip() for line in lines))


def test_every_other_command_can_be_parsed():
    for line in COMMANDS:
        if line.startswith("mesascope"):
            assert parse(shlex.split(line)[1:])
        else:
            assert line.startswith("export PGPASSWORD")


def test_every_field_is_explained():
    quoted = set(re.findall(r"`(\w+) =|`(\w+)`", PAGE))
    words = {one for pair in quoted for one in pair} | set(re.findall(r"^(\w+) = ", PAGE, re.M))
    assert {*StudySpec.model_fields, *AxisSpec.model_fields} - {"subset", "axes", "base"} <= words
    assert "[subset]" in PAGE and "[[axes]]" in PAGE and "[base]" in PAGE


def test_its_settings_of_a_queue_are_what_dask_reads(jobqueue):
    settings = yaml.safe_load(next(text for kind, text in BLOCKS if kind == "yaml"))["jobqueue"]["slurm"]
    known = yaml.safe_load((Path(jobqueue.__file__).parent / "jobqueue.yaml").read_text())["jobqueue"][
        "slurm"
    ]
    assert set(settings) <= set(known)
