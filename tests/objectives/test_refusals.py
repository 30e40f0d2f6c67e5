"""Input that engines refuse: one line that says what, where and the fix, and the engine that supports it."""

import os
import re
import subprocess
import sys
import time

import equinox as eqx
import jax
import numpy as np
import pytest

from mesascope.models import LinearAttention
from mesascope.objectives import Enumeration, ExactMoments, MonteCarlo, population_loss
from mesascope.processes import Constant, DiagonalUnitary, Gaussian, MomentError, NextToken, StudentT

MODEL = LinearAttention.diagonal(2, 0.1, 0.1)
PROCESS = DiagonalUnitary(Gaussian(1), 2)
TASK = NextToken(5)


class Repeat(eqx.Module):
    """A model that is not linear attention."""

    def predictions(self, tokens):
        return tokens[..., 1:, :]


class OtherProcess(eqx.Module):
    """A process that is not diagonal unitary."""

    def sample(self, key, horizon, batch):
        return jax.random.normal(key, (batch, horizon, 2))


def refusal(error, function):
    with pytest.raises(error) as caught:
        function()
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize("engine", [ExactMoments(), Enumeration()], ids=["exact", "enumeration"])
def test_models_other_than_linear_attention(engine):
    message = refusal(TypeError, lambda: population_loss(Repeat(), PROCESS, TASK, engine))
    assert re.fullmatch(
        rf"{type(engine).__name__} supports linear attention only, not Repeat; use MonteCarlo \('monte-carlo' in a SPEC\)",
        message,
    )
    assert np.isfinite(float(population_loss(Repeat(), PROCESS, TASK, MonteCarlo(10)).value))  # it can


EXHAUSTIVE = (
    "NextToken on DiagonalUnitary and symbols, and FewShot on a TrainingSet, not NextToken on OtherProcess"
)
SUPPORTED = (
    "NextToken on DiagonalUnitary, and FewShot on LinearRegression, its TaskPool, InWeightsRegression and mixtures of them, "
    "not NextToken on OtherProcess"
)


@pytest.mark.parametrize(
    ("engine", "supported"),
    [(ExactMoments(), SUPPORTED), (Enumeration(), EXHAUSTIVE)],
    ids=["exact", "enumeration"],
)
def test_processes_that_an_engine_does_not_support(engine, supported):
    message = refusal(TypeError, lambda: population_loss(MODEL, OtherProcess(), TASK, engine))
    assert (
        message == f"{type(engine).__name__} supports {supported}; use MonteCarlo ('monte-carlo' in a SPEC)"
    )
    assert np.isfinite(float(population_loss(MODEL, OtherProcess(), TASK, MonteCarlo(10)).value))


@pytest.mark.parametrize("engine", [ExactMoments(), Enumeration()], ids=["exact", "enumeration"])
def test_models_of_another_dimension(engine):
    model = LinearAttention.diagonal(3, 0.1, 0.1)
    message = refusal(ValueError, lambda: population_loss(model, PROCESS, TASK, engine))
    assert message == "model has dim 3, the process has dim 2; make them equal"


def test_tasks_and_engines_of_another_type():
    message = refusal(TypeError, lambda: population_loss(MODEL, PROCESS, 5))
    assert message == "task: must be a task such as NextToken(horizon=100) or FewShot(examples=20), got 5"
    message = refusal(TypeError, lambda: population_loss(MODEL, PROCESS, TASK, "exact"))
    assert message == "engine: must be ExactMoments(), Enumeration() or MonteCarlo(…), got 'exact'"


def test_models_of_another_dimension_are_refused_by_sampling_too():
    model = LinearAttention.diagonal(3, 0.1, 0.1)
    message = refusal(ValueError, lambda: population_loss(model, PROCESS, TASK, MonteCarlo(10)))
    assert "expected shape (…, t, 3)" in message


@pytest.mark.parametrize("df, order", [(5, 6), (6, 6), (4, 4), (1, 2)])
def test_laws_without_the_moments(df, order):
    process = DiagonalUnitary(StudentT(df), 2)
    message = refusal(MomentError, lambda: population_loss(MODEL, process, TASK))
    named = int(re.match(r"E x\^(\d+) does not exist for StudentT\(df=\d+, scale=1\)", message)[1])
    assert named >= df and "take df > 6" in message
    assert refusal(MomentError, lambda: population_loss(MODEL, process, TASK, Enumeration()))
    # a finite sample has a finite mean even if the expectation is infinite
    assert refusal(MomentError, lambda: population_loss(MODEL, process, TASK, MonteCarlo(10)))


