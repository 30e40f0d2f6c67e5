"""Training sets: which prompts are drawn, and what is refused."""

import jax
import numpy as np
import pytest

import mesascope as ms
from mesascope.core import named_key
from mesascope.specs import SpecError
from mesascope.studies import TrainSpec

PROCESS = ms.LinearRegression(dim=2, noise=0.1)
SET = ms.TrainingSet(PROCESS, prompts=5, seed=3)


def rows(prompts):
    """Every prompt as one text of its numbers."""
    x, y = (np.asarray(part, np.float32) for part in prompts)
    return [one.tobytes() for one in np.concatenate([x.reshape(len(x), -1), y], 1)]


@pytest.mark.slow
def test_its_prompts_are_drawn_again_and_again():
    drawn = rows(SET.sample(jax.random.key(0), 4, 500))
    assert set(drawn) == set(rows(SET.table(4))) and len(set(drawn)) == 5
    counts = [drawn.count(one) for one in set(drawn)]
    assert all(abs(count - 100) < 4 * (500 * 0.2 * 0.8) ** 0.5 for count in counts)  # 4 standard deviations


@pytest.mark.slow
def test_the_set_comes_from_the_process_and_its_seed():
    x, y = SET.table(4)
    with jax.enable_x64(True):
        expected = PROCESS.sample(named_key(3, "training-set"), 4, 5)
    np.testing.assert_array_equal(x, expected.x)
    np.testing.assert_array_equal(y, expected.y)
    assert not set(rows(SET.table(4))) & set(rows(ms.TrainingSet(PROCESS, prompts=5, seed=4).table(4)))


@pytest.mark.slow
def test_it_is_the_same_in_single_precision_and_inside_of_compiled_code():
    other = ms.TrainingSet(PROCESS, prompts=5, seed=9)
    with jax.enable_x64(False):
        drawn = jax.jit(lambda key: other.sample(key, 3, 20))(jax.random.key(0))
        assert drawn.y.dtype == np.float32
    assert set(rows(drawn)) <= set(rows(other.table(3)))


@pytest.mark.slow
def test_a_set_of_prompts_whose_tasks_are_those_of_a_pool():
    pool = ms.TaskPool(ms.LinearRegression(dim=2), tasks=2)
    x, y = ms.TrainingSet(pool, prompts=6).table(3)
    answers = np.einsum("bnd,kd->bkn", x, pool.table)
    assert np.isclose(answers, y[:, None]).all(2).any(1).all()


def test_it_is_specified_in_a_file_and_trained_on():
    spec = TrainSpec.model_validate(
        {
            "process": {
                "kind": "training-set",
                "process": {"kind": "linear-regression", "dim": 2},
                "prompts": 4,
            },
            "examples": 3,
            "model": {"kind": "prompt-linear-transformer", "layers": 1},
            "steps": 2,
        }
    )
    process, _ = spec.build_data()
    assert process == ms.TrainingSet(ms.LinearRegression(dim=2), prompts=4)
    assert process.describe().startswith("TrainingSet(n=4, LinearRegression(dim=2")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"prompts": 0}, "prompts must be at least 1, got 0"),
        ({"process": SET}, "process must be a process of prompts, such as linear-regression, got"),
        ({"process": ms.DiagonalUnitary(ms.Gaussian(1), dim=2)}, "process must be a process of prompts"),
        ({"seed": -1}, "seed must be at least 0"),
    ],
)
def test_bad_values_are_refused(given, message):
    with pytest.raises(ValueError) as caught:
        ms.TrainingSet(**{"process": PROCESS, "prompts": 5} | given)
    assert message in str(caught.value)


def test_a_set_that_takes_too_much_memory_is_refused():
    with pytest.raises(
        SpecError, match=r"prompts: must take at most 2 GiB, 100000000 prompts take 11.2; give fewer"
    ):
        ms.TrainingSet(PROCESS, prompts=10**8).table(4)
