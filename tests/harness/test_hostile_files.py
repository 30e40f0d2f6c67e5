"""Files that are none, that lie about their size, and whose checksums were computed again: one line, no wait, no traceback."""

import io
import json
import os
import pickle
import signal
import zipfile

import jax
import netCDF4
import numpy as np
import pytest

import mutants
import stored_records as stored
from mesascope.cli import main
from mesascope.dynamics import CheckpointError, load_average, load_model, save_model
from mesascope.models import LinearAttention
from mesascope.processes._samples_file import read_samples
from mesascope.records import RecordError, read_checkpoint, read_dataset, write_checkpoint, write_dataset
from mesascope.records._certificate import json_lines
from mesascope.records._plain import MAX_DEPTH, parse_json
from mesascope.specs import SpecError
from mesascope.specs._fields import number
from mesascope.studies import CertifySpec, parse_spec, read_spec

MODEL = LinearAttention.gaussian(2, 0.3, key=jax.random.key(1))
DEEP = "[" * 200_000


@pytest.fixture(autouse=True)
def no_hang():
    def stop(*_):
        raise BaseException("it waited for 20 seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(20)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def _pipe(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(path)


def _folder(path):
    path.mkdir(parents=True)


COMMANDS = {
    "SPEC": ["loss", "{}"],
    "STUDY": ["sweep", "{}", "--store", "{}.store"],
    "certificate": ["certify", "--check", "{}"],
    "record": ["report", "{}", "--out", "{}.html"],
    "checkpoint": ["identify", "{}.json"],
    "samples": ["flow", "{}.json"],
}


@pytest.mark.parametrize("make", [_pipe, _folder])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_named_pipe_or_a_folder_in_the_place_of_a_file(tmp_path, capsys, command, make):
    path = tmp_path / {"checkpoint": "step-000000001.checkpoint", "samples": "s.npy"}.get(command, "file")
    make(path)
    data = {
        "law": {"kind": "empirical", "file": path.name},
        "dim": 2,
        "horizon": 5,
        "init": {"kind": "diagonal"},
    }
    if command == "checkpoint":
        data = {"process": {"kind": "linear-regression", "dim": 2}, "examples": 3}
        data["model"] = {"kind": "checkpoint", "path": path.name}
        (tmp_path / "spec.json").write_text("{}")
    path.with_name(f"{path.name}.json").write_text(json.dumps(data))
    status = main([word.format(path) for word in COMMANDS[command]])
    out, err = capsys.readouterr()
    assert (status, out, len(err.splitlines())) == (2, "", 1)


def test_a_pipe_of_the_shell_is_read(monkeypatch):
    reading, writing = os.pipe()
    os.write(writing, b"{}")
    os.close(writing)
    with pytest.raises(SpecError, match="missing; add it"):
        read_spec(f"/dev/fd/{reading}", CertifySpec)
    os.close(reading)


@pytest.mark.parametrize(
    "text", [DEEP, "[" * (MAX_DEPTH + 2) + "]" * (MAX_DEPTH + 2), '{"a":' * 900 + "1" + "}" * 900]
)
def test_nesting_has_a_limit(tmp_path, text):
    with pytest.raises(ValueError, match="nested more than"):
        parse_json(text)
    for name in ("a.json", "a.toml"):
        (tmp_path / name).write_text(text if name == "a.json" else f"a = {text}")
        with pytest.raises(SpecError):
            read_spec(tmp_path / name, CertifySpec)
    (tmp_path / "step-000000001.checkpoint").write_text(text + "\n")
    with pytest.raises(CheckpointError, match="first line is torn"):
        read_checkpoint(tmp_path / "step-000000001.checkpoint")


def test_the_lines_of_a_long_text_are_found_in_one_pass():
    rows = 100_000
    assert json_lines("[\n" + "1,\n" * rows + "1]")[(str(rows),)] == rows + 2


# Checkpoints whose checksum was computed again

LOG = {"steps": [1], "losses": [0.5], "evaluated": [], "values": [], "errors": []}
HEADERS = {
    "empty": {},
    "list": [],
    "number": 3,
    "weights": {"precision": "float64", "weights": []},
    "precision": {"precision": "float128", "weights": {}},
    "state": {"precision": "float64", "weights": {}, "state": "float64"},
    "log": {"log": {**LOG, "losses": ["low"]}},
    "length": {"log": {**LOG, "losses": []}},
    "unknown": {"log": {**LOG, "more": []}},
    "start": {"start": [1.0]},
    "deep": {"notes": {}, "deep": json.loads("[" * 300 + "]" * 300)},
}


@pytest.mark.parametrize("header", HEADERS.values(), ids=HEADERS)
def test_forged_headers_of_checkpoints(tmp_path, header, capsys):
    path = tmp_path / "step-000000001.checkpoint"
    write_checkpoint(path, header, b"")
    for load in (load_model, load_average):
        with pytest.raises(CheckpointError) as caught:
            load(path, MODEL)
        assert "\n" not in str(caught.value)
    assert main(["report", str(tmp_path), "--out", f"{tmp_path}/r.html"]) in (
        (0, 2) if header == {} else (2,)
    )
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("payload", ["empty", "short", "pickle", "archive", "lie"])
def test_forged_arrays_of_checkpoints(tmp_path, payload):
    save_model(tmp_path / "model", MODEL)
    header, arrays = read_checkpoint(tmp_path / "model")
    archive = io.BytesIO()
    np.savez(archive, a=np.zeros(3))
    lie = arrays.replace(b"(4, 4)", b"(4, 9)")
    contents = {"empty": b"", "short": arrays[:-9], "archive": archive.getvalue(), "lie": lie}
    contents["pickle"] = arrays.replace(b"<f8", b"|O8")[:128] + pickle.dumps(print)
    write_checkpoint(tmp_path / "forged", header, contents[payload])
    with pytest.raises(CheckpointError, match="its arrays are not those of its header"):
        load_model(tmp_path / "forged", MODEL)


def test_losses_that_are_no_numbers_leave_out_the_figure_only(tmp_path, capsys):
    header = {"log": {**LOG, "losses": [float("nan")]}, "step": 1}
    write_checkpoint(tmp_path / "step-000000001.checkpoint", header, b"")
    assert main(["report", str(tmp_path), "--out", f"{tmp_path}/r.html"]) == 1
    assert "not all finite numbers" in capsys.readouterr().err


# Arrays


def _npy(shape, descr="'<f8'", data=b"\0" * 64):
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00v\x00" + header.encode() + data


def _archive(compression):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        archive.writestr("a.npy", _npy((8,)))
    return file.getvalue()


NPY = {
    "size that lies": _npy((10**13,)),
    "negative size": _npy((-8,)),
    "many axes": _npy((1,) * 40),
    "objects": _npy((1,), "'|O'", pickle.dumps(print)),
    "table": _npy((4,), "[('a', '<f8'), ('b', '<f8')]"),
    "empty entries": _npy((10**12,), "'|V0'"),
    "code": _npy("(__import__('os').system('id'),)"),
    "deep": _npy("(" * 50 + ")" * 50),
    "archive": _archive(zipfile.ZIP_DEFLATED),
    "no archive": b"PK\x03\x04" + b"\0" * 100,
    "pickle": pickle.dumps([1.0, 2.0]),
    "short": _npy((8,))[:90],
    "nothing": b"",
}


@pytest.mark.parametrize("content", NPY.values(), ids=NPY)
def test_samples_that_are_no_array(tmp_path, content):
    (tmp_path / "s.npy").write_bytes(content)
    with pytest.raises(ValueError, match=r"npy: |\.npy |holds"):
        read_samples(tmp_path / "s.npy")


@pytest.mark.parametrize("cell", ["٣", "1_000", "１", "0x1"])
def test_cells_that_only_python_takes_for_numbers(tmp_path, cell):
    (tmp_path / "s.csv").write_text(f"1\n{cell}\n")
    with pytest.raises(ValueError, match=r"line 2: .* not a number"):
        read_samples(tmp_path / "s.csv")


@pytest.mark.parametrize("text", ["٣", " 1 ", "1\n", "\t1", "1 /\n3", "1_0", "½"])
def test_texts_that_are_no_numbers(text):
    with pytest.raises(SpecError, match="not a rational number"):
        number(text)


@pytest.mark.parametrize("text", ["٣", " 1 ", "1_0", "1.0"])
def test_flags_that_are_no_integers(text, capsys):
    assert main(["lab", "--port", text]) == 2
    assert "is not an integer" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["compressed", "never written", "foreign"])