def test_moments_beyond_the_range_of_floats():
    for law in (lambda: Gaussian(1e60), lambda: Constant([1e80, 1.0])):
        assert "must lie between 1e-50 and 1e+50 in size" in refusal(ValueError, law)


@pytest.mark.parametrize(
    "dim, horizon, law", [(5, 5, Gaussian(1)), (2, 10**4, Gaussian(1)), (1, 10**12, Constant(1))]
)
def test_grids_too_large_to_enumerate(dim, horizon, law):
    process, task = DiagonalUnitary(law, dim), NextToken(horizon)
    model = LinearAttention.diagonal(dim, 0.1, 0.1)
    began = time.process_time()
    message = refusal(ValueError, lambda: population_loss(model, process, task, Enumeration()))
    assert time.process_time() - began < 1  # refused before anything of that size is built
    assert f"dim {dim} and horizon {horizon} need " in message
    assert "use ExactMoments, or a smaller dim or horizon" in message
    assert np.isfinite(float(population_loss(model, process, task, ExactMoments()).value))


def test_an_objective_prepared_for_another_normalizer():
    objective = ExactMoments().objective(PROCESS, TASK, "t")
    message = refusal(ValueError, lambda: objective(MODEL))
    assert "normalizer 't-1'" in message and "prepared for 't'" in message
    other = LinearAttention(MODEL.w_kq, MODEL.w_pv, "t")
    assert float(objective(other).value) == float(population_loss(other, PROCESS, TASK).value)


def test_unknown_normalizers():
    assert "use one of t-1, t, 1" in refusal(
        ValueError, lambda: ExactMoments().objective(PROCESS, TASK, "t+1")
    )
    negative = LinearAttention(MODEL.w_kq, MODEL.w_pv, lambda t: 3.0 - t)
    assert "finite and positive, but is 0.0 at t = 3" in refusal(
        ValueError, lambda: population_loss(negative, PROCESS, TASK)
    )


WITHOUT_64_BITS = """
import mesascope as ms, jax
assert not jax.config.jax_enable_x64, "importing mesascope must not touch the configuration"
model = ms.LinearAttention.diagonal(2, 0.1, 0.1)
process, task = ms.DiagonalUnitary(ms.Gaussian(1), 2), ms.NextToken(5)
for engine in (None, ms.ExactMoments(), ms.Enumeration(), ms.MonteCarlo(1000, precision="float32")):
    try:
        print(float(ms.population_loss(model, process, task, engine).value))
    except ValueError as error:
        print(error)
try:
    ms.MonteCarlo(precision="float64").objective(process, task)
except ValueError as error:
    print(error)
"""


@pytest.mark.slow
def test_32_bit_mode():
    run = subprocess.run(
        [sys.executable, "-c", WITHOUT_64_BITS],
        env=os.environ | {"JAX_ENABLE_X64": "0"},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    default, exact, enumeration, sampled, precise = run.stdout.splitlines()
    fix = r"needs 64-bit precision, .*call mesascope\.enable_x64\(\) first, .*JAX_ENABLE_X64=1"
    assert default == exact
    assert re.match(f"ExactMoments {fix}", exact)
    assert re.match(f"Enumeration {fix}", enumeration)
    assert re.match(f"MonteCarlo\\(precision='float64'\\) {fix}", precise)
    expected = float(population_loss(MODEL, PROCESS, TASK).value)
    assert float(sampled) == pytest.approx(expected, rel=0.5)  # a thousand samples: the order of magnitude


def test_prepared_objectives_refuse_a_later_change_to_32_bit_mode():
    objectives = [engine.objective(PROCESS, TASK) for engine in (ExactMoments(), Enumeration())]
    jax.config.update("jax_enable_x64", False)
    try:
        for objective in objectives:
            assert "needs 64-bit precision" in refusal(ValueError, lambda o=objective: o(MODEL))
    finally:
        jax.config.update("jax_enable_x64", True)
