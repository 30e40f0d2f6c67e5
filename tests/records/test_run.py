import json
import random

import numpy as np
import pytest
import xarray as xr

from mesascope.records import RecordError, RunDirectory
from stored_records import claim, curves_figure


@pytest.fixture
def run(tmp_path):
    return RunDirectory.create(tmp_path / "run")


def test_claims_and_figures_read_back(run):
    assert run.write_claim(claim()) == "claims/zheng2024/theorem-4.1.json"
    run.write_claim(claim(id="zheng2024/example-4.1"))
    assert run.read_claim("zheng2024/theorem-4.1") == claim()
    assert [record.id for record in run.claims()] == ["zheng2024/example-4.1", "zheng2024/theorem-4.1"]
    assert run.write_figure("zheng2024/figure-1a", curves_figure()) == "figures/zheng2024/figure-1a.json"
    assert run.read_figure("zheng2024/figure-1a") == curves_figure()
    assert run.figures() == ["zheng2024/figure-1a"]
    assert run.figure_stem("zheng2024/figure-1.5") == run.path / "figures/zheng2024/figure-1.5"
    assert run.problems() == []


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128, np.complex64, np.int64, np.bool_])
def test_arrays_of_every_kind_read_back_exactly(run, dtype):
    generator = np.random.default_rng(0)
    values = generator.normal(size=(4, 3, 2)) + 1j * generator.normal(size=(4, 3, 2))
    values = (values if np.dtype(dtype).kind == "c" else values.real * 9).astype(dtype)
    times = np.linspace(0, 1, 4)
    path = run.write_data(
        "flow/one",
        {"time": ("time", times), "w_kq": (("time", "row", "column"), values), "last": ((), values.flat[0])},
        attrs={"law": "Gaussian(scale=1)", "dim": 5},
    )
    assert path == "data/flow/one.nc"
    data = run.read_data("flow/one")
    assert data["w_kq"].dtype == dtype and data["w_kq"].dims == ("time", "row", "column")
    assert np.array_equal(data["w_kq"].values, values) and data["last"].values == values.flat[0]
    assert np.array_equal(data.indexes["time"], times)
    assert data.attrs == {"law": "Gaussian(scale=1)", "dim": 5}
    assert run.data() == ["flow/one"]


def test_a_data_set_reads_back_identical(run):
    data = xr.Dataset(
        {
            "x": (("time", "name"), np.array([[1.0, np.nan], [np.inf, -0.0]]), {"units": "1"}),
            "empty": (("nothing",), np.zeros(0)),
        },
        coords={"name": ["a", "bé"], "time": ("time", [0.5, 1.5], {"units": "seconds"})},
        attrs={"title": "t"},
    )
    run.write_data("d", data)
    assert run.read_data("d").identical(data)
    assert "mesascope_format" not in data.attrs  # the caller's own object is left alone


def test_jax_arrays_can_be_stored(run):
    jnp = pytest.importorskip("jax.numpy")
    run.write_data("d", {"z": (("i",), jnp.array([1 + 2j, 3.0]))})
    assert run.read_data("d")["z"].values.tolist() == [1 + 2j, 3 + 0j]


def test_what_netcdf_cannot_hold_is_refused_and_leaves_nothing(run):
    with pytest.raises(RecordError, match=r"cannot write .*d\.nc"):
        run.write_data("d", {"x": (("i",), np.array([object()]))})
    with pytest.raises(RecordError, match=r"cannot write .*d\.nc"):
        run.write_data("d", {"x": (("i",), [1.0])}, attrs={"law": {"kind": "gaussian"}})
    with pytest.raises(ValueError, match="conflicting sizes"):
        run.write_data("d", {"x": (("i",), [1.0]), "y": (("i",), [1.0, 2.0])})
    assert not [path for path in run.path.rglob("*") if path.is_file()]


@pytest.mark.parametrize("name", ["", "../x", "a/../b", "/etc/x", "A", "a b", "a/", ".hidden", "a\n"])
def test_names_that_could_leave_the_folder_are_refused(run, name):
    for read in (run.read_claim, run.read_figure, run.read_data):
        with pytest.raises(ValueError, match="record name"):
            read(name)


def test_absent_records_say_so(run, tmp_path):
    for read in (run.read_claim, run.read_figure, run.read_data):
        with pytest.raises(RecordError, match=r"no (record|data) at"):
            read("a/b")
    elsewhere = RunDirectory(tmp_path / "nowhere")
    assert elsewhere.claims() == elsewhere.figures() == elsewhere.data() == elsewhere.problems() == []
    assert not elsewhere.path.exists()