def test_data_that_would_fill_the_memory(tmp_path, kind):
    path = tmp_path / "a.nc"
    with netCDF4.Dataset(path, "w") as data:
        data.createDimension("n", 10**12 if kind == "never written" else 10**6)
        variable = data.createVariable("x", "f8", ("n",), zlib=kind == "compressed")
        if kind != "never written":
            variable[:] = 0
    with pytest.raises(
        RecordError, match="not a data set" if kind == "foreign" else "more than the file has"
    ):
        read_dataset(path)


def test_data_that_were_changed_are_noticed_before_their_library_reads_them(tmp_path):
    path = tmp_path / "a.nc"
    write_dataset(path, {"x": ("n", np.arange(5.0)), "y": ((), 2.5)}, {"note": "as it was"})
    whole = path.read_bytes()
    for at in range(0, len(whole), 7):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
        if at < len(whole) - 86:  # the seal itself
            with pytest.raises(RecordError, match="its digest differs"):
                read_dataset(path)
    path.write_bytes(whole[:-86])
    with pytest.raises(RecordError, match="not a data set of mesascope"):
        read_dataset(path)


def test_a_long_text_among_short_ones_is_no_bomb(tmp_path):
    names = np.array([*"abc" * 300, "d" * 20_000])
    write_dataset(tmp_path / "a.nc", {"name": ("n", names)})
    assert (read_dataset(tmp_path / "a.nc")["name"].values == names).all()


