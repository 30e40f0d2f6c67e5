"""`mesascope report` on the command line."""

import pytest

import stored_records as stored
from mesascope.records import RunFolders


@pytest.fixture
def filled(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refuted = stored.claim("huang2024/stages", decision="not met", source="huang2024")
    figures = {"zheng2024/map": stored.map_figure()}
    stored.run_directory(tmp_path / "results" / "all-small", stored.claim(), refuted, figures=figures)
    stored.store(tmp_path / "runs")
    return tmp_path


@pytest.mark.slow
def test_the_file_and_its_contents(filled, run):
    ended = run("report", "zheng2024", "huang2024", "grid", "--store", "runs", "--out", "r.html", "--json")
    assert ended.status == 0 and ended.err == ""  # for any verdicts: the report is done
    assert ended.json == {
        "file": str(filled / "r.html"),
        "latex": None,
        "claims": 2,
        "outcomes": {"holds": 1, "contradicted": 1},
        "studies": 1,
        "runs": 0,
        "trainings": 0,
        "identifications": 0,
        "certificates": 0,
        "figures": 3,
        "problems": [],
    }
    assert (filled / "r.html").stat().st_size > 1_000_000


@pytest.mark.slow
def test_all_results_and_the_folder_for_latex(filled, run):
    ended = run("report", "--out", "sub/r.html", "--latex", "tex")
    assert ended.status == 0
    assert ended.out.splitlines() == ["1 contradicted, 1 holds, 1 figure", "sub/r.html", "tex"] or (
        ended.out.splitlines() == ["1 holds, 1 contradicted, 1 figure", "sub/r.html", "tex"]
    )
    assert {path.name for path in (filled / "tex").iterdir()} == {"figures", "figures.tex", "references.bib"}


def test_damaged_records_are_left_out_and_the_command_fails(filled, run):
    (filled / "results" / "all-small" / "claims" / "huang2024" / "stages.json").write_text("{")
    ended = run("report", "--out", "r.html")
    assert ended.status == 1
    assert ended.err.startswith("mesascope report: left out: ") and "stages.json" in ended.err
    assert ended.out.splitlines() == ["1 holds, 1 figure", "r.html"]


def test_damaged_runs_are_never_shown_from_the_index(filled, run):
    folders = RunFolders("runs")
    torn, lacking = folders.study("grid").runs[:2]
    (folders.folder(torn) / "run.json").write_text("{")
    arrays = folders.folder(lacking) / "trajectory.nc"
    arrays.write_bytes(arrays.read_bytes()[:-9])
    ended = run("report", "--out", "r.html", "--store", "runs")
    assert ended.status == 1 and len(ended.err.splitlines()) == 2
    for file in (folders.folder(torn) / "run.json", arrays):
        assert str(file) in ended.err
    assert "unreadable" in (filled / "r.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--out", "r.html", "--index", "sqlite:///x", "grid"), "studies and runs need --store DIR"),
        (
            ("ahn2023", "--out", "r.html"),
            "no records of ahn2023 in results; run `mesascope reproduce ahn2023` first",
        ),
        (("grid", "--out", "r.html"), "studies and runs need --store DIR"),
        (("--out", "results"), "results is a folder; name a file in it"),
        (
            ("--out", "results/all-small/claims/zheng2024/theorem-4.1.json"),
            "is a record or checkpoint of mesascope",
        ),
        (("--out", "r.html", "--latex", " "), "the folder for LaTeX has an empty name"),
        (
            ("--out", "r.html", "--latex", "results/all-small/claims/zheng2024/theorem-4.1.json"),
            "cannot be written to",
        ),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(filled, run, arguments, message):
    assert message in run("report", *arguments).refusal
    assert not (filled / "r.html").exists()
