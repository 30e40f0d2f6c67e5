"""Full-batch descent."""

import numpy as np
import pytest

from mesascope import DiagonalUnitary, Gaussian, LinearAttention, MonteCarlo, NextToken, Uniform, descend
from mesascope.dynamics import Outcome
from mesascope.theory import zheng2024 as theory

PROCESS, TASK = DiagonalUnitary(Gaussian(1.0), 5), NextToken(100)
START = LinearAttention.diagonal(5, 0.1, 0.1)


def _products(run):
    return np.asarray(run.trajectory.w_kq)[:, 5, 0] * np.asarray(run.trajectory.w_pv)[:, 0, 0]


@pytest.mark.slow
def test_the_paper_setting_gives_the_known_numbers():
    run = descend(START, PROCESS, TASK, learning_rate=1e-4, steps=8)
    products = _products(run)
    np.testing.assert_allclose(products[[4, 8]], [0.0124464, 0.0154425], atol=5e-8)  # seven printed digits
    assert run.result is Outcome.FINISHED
    np.testing.assert_array_equal(run.steps, np.arange(9))


def test_is_the_recursion_of_the_closed_form():
    """a ← a − η b(αab − β), b likewise: α, β from theory, which shares no code with the engine."""
    alpha, beta = (float(x) for x in theory.flow_coefficients(PROCESS, TASK))
    a, b, rate, expected = 0.1, 0.1, 1e-4, []
    for _ in range(21):
        expected.append(a * b)
        pull = alpha * a * b - beta
        a, b = a - rate * b * pull, b - rate * a * pull
    run = descend(START, PROCESS, TASK, learning_rate=rate, steps=20)
    np.testing.assert_allclose(_products(run), expected, rtol=1e-12)


def test_records_loss_where_it_says():
    run = descend(START, PROCESS, TASK, learning_rate=1e-4, steps=100, saves=11)
    assert list(run.steps) == list(range(0, 101, 10))
    expected = [float(theory.diagonal_loss(PROCESS, TASK, float(c))) for c in _products(run)]
    np.testing.assert_allclose(run.loss, expected, rtol=1e-12)
    assert np.all(run.standard_error == 0)


def test_divergence_keeps_the_last_finite_weights():
    run = descend(START, PROCESS, TASK, learning_rate=10.0, steps=50)
    assert run.result is Outcome.DIVERGED
    assert "learning rate" in run.result.message
    assert np.isfinite(np.asarray(run.model.w_kq)).all()
    assert len(run.steps) == len(run.loss) < 51


@pytest.mark.slow
def test_sampled_descent_is_the_same_for_a_seed_and_near_the_exact_one():
    process, task = DiagonalUnitary(Uniform(1.5), 2), NextToken(10)
    start = LinearAttention.diagonal(2, 0.1, 0.1)
    run = lambda seed: descend(  # noqa: E731
        start, process, task, learning_rate=0.02, steps=50, engine=MonteCarlo(2000, seed, 500)
    )
    one, again, other = run(0), run(0), run(1)
    exact = descend(start, process, task, learning_rate=0.02, steps=50)
    np.testing.assert_array_equal(one.trajectory.w_kq, again.trajectory.w_kq)
    assert not np.array_equal(one.trajectory.w_kq, other.trajectory.w_kq)
    assert np.all(np.abs(one.loss[0] - exact.loss[0]) < 4 * one.standard_error[0])


def test_interrupting_keeps_what_was_computed():
    seen = []

    def stop(now):
        seen.append(now.done)
        if now.done >= 3:
            raise KeyboardInterrupt

    run = descend(START, PROCESS, TASK, learning_rate=1e-4, steps=100, progress=stop)
    assert run.result is Outcome.INTERRUPTED
    assert run.steps[-1] == 3 and len(run.loss) == 4


@pytest.mark.parametrize(
    "settings", [{"learning_rate": 0.0}, {"learning_rate": float("nan")}, {"steps": 0}, {"saves": 1}]
)
def test_bad_settings_speak(settings):
    (name,) = settings
    with pytest.raises(ValueError, match=name):
        descend(START, PROCESS, TASK, **{"learning_rate": 1e-4, "steps": 3, **settings})