def test_compressed_data_are_written_as_they_are(tmp_path):
    import xarray

    data = xarray.Dataset({"x": ("n", np.zeros(10**5), {}, {"zlib": True})})
    write_dataset(tmp_path / "a.nc", data)
    assert read_dataset(tmp_path / "a.nc").identical(data.drop_encoding())


@pytest.mark.parametrize(
    "make", [lambda n: {"x": [{}] * n}, lambda n: {"a" * 20 + str(i): i for i in range(n)}]
)
def test_large_tables_are_refused_in_time(make):
    with pytest.raises(SpecError):
        parse_spec(make(200_000), CertifySpec)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda path: stored.along(path), "along.json"),
        (lambda path: stored.certificate(path / "c.json"), "c.json"),
        (lambda path: stored.training(path), "spec.json"),
        (lambda path: stored.run_directory(path, stored.claim()), "claims/zheng2024/theorem-4.1.json"),
    ],
)
def test_a_record_that_claims_to_be_huge_is_not_read_into_the_memory(tmp_path, capsys, make, name):
    make(tmp_path)
    os.truncate(tmp_path / name, 2**40)
    what = tmp_path / name if name == "c.json" else tmp_path
    assert main(["report", str(what), "--out", f"{tmp_path}/r.html"]) in (1, 2)
    said = capsys.readouterr().err
    assert name in said and ("1099511627776 bytes" in said or "not a record of mesascope" in said)


def test_links_in_a_circle_are_told(tmp_path, capsys):
    folder = stored.store(tmp_path / "store")
    file = next(folder.glob("runs/*/*/trajectory.nc"))
    file.unlink()
    file.symlink_to(file.name)
    assert main(["runs", "verify", "--store", str(folder)]) == 1
    assert str(file.parent.name) in capsys.readouterr().out


def test_a_claim_of_deep_details_is_refused(tmp_path):
    folder = stored.run_directory(tmp_path, stored.claim())
    file = next(folder.rglob("theorem-4.1.json"))
    document = json.loads(file.read_text())
    document["content"]["details"] = json.loads('{"a":' * 100 + "1" + "}" * 100)
    file.write_bytes(mutants.sealed(document))
    assert main(["report", str(file), "--out", f"{tmp_path}/r.html"]) == 2
