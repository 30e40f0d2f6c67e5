"""Precision: float32 is the same whatever the mode, float64 is guarded, bfloat16 learns."""

import hashlib
import subprocess
import sys
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mesascope import DiagonalUnitary, Gaussian, LinearAttention, NextToken, train
from mesascope.dynamics import Optimizer, Outcome, save_model
from mesascope.models import prompt_linear_transformer
from mesascope.objectives import cast
from mesascope.processes import FewShot, LinearRegression

PROCESS, TASK = DiagonalUnitary(Gaussian(1.0), 2), NextToken(6)
START = LinearAttention.diagonal(2, 0.3, 0.3)
SETTINGS = {"optimizer": Optimizer("adam", 0.01), "steps": 20, "batch": 8, "held_out": 16, "average": 0.9}

NARROW = """
import hashlib, sys
import jax, numpy as np
from mesascope import DiagonalUnitary, Gaussian, LinearAttention, NextToken, train
from mesascope.dynamics import Optimizer, load_model, train_many

model, process, task = LinearAttention.diagonal(2, 0.3, 0.3), DiagonalUnitary(Gaussian(1.0), 2), NextToken(6)
settings = dict(optimizer=Optimizer("adam", 0.01), steps=20, batch=8, held_out=16, average=0.9)
run = train(model, process, task, **settings)
kept = [run.model.w_kq, run.model.w_pv, run.average.w_kq, run.losses, run.loss.value]
print(hashlib.sha256(b"".join(np.asarray(x).tobytes() for x in kept)).hexdigest())
for refused in (
    lambda: train(model, process, task, precision="float64", **settings),
    lambda: load_model(sys.argv[1], model),
):
    try:
        refused()
    except ValueError as error:
        print(error)
with jax.enable_x64(True):  # reaches the threads of the runs
    wide, = train_many(lambda key: model, process, task, [0], precision="float64", **settings)
print(wide.model.w_kq.dtype)
"""


@pytest.mark.slow
def test_float32_has_the_same_bits_in_32_bit_mode_and_float64_is_refused_there(tmp_path):
    save_model(tmp_path / "wide", START)
    run = train(START, PROCESS, TASK, **SETTINGS)
    kept = [run.model.w_kq, run.model.w_pv, run.average.w_kq, run.losses, run.loss.value]
    assert run.model.w_kq.dtype == np.float32
    ran = subprocess.run(
        [sys.executable, "-c", NARROW, str(tmp_path / "wide")], capture_output=True, text=True, check=False
    )
    digest, training, loading, dtype = ran.stdout.splitlines() or [ran.stderr]
    assert digest == hashlib.sha256(b"".join(np.asarray(x).tobytes() for x in kept)).hexdigest()
    assert (
        training.startswith("train(precision='float64') needs 64-bit precision")
        and "enable_x64()" in training
    )
    assert "wide, a checkpoint in float64, needs 64-bit precision" in loading
    assert dtype == "float64"


@pytest.mark.slow
def test_float64_keeps_64_bits_and_starts_like_float32():
    wide, narrow = (train(START, PROCESS, TASK, precision=p, **SETTINGS) for p in ("float64", "float32"))
    assert wide.model.w_kq.dtype == wide.average.w_kq.dtype == np.float64
    assert np.any(np.asarray(wide.model.w_kq) != np.asarray(wide.model.w_kq).astype(np.float32))
    # other random numbers are drawn in 64 bit: the runs agree in what they learn only
    assert abs(float(wide.loss.value - narrow.loss.value)) < 5 * float(
        wide.loss.standard_error + narrow.loss.standard_error
    )


@cache
def _prompts(precision):
    start = prompt_linear_transformer(3, 1, key=jax.random.key(0))
    return train(
        start, LinearRegression(3), FewShot(8), optimizer=Optimizer("adam", 0.02), steps=200, batch=64,
        held_out=2048, precision=precision,
    )  # fmt: skip


@pytest.mark.slow
def test_bfloat16_learns_with_weights_in_float32():
    half, full = _prompts("bfloat16"), _prompts("float32")
    layer = half.model.network.layers[0]
    assert layer.w_kq.dtype == np.float32
    kept = np.asarray(layer.w_kq)
    # steps below its resolution count
    assert np.any(kept != np.asarray(jnp.asarray(kept, jnp.bfloat16), np.float32))
    assert half.losses[-1] < 0.7 * half.losses[0]
    assert not np.array_equal(half.losses, full.losses)
    # samples and activations have 8 bits: losses agree to a few of its units in the last place
    np.testing.assert_allclose(half.loss.value, full.loss.value, rtol=0.03)


@pytest.mark.slow
def test_complex_samples_stay_complex64_under_bfloat16():
    """There is no complex type of two bfloat16: complex numbers keep 32 bits, real weights are rounded."""
    tokens = PROCESS.sample(jax.random.key(0), 6, 8)
    assert cast(tokens, "bfloat16").dtype == np.complex64
    assert cast(START, "bfloat16").w_kq.dtype == jnp.bfloat16
    half, full = (train(START, PROCESS, TASK, precision=p, **SETTINGS) for p in ("bfloat16", "float32"))
    assert half.result is Outcome.FINISHED and half.model.w_kq.dtype == np.float32
    assert not np.array_equal(half.losses, full.losses)
    np.testing.assert_allclose(half.losses, full.losses, rtol=0.01)  # weights are rounded to 2^-9


@pytest.mark.slow
def test_complex_weights_stay_complex():
    start = LinearAttention(START.w_kq * (1 + 1j), START.w_pv * (1 - 1j))
    run = train(start, PROCESS, TASK, **SETTINGS)
    assert run.model.w_kq.dtype == run.average.w_pv.dtype == np.complex64
    assert run.result is Outcome.FINISHED and np.abs(np.imag(run.model.w_kq)).max() > 0.1


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_the_mode_of_jax_is_left_as_it_was(precision):
    train(START, PROCESS, TASK, precision=precision, **SETTINGS)
    assert jnp.zeros(()).dtype == np.float64
