"""Specifications and samples in files."""

import io
import json
import sys

import numpy as np
import pytest

from mesascope.studies import FlowSpec, LossSpec, SpecError, read_spec

TOML = """
dim = 2
horizon = 5
w_kq = [[0, 0, 0, 0], [0, 0, 0, 0], [0.3, 0, 0, 0], [0, 0.3, 0, 0]]
w_pv = [["7/10", 0, 0, 0], [0, 0.7, 0, 0]]

[law]
kind = "gaussian"
scale = 1.0

[weights]
3 = 1
4 = "1/2"
"""


def refusal(path, kind=LossSpec):
    with pytest.raises(SpecError) as caught:
        read_spec(path, kind)
    assert len(str(caught.value).splitlines()) == 1
    return str(caught.value).removeprefix(f"{path}: ")


def test_toml_and_json_say_the_same(tmp_path, loss_with):
    data = loss_with(weights={"3": 1, "4": "1/2"})
    (tmp_path / "loss.toml").write_text(TOML)
    (tmp_path / "loss.json").write_text(json.dumps(data))
    assert read_spec(tmp_path / "loss.toml", LossSpec) == read_spec(tmp_path / "loss.json", LossSpec)


@pytest.mark.parametrize("name", ["loss", "loss.txt", "loss.spec.v2"])
def test_the_content_decides_for_other_endings(tmp_path, loss_with, name):
    expected = LossSpec(**loss_with(weights={3: 1, 4: "1/2"}))
    for text in (TOML, json.dumps(loss_with(weights={"3": 1, "4": "1/2"})), "\ufeff" + TOML):
        (tmp_path / name).write_text(text, encoding="utf-8")
        assert read_spec(tmp_path / name, LossSpec) == expected


def test_standard_input(monkeypatch, loss_with):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(loss_with(dim=0)).encode())))
    with pytest.raises(SpecError, match=r"^standard input: dim: must be at least 1"):
        read_spec("-", LossSpec)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", b'{"dim": 2,', "is not valid JSON: "),
        ("a.json", b"[" * 100_000, "is nested too deeply"),
        ("a.json", b'{"dim": ' + b"9" * 5000 + b"}", "holds an integer of thousands of digits"),
        ("a.json", b'{"dim": 2, "dim": 3}', "dim: is given twice; keep one"),
        ("a.json", b"[1, 2]", "must be a table with the fields"),
        ("a.json", b"", "is empty"),
        ("a.toml", b"dim = = 2", "is not valid TOML: "),
        ("a.toml", b"dim = 2\ndim = 3", "is not valid TOML: "),
        ("a.toml", b"  \n", "is empty"),
        ("a.toml", bytes(range(256)), "is not a text in UTF-8"),
    ],
)
def test_damaged_and_foreign_files(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    assert refusal(tmp_path / name).startswith(message)


def test_no_file(tmp_path):
    assert refusal(tmp_path / "a.toml") == "no such file; check the path"
    assert refusal(tmp_path).startswith("is a folder")
    assert "cannot be read" in refusal("a\0b.toml")


def test_json_nan_is_refused_at_its_field(tmp_path, loss_with):
    (tmp_path / "a.json").write_text(json.dumps(loss_with(law={"kind": "gaussian", "scale": float("nan")})))
    assert refusal(tmp_path / "a.json") == "law.scale: must be finite and fit double precision, got nan"


def loss_of_samples(tmp_path, loss_with, **law):
    (tmp_path / "a.json").write_text(json.dumps(loss_with(law={"kind": "empirical", **law})))
    return read_spec(tmp_path / "a.json", LossSpec)


def test_samples_beside_the_specification(tmp_path, loss_with):
    table = [[1.0, 2.0], [-1.5, 0.25], [3.0, -2.0]]
    np.save(tmp_path / "s.npy", table)
    (tmp_path / "s.csv").write_text("x,y\n" + "\n".join(f"{a},{b}" for a, b in table) + "\n\n")
    laws = [
        loss_of_samples(tmp_path, loss_with, joint=True, **source).build().process.law
        for source in (
            {"file": "s.npy"},
            {"file": "s.csv"},
            {"file": str(tmp_path / "s.csv")},
            {"samples": table},
        )
    ]
    assert len(set(laws)) == 1


def test_one_column_is_a_pool(tmp_path, loss_with):
    (tmp_path / "s.csv").write_text("1\n-1\n")
    assert loss_of_samples(tmp_path, loss_with, file="s.csv").build().process.law.pooled


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("s.csv", b"a,b\n1,2\n3,x\n", "line 3"),
        ("s.csv", b"1,2\n3\n", "line 2: 1 numbers, but the lines before have 2"),
        ("s.csv", b"1,nan\n", "not finite"),
        ("s.csv", b"a,b\n", "shape (0,)"),
        ("s.csv", b"\xff\xfe\x00", "not a text file of comma-separated numbers"),
        ("s.npy", b"\x93NUMPYgarbage", "not an array in numpy's .npy format"),
        ("s.npy", b"", "not an array in numpy's .npy format"),
        ("s.txt", b"1", "ends in .txt; give samples as .npy or .csv"),
    ],
)
def test_bad_samples(tmp_path, loss_with, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SpecError) as caught:
        loss_of_samples(tmp_path, loss_with, file=name).build()
    assert str(caught.value).partition(": ")[2].startswith("law.file: ")
    assert message in str(caught.value)


def test_bad_arrays_of_samples(tmp_path, loss_with):
    for array in (np.array([1j]), np.zeros((2, 2, 2)), np.array(["a"]), np.array([{}], dtype=object)):
        np.save(tmp_path / "s.npy", array, allow_pickle=True)
        with pytest.raises(SpecError, match=r"law\.file: "):
            loss_of_samples(tmp_path, loss_with, file="s.npy").build()
    (tmp_path / "d.csv").mkdir()
    for name in ("none.npy", "d.csv"):
        with pytest.raises(SpecError, match=r"law\.file: "):
            loss_of_samples(tmp_path, loss_with, file=name).build()


def test_flow_in_toml(tmp_path):
    text = 'dim = 3\nhorizon = 10\nlaw = "sparse"\ninit = { kind = "gaussian", scale = 0.1 }\nuntil = "1/2"\n'
    (tmp_path / "flow.toml").write_text(text)
    spec = read_spec(tmp_path / "flow.toml", FlowSpec)
    assert (spec.law.kind, spec.law.scale, float(spec.until), spec.method) == ("sparse", 1.0, 0.5, "flow")
