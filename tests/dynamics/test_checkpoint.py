"""Models in files: what is written is what is read, and what is damaged speaks."""

import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file

from mesascope.dynamics import CheckpointError, export_safetensors, load_model, save_model
from mesascope.models import LinearAttention, MultiHeadLinearAttention, prompt_transformer, token_transformer
from mesascope.records import RecordError

REAL = LinearAttention.gaussian(2, 0.3, key=jax.random.key(1))
COMPLEX = LinearAttention(REAL.w_kq * (1 + 2j), REAL.w_pv * (0.5 - 1j))
DEEP = token_transformer(3, 8, 2, 2, 5, key=jax.random.key(2))
NARROW = jax.tree.map(lambda w: w.astype(jnp.float32), REAL)


def _same(one, other):
    assert jax.tree.structure(one) == jax.tree.structure(other)
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        assert a.dtype == b.dtype and np.array_equal(a, b)


def _zeros(model):
    return jax.tree.map(jnp.zeros_like, model)


@pytest.mark.parametrize("model", [REAL, COMPLEX, DEEP, NARROW], ids=["real", "complex", "deep", "float32"])
def test_what_is_saved_is_what_is_loaded(tmp_path, model):
    path = tmp_path / "folders are made" / "model"
    save_model(path, model)
    _same(load_model(path, _zeros(model)), model)


def test_the_precision_is_that_of_the_file(tmp_path):
    save_model(tmp_path / "narrow", NARROW)
    _same(load_model(tmp_path / "narrow", REAL), NARROW)


def test_the_file_says_what_it_is(tmp_path):
    save_model(tmp_path / "model", REAL, {"spec": {"kind": "linear", "π": 3}})
    seal, header = (json.loads(line) for line in (tmp_path / "model").read_bytes().split(b"\n", 2)[:2])
    assert seal["format"] == "mesascope checkpoint 1"
    assert header["notes"] == {"spec": {"kind": "linear", "π": 3}}
    assert header["weights"]["model.w_kq"] == "float64[4, 4]"
    assert header["provenance"]["packages"]["jax"] == jax.__version__


OTHERS = {
    "model.w_kq": (LinearAttention.diagonal(3, 0.1, 0.1), r"float64\[4, 4\] there and float64\[6, 6\] here"),
    "model": (MultiHeadLinearAttention.gaussian(2, 1, 0.1, key=jax.random.key(0)), "LinearAttention there"),
    "model.normalizer": (LinearAttention(REAL.w_kq, REAL.w_pv, "t"), "'t-1' there and 't' here"),
}


@pytest.mark.parametrize("field", OTHERS)
def test_another_architecture_is_named(tmp_path, field):
    save_model(tmp_path / "model", REAL)
    like, values = OTHERS[field]
    with pytest.raises(CheckpointError, match=f"something else: {field} is {values}"):
        load_model(tmp_path / "model", like)


def test_real_weights_are_no_complex_ones(tmp_path):
    save_model(tmp_path / "model", REAL)
    with pytest.raises(CheckpointError, match=r"float64\[4, 4\] there and complex128\[4, 4\] here"):
        load_model(tmp_path / "model", COMPLEX)


def test_every_flipped_byte_is_noticed(tmp_path):
    path = tmp_path / "model"
    save_model(path, REAL)
    whole = path.read_bytes()
    header = whole.index(b"\n") + 1
    arrays = whole.index(b"\n", header) + 1
    assert 0 < header < arrays < len(whole) < 10_000
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(CheckpointError, match=r"damaged|first line is torn|truncated"):
            load_model(path, REAL)
    path.write_bytes(whole)
    _same(load_model(path, REAL), REAL)


def test_every_truncation_is_noticed(tmp_path):
    path = tmp_path / "model"
    save_model(path, REAL)
    whole = path.read_bytes()
    first = whole.index(b"\n")
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        expected = "first line is torn" if size < first else "is truncated, .* to go on from the one before"
        with pytest.raises(CheckpointError, match=expected):
            load_model(path, REAL)


@pytest.mark.parametrize("content", [b"", b"[]\n", b'{"format": "other"}\n', b"\xff\x00\n", b"PK\x03\x04"])
def test_other_files_are_no_checkpoints(tmp_path, content):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(CheckpointError, match="is not a checkpoint of this version"):
        load_model(tmp_path / "file", REAL)


def test_absent_files_and_folders_speak(tmp_path):
    with pytest.raises(CheckpointError, match=r"cannot be read .*name a checkpoint file"):
        load_model(tmp_path / "absent", REAL)
    with pytest.raises(CheckpointError, match=r"cannot be read .*name a checkpoint file"):
        load_model(tmp_path, REAL)


def test_a_save_that_fails_leaves_what_was_there(tmp_path):
    path = tmp_path / "model"
    save_model(path, REAL)
    before = path.read_bytes()
    with pytest.raises(TypeError):
        save_model(path, COMPLEX, {"no JSON": object()})
    with pytest.raises(RecordError, match=r"cannot write"):
        save_model(path / "below a file", REAL)
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


def test_something_without_weights_speaks(tmp_path):
    with pytest.raises(TypeError, match="must be a model with floating-point weights"):
        save_model(tmp_path / "model", eqx.nn.Identity())


@pytest.mark.slow
def test_safetensors_hold_every_weight_by_name(tmp_path):
    model = prompt_transformer(2, 8, 1, 2, 3, key=jax.random.key(0))
    export_safetensors(tmp_path / "model.safetensors", model)
    found = load_file(tmp_path / "model.safetensors")
    leaves = jax.tree.leaves(eqx.filter(model, eqx.is_inexact_array))
    assert len(found) == len(leaves)
    assert sum(tensor.size for tensor in found.values()) == sum(leaf.size for leaf in leaves)
    attention = model.network.layers[0].layers[0].layer.layer
    np.testing.assert_array_equal(found["network.layers[0].layers[0].layer.layer.w_k"], attention.w_k)
    np.testing.assert_array_equal(found["readout.dense.bias"], model.readout.dense.bias)


def test_safetensors_hold_complex_weights_in_two_parts_and_the_rest_as_metadata(tmp_path):
    path = tmp_path / "model.safetensors"
    export_safetensors(path, COMPLEX)
    found = load_file(path)
    assert sorted(found) == ["w_kq.imag", "w_kq.real", "w_pv.imag", "w_pv.real"]
    np.testing.assert_array_equal(found["w_kq.real"] + 1j * found["w_kq.imag"], COMPLEX.w_kq)
    with safe_open(path, "numpy") as file:
        metadata = file.metadata()
    assert metadata["model.normalizer"] == "'t-1'" and metadata["model.w_kq"] == "complex128[4, 4]"
    length = int.from_bytes(path.read_bytes()[:8], "little")
    header = json.loads(path.read_bytes()[8 : 8 + length])
    assert list(header["__metadata__"]) == sorted(header["__metadata__"])  # equal models give equal files


def test_a_model_in_half_precision_is_refused_before_it_is_written(tmp_path):
    half = jax.tree.map(lambda w: w.astype("bfloat16"), LinearAttention(np.eye(4), np.ones((2, 4))))
    with pytest.raises(ValueError, match="weights must all be in float32, or all in float64, got bfloat16"):
        save_model(tmp_path / "half", half)
    with pytest.raises(TypeError, match="notes: must be JSON values"):
        save_model(tmp_path / "notes", LinearAttention(np.eye(4), np.ones((2, 4))), {"b": object()})
    assert not list(tmp_path.iterdir())