def test_a_claim_is_reused_only_under_its_fingerprint_and_with_its_files(run):
    assert run.reusable_claim("zheng2024/theorem-4.1", "f") is None
    record = claim(files=(run.write_figure("f", curves_figure()),))
    run.write_claim(record)
    assert run.reusable_claim(record.id, "f") == record
    assert run.reusable_claim(record.id, "g") is None
    (run.path / "figures/f.json").unlink()
    assert run.reusable_claim(record.id, "f") is None


def torn_at_every_length(text):
    return [text[:length] for length in range(0, len(text) - 1, 97)]


def test_a_torn_claim_is_reported_and_counts_as_absent(run):
    record = claim()
    path = run.path / run.write_claim(record)
    for torn in torn_at_every_length(path.read_text()):
        path.write_text(torn)
        with pytest.raises(RecordError, match=r"is torn or no JSON .*; remove it and run again$") as caught:
            run.read_claim(record.id)
        assert "\n" not in str(caught.value)
        assert run.reusable_claim(record.id, "f") is None
        assert run.claims() == []
        assert len(run.problems()) == 1
    run.write_claim(record)  # running again replaces it
    assert run.problems() == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d["content"].update(decision="not met"), "was changed after it was written"),
        (lambda d: d.update(format="mesascope.claim/9"), "has format 'mesascope.claim/9', expected"),
        (lambda d: d.pop("sha256"), "not a file of mesascope"),
    ],
)
def test_changed_and_foreign_claims_are_refused(run, change, message):
    path = run.path / run.write_claim(claim())
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    with pytest.raises(RecordError, match=message):
        run.read_claim("zheng2024/theorem-4.1")


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"[]", b"null", b"[" * 100_000, b'{"id": 1}'])
def test_foreign_bytes_are_refused(run, content):
    path = run.path / run.write_claim(claim())
    path.write_bytes(content)
    with pytest.raises(RecordError):
        run.read_claim("zheng2024/theorem-4.1")


def test_a_record_under_another_name_is_refused(run):
    path = run.path / run.write_claim(claim())
    path.rename(path.with_name("theorem-4.2.json"))
    with pytest.raises(RecordError, match=r"holds claim 'zheng2024/theorem-4\.1'"):
        run.read_claim("zheng2024/theorem-4.2")


def test_torn_and_damaged_data_are_refused_or_equal(run):
    values = np.random.default_rng(1).normal(size=(50, 5, 5)) * (1 + 1j)
    path = run.path / run.write_data("d", {"w": (("time", "i", "j"), values)})
    whole = run.read_data("d")
    content = path.read_bytes()
    generator = random.Random(0)
    reported = 0
    for trial in range(60):
        damaged = bytearray(content)
        if trial % 2:
            del damaged[generator.randrange(len(damaged)) :]
        else:
            damaged[generator.randrange(len(damaged))] ^= 1 << generator.randrange(8)
        path.write_bytes(damaged)
        try:
            # A flipped bit in unused space of the file changes nothing; any other is an error.
            assert run.read_data("d").identical(whole)
            assert trial % 2 == 0
        except RecordError as error:
            reported += 1
            assert "\n" not in str(error) and str(path) in str(error)
    assert reported >= 30


def test_a_foreign_netcdf_is_refused(run):
    path = run.path / run.write_data("d", {"x": (("i",), [1.0])})
    xr.Dataset({"x": (("i",), [1.0])}).to_netcdf(path, engine="netcdf4")
    with pytest.raises(RecordError, match="not a data set of mesascope"):
        run.read_data("d")
    path.write_text("time,ab\n0,0.01\n")
    with pytest.raises(RecordError, match="torn, damaged or no NetCDF4"):
        run.read_data("d")
    assert len(run.problems()) == 1


def test_claims_that_may_not_be_listed_are_not_taken_for_none(run, monkeypatch):
    """As for another user; the superuser, who runs some tests, may list every folder."""
    run.write_claim(claim())
    assert run.holds_claims()

    def refuse(folder):
        raise PermissionError(13, "Permission denied", str(folder))

    monkeypatch.setattr("pathlib.Path.iterdir", refuse)
    with pytest.raises(PermissionError):
        run.holds_claims()
