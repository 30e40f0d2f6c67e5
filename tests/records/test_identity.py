"""One digest says whether two results are of one computation, and one comparison says in what they differ."""

import pytest

from mesascope.records import code_digest, difference, identity, provenance
from mesascope.records._identity import LIBRARIES


def test_an_identity_depends_on_kind_meaning_and_code():
    base = identity("flow", {"a": 1, "b": [2.0]}, "code")
    assert base == identity("flow", {"b": (2.0,), "a": 1}, "code") and len(base) == 64
    others = {identity("loss", {"a": 1, "b": [2.0]}, "code"), identity("flow", {"a": 1, "b": [2.5]}, "code")}
    assert len({base, *others, identity("flow", {"a": 1, "b": [2.0]}, "other")}) == 4


@pytest.mark.parametrize("name", LIBRARIES)
def test_every_library_counts_and_is_recorded(tmp_path, monkeypatch, name):
    assert (
        name in provenance().packages
    )  # before versions are replaced: it keeps the code's digest for the process
    (tmp_path / "a.py").write_text("x = 1\n")
    before = code_digest(tmp_path, [tmp_path / "a.py"])
    monkeypatch.setattr(
        "mesascope.records._identity.package_version", lambda one: "9" if one == name else "1"
    )
    other = code_digest(tmp_path, [tmp_path / "a.py"])
    monkeypatch.setattr("mesascope.records._identity.package_version", lambda one: "1")
    assert len({before, other, code_digest(tmp_path, [tmp_path / "a.py"])}) == 3


def test_the_first_field_that_differs_is_named():
    there = {"kind": "flow", "init": {"kind": "diagonal", "a": 1}, "old": 1}
    assert difference(there, dict(there)) is None
    assert difference(there, {**there, "init": {"kind": "diagonal", "a": 2}}) == ("init.a", 1, 2)
    other = {"kind": "full"}
    assert difference(there, {**there, "init": other}) == ("init", there["init"], other)
    assert difference(there, {"kind": "flow", "init": there["init"]}) == ("old", 1, None)
    assert difference("no table", there) == ("", "no table", there)
