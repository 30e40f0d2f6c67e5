import subprocess
import sys
import time

import pytest
from pydantic import ValidationError

from mesascope.records import (
    VERDICTS,
    ClaimRecord,
    Provenance,
    code_version,
    fingerprint,
    outcome_of,
    provenance,
)
from stored_records import claim


def test_record_reads_back_from_json():
    record = claim(details={"errors": (1e-9, float("nan"))}, setting={"weights": {2: 1}})
    assert ClaimRecord.model_validate_json(record.model_dump_json()) == record
    assert record.details == {"errors": [1e-9, "nan"]}


def test_it_prints_in_one_line_and_is_a_table_in_notebooks():
    record = claim(statement="<b> & all", measured=list(range(1000)))
    assert (
        str(record)
        == repr(record)
        == f"<ClaimRecord {record.id}: {record.outcome}; {record.evidence}; {record.title}>"
    )
    html = record._repr_html_()
    assert "<td>statement</td><td>&lt;b&gt; &amp; all</td>" in html and len(html) < 2000
    assert "difference" not in html  # there is none


@pytest.mark.parametrize(
    "wrong",
    [
        {"id": "theorem"},
        {"id": "zheng2024/../x"},
        {"id": "zheng2024/Theorem"},
        {"id": "zheng2024/theorem-4.1\n"},
        {"statement": "  "},
        {"decision": "maybe"},
        {"evidence": "strong"},
        {"origin": "rumour"},
        {"title": ""},
        {"criterion": " "},
        {"parts": {"one": "maybe"}},
        {"tolerance": -1.0},
        {"tolerance": float("nan")},
        {"seconds": -1.0},
        {"unknown": 1},
    ],
)
def test_malformed_records_are_refused(wrong):
    with pytest.raises(ValidationError):
        claim(**wrong)


@pytest.mark.parametrize(
    ("decision", "evidence", "difference", "outcome", "verdict"),
    [
        ("met", "measured, reduced", "", "holds", "verified"),
        ("met", "exact", "One cell is off.", "holds with a difference", "verified"),
        ("not met", "proved", "", "contradicted", "refuted"),
        ("not met", "exact", "One cell is off.", "contradicted", "refuted"),
        ("not met", "measured at the paper's setting", "", "contradicted", "refuted"),
        ("not met", "measured, reduced", "", "not reproduced at this scale", "inconclusive"),
        ("not met", "measured, another model", "", "not reproduced at this scale", "inconclusive"),
        ("undecided", "proved", "", "undecided", "inconclusive"),
        ("undecided", "exact", "One cell is off.", "undecided", "inconclusive"),
    ],
)
def test_only_strong_evidence_contradicts(decision, evidence, difference, outcome, verdict):
    record = claim(decision=decision, evidence=evidence, difference=difference)
    assert outcome_of(decision, evidence, difference) == outcome == record.outcome
    assert VERDICTS[outcome] == verdict == record.verdict


def test_fingerprint_depends_on_every_part_and_on_nothing_else():
    base = fingerprint("a/b", {"dim": 5, "law": "x"}, "small", code="1")
    assert base == fingerprint("a/b", {"law": "x", "dim": 5}, "small", code="1")
    others = {
        fingerprint("a/c", {"dim": 5, "law": "x"}, "small", code="1"),
        fingerprint("a/b", {"dim": 6, "law": "x"}, "small", code="1"),
        fingerprint("a/b", {"dim": 5, "law": "x"}, "paper", code="1"),
        fingerprint("a/b", {"dim": 5, "law": "x"}, "small", code="2"),
        fingerprint("a/b", {"dim": 5, "law": "x"}, "small"),
    }
    assert len(others) == 5 and base not in others


def test_code_version_changes_with_the_sources(monkeypatch, tmp_path):
    from mesascope.records import _provenance

    package = tmp_path / "mesascope"
    package.mkdir()
    (package / "a.py").write_text("x = 1\n")
    monkeypatch.setattr(_provenance, "PACKAGE", package)
    seen = set()
    for text in ("x = 1\n", "x = 2\n"):
        (package / "a.py").write_text(text)
        seen.add(code_version.__wrapped__())
    (package / "b.py").write_text("")
    seen.add(code_version.__wrapped__())
    assert len(seen) == 3


def test_code_version_is_fast_and_taken_once():
    began = time.perf_counter()
    code_version.__wrapped__()
    assert time.perf_counter() - began < 0.25  # about 10 ms; the slack is for a loaded machine
    assert code_version() is code_version()


def test_provenance_names_versions_and_the_commit_it_can_find(monkeypatch, tmp_path):
    from mesascope.records import _provenance

    taken = provenance()
    assert taken.packages.keys() >= {"jax", "equinox", "diffrax", "numpy", "xarray"}
    assert taken.created.endswith("+00:00")
    assert Provenance.model_validate_json(taken.model_dump_json()) == taken

    # A package inside a repository that does not track it has no commit.
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "__init__.py").write_text("")
    monkeypatch.setattr(_provenance, "PACKAGE", tmp_path)
    assert _provenance._checkout.__wrapped__() == (None, None)
    # Once tracked it has one, and an edit makes it dirty.
    git = ["git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=e@x"]
    subprocess.run([*git, "add", "__init__.py"], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "m"], check=True)
    monkeypatch.setenv("GIT_DIR", "/nonexistent")  # another repository's hook is no matter
    commit, dirty = _provenance._checkout.__wrapped__()
    assert len(commit) == 40 and dirty is False
    (tmp_path / "__init__.py").write_text("x = 1\n")
    assert _provenance._checkout.__wrapped__() == (commit, True)
    # Without git at all nothing is known, and nothing fails.
    monkeypatch.setenv("PATH", "")
    assert _provenance._checkout.__wrapped__() == (None, None)


def test_records_load_neither_jax_nor_the_array_libraries():
    code = (
        "import sys, mesascope.records\n"
        "heavy = {'jax', 'equinox', 'xarray', 'netCDF4', 'matplotlib', 'numpy'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
