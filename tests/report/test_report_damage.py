"""Reports of hostile, damaged and missing records, and outputs that cannot be written: nothing breaks a page or a file."""

import json
import os
import re
import tempfile
import unicodedata
from pathlib import Path

import pytest

import stored_records as stored
from mesascope.records import RecordError
from mesascope.report import gather, write_report

HOSTILE = (
    "</script><script>alert(1)</script> ]]> <!-- \"quoted\" 'single' & &amp; "
    "<img src=x onerror=alert(1)> \x1b]0;a\x07 \u2028 \x00"
)


def test_texts_of_records_are_shown_and_never_run(tmp_path, report):
    line = stored.Line(x=(0.0, 1.0), y=(0.0, 1.0), label=HOSTILE)
    panel = stored.Panel(title=HOSTILE, xlabel=HOSTILE, ylabel=HOSTILE, traces=(line,))
    figure = stored.Figure(title=HOSTILE, panels=(panel, panel), caption=HOSTILE)
    record = stored.claim(
        title=HOSTILE,
        statement=HOSTILE,
        source=HOSTILE,
        criterion=HOSTILE,
        history=HOSTILE,
        difference=HOSTILE,
        parts={HOSTILE: "met"},
        measured={HOSTILE: HOSTILE},
        expected=HOSTILE,
        details={
            HOSTILE: [{HOSTILE: HOSTILE}],
            "error": HOSTILE,
            "traceback": HOSTILE,
        },
        setting={HOSTILE: HOSTILE},
        preset=HOSTILE,
    )
    folder = stored.run_directory(tmp_path / "run", record)
    run = stored.RunDirectory(folder)
    run.write_claim(record.model_copy(update={"files": (run.write_figure("zheng2024/f", figure),)}))
    _, page = report(folder)
    assert page.text.count("alert(1)") > 10
    assert [tag for tag, _ in page.elements].count("script") == 4  # two panels, plotly and ours
    assert "img" not in {tag for tag, _ in page.elements}
    names = [trace["name"] for one in page.data for trace in one["data"]]
    assert len(names) == 2 and all("&lt;/script&gt;" in name for name in names)
    assert not {character for character in page.text if unicodedata.category(character) == "Cc"} - {
        "\n",
        "\t",
    }


def test_numbers_of_a_certificate_may_leave_double_precision(tmp_path, report):
    path = stored.certificate(tmp_path / "c.json")
    changed = json.loads(path.read_text()) | {"radius": "9" * 400}
    path.write_text(json.dumps(changed))
    written, page = report(path)
    assert written.certificates == 1 and re.search(r"\binf\b", page.text)


@pytest.mark.slow
def test_no_name_in_a_record_leaves_the_folder_for_latex(tmp_path):
    record = stored.claim(preset="../../out")
    run = stored.RunDirectory(stored.run_directory(tmp_path / "run", record))
    figure = run.write_figure("zheng2024/f", stored.map_figure())
    run.write_claim(record.model_copy(update={"files": (figure, "figures/../../../secret.json")}))
    before = set(tmp_path.iterdir())
    written = write_report(str(run.path), out=tmp_path / "r.html", latex=tmp_path / "a" / "tex")
    assert written.figures == 1 and len(written.problems) == 1 and "secret" in written.problems[0]
    assert set(tmp_path.iterdir()) - before == {tmp_path / "r.html", tmp_path / "a"}
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["tex"]
    assert (tmp_path / "a" / "tex" / "figures" / "-out" / "zheng2024" / "f.pdf").is_file()


def test_damaged_records_are_named_and_the_others_shown(tmp_path, report):
    folder = stored.run_directory(
        tmp_path / "run",
        stored.claim(),
        stored.claim("huang2024/stages"),
        figures={"zheng2024/m": stored.map_figure()},
    )
    (folder / "claims" / "huang2024" / "stages.json").write_text("{")
    (folder / "figures" / "zheng2024" / "m.json").write_text("{}")
    written, page = report(folder)
    assert written.outcomes == {"holds": 1} and written.figures == 0
    assert len(written.problems) == 2 and all(
        "stages.json" in one or "m.json" in one for one in written.problems
    )
    assert "cannot be read" in page.text and all(problem in page.text for problem in written.problems)


@pytest.mark.parametrize(
    ("what", "options", "message"),
    [
        ((), {}, "nothing to report: there are no records in .*none; name files"),
        (("zheng2024",), {}, "no records of zheng2024 in .*; run `mesascope reproduce zheng2024` first"),
        (("study-1",), {}, "no file, paper or claim 'study-1'; studies and runs need --store"),
        (("empty",), {}, "empty holds no records; name a folder of"),
        (("other.txt",), {}, "other.txt is not a record of mesascope"),
        (("a study",), {"store": "store"}, "no file, paper, study or run 'a study'"),
        (("abcdef",), {"store": "store"}, "no file, paper, study or run 'abcdef'"),
        (("zheng2024",), {"store": "missing"}, "missing is not a store of runs"),
        ((), {"store": "missing"}, "missing is not a store of runs"),
    ],
)
def test_missing_records_are_reported_and_nothing_is_written(tmp_path, monkeypatch, what, options, message):
    monkeypatch.chdir(tmp_path)
    stored.RunFolders.create("store")
    (tmp_path / "empty").mkdir()
    (tmp_path / "other.txt").write_text("[]")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(RecordError, match=message) as raised:
        write_report(*what, out="report.html", results=tmp_path / "none", **options)
    assert "\n" not in str(raised.value)
    assert sorted(tmp_path.iterdir()) == before


def test_an_unreadable_folder_is_reported(tmp_path):
    with pytest.raises(RecordError, match=r"aaa: cannot be read \(File name too long\); check its name"):
        gather(["a" * 300])
    with tempfile.TemporaryDirectory() as above:  # tmp_path is closed to all other users
        os.chmod(above, 0o755)
        folder = Path(above) / "results"
        stored.run_directory(folder / "small", stored.claim())
        os.chmod(folder, 0)
        other = os.geteuid() == 0  # whom permissions do not bind
        os.seteuid(65534) if other else None
        try:
            for what, results in ((["theorem"], folder), ([], folder), ([str(folder)], tmp_path)):
                with pytest.raises(RecordError, match=r"results.*: cannot be read \(Permission denied\)"):
                    gather(what, results)
        finally:
            os.seteuid(0) if other else None
            os.chmod(folder, 0o700)


def test_a_folder_as_output_is_refused_and_files_stay_as_they_were(tmp_path, monkeypatch):
    folder = stored.run_directory(tmp_path / "run", stored.claim())
    with pytest.raises(RecordError, match="is a folder; name a file in it"):
        write_report(str(folder), out=tmp_path)
    (tmp_path / "report.html").write_text("<!DOCTYPE html> before")

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("mesascope.records._files.os.replace", fail)
    with pytest.raises(RecordError, match=r"cannot write .*report.html: No space left"):
        write_report(str(folder), out=tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text() == "<!DOCTYPE html> before"
    assert {path.name for path in tmp_path.iterdir()} == {"run", "report.html"}


def test_a_study_under_a_name_that_is_none_is_told(tmp_path):
    stored.store(tmp_path / "runs")
    (study, *_) = sorted((tmp_path / "runs" / "studies").glob("*.json"))
    study.rename(study.with_name("Odd name.json"))
    problems = gather([tmp_path / "runs"]).problems
    assert [one for one in problems if "holds 'Odd name.json', which is not a study; remove it" in one]
