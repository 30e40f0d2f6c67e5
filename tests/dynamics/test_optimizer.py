"""Optimizers by name against their formulas."""

from fractions import Fraction

import jax.numpy as jnp
import numpy as np
import optax
import pytest

from mesascope.dynamics import Optimizer

STEPS, PEAK, DECAY = 7, 0.05, 0.1
START = np.array([1.0, -2.0, 0.5])
SCALES = np.array([1.0, 3.0, 0.2])  # the gradient of Σ s_i θ_i²/2 is s θ


def _adam(theta, gradient, rate, n, memory, decay=0.0):
    m = memory["m"] = 0.9 * memory.get("m", 0) + 0.1 * gradient
    v = memory["v"] = 0.999 * memory.get("v", 0) + 0.001 * gradient**2
    m, v = m / (1 - 0.9 ** (n + 1)), v / (1 - 0.999 ** (n + 1))
    return theta - rate * (m / (np.sqrt(v) + 1e-8) + decay * theta)


def _adamw(theta, gradient, rate, n, memory):
    return _adam(theta, gradient, rate, n, memory, DECAY)


def _lion(theta, gradient, rate, n, memory):
    m = memory.get("m", 0)
    memory["m"] = 0.99 * m + 0.01 * gradient
    return theta - rate * (np.sign(0.9 * m + 0.1 * gradient) + DECAY * theta)


def _sgd(theta, gradient, rate, n, memory):
    return theta - rate * gradient


def _momentum(theta, gradient, rate, n, memory):
    v = memory["v"] = 0.9 * memory.get("v", 0) + gradient
    return theta - rate * (gradient + 0.9 * v)  # Nesterov's


def _rate(schedule, warmup, n):
    if n < warmup:
        return PEAK * n / warmup
    past = (n - warmup) / (STEPS - warmup)
    return PEAK * {"constant": 1, "linear": 1 - past, "cosine": (1 + np.cos(np.pi * past)) / 2}[schedule]


@pytest.mark.parametrize("warmup", [0, 3])
@pytest.mark.parametrize("schedule", ["constant", "cosine", "linear"])
@pytest.mark.parametrize("method", [_adam, _adamw, _lion, _sgd, _momentum])
def test_method_and_schedule_are_their_formulas(method, schedule, warmup):
    decay = DECAY if method in (_adamw, _lion) else 0.0
    name = method.__name__[1:]
    built = Optimizer(name, PEAK, schedule, warmup, weight_decay=decay).build(STEPS)
    theta, state = jnp.asarray(START), built.init(jnp.asarray(START))
    expected, memory = START, {}
    for n in range(STEPS):
        updates, state = built.update(theta * SCALES, state, theta)
        theta = optax.apply_updates(theta, updates)
        expected = method(expected, expected * SCALES, _rate(schedule, warmup, n), n, memory)
        # optax keeps numbers of steps and rates in single precision
        np.testing.assert_allclose(theta, expected, rtol=1e-6, atol=1e-7)


def test_clipping_clips_the_norm_and_leaves_smaller_gradients():
    built = Optimizer("sgd", 0.5, clip=1.0).build(10)
    large, small = jnp.array([3.0, -4.0]), jnp.array([0.3, -0.4])
    state = built.init(large)
    np.testing.assert_allclose(built.update(large, state)[0], [-0.3, 0.4], rtol=1e-12)
    np.testing.assert_allclose(built.update(small, state)[0], [-0.15, 0.2], rtol=1e-12)


def test_equal_optimizers_are_one_and_differing_ones_are_not():
    assert (
        Optimizer(learning_rate="1/100")
        == Optimizer(learning_rate=Fraction(1, 100))
        == Optimizer("adam", 0.01)
    )
    assert Optimizer("adam", 1).build(5) is Optimizer("adam", np.float64(1.0)).build(5)
    assert Optimizer("adam", 1).build(5) is Optimizer("adam", 1).build(6)  # a constant rate knows no end
    cosine = Optimizer("adam", 1, "cosine")
    assert cosine.build(5) is not cosine.build(6)
    assert cosine.build(5) is not Optimizer("adam", 2, "cosine").build(5)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "adamax"}, "method unknown value 'adamax'; did you mean 'adam'"),
        ({"schedule": "exponential"}, "schedule unknown value 'exponential'; use one of constant"),
        ({"learning_rate": 0}, "learning_rate must be greater than 0"),
        ({"learning_rate": float("inf")}, "learning_rate must be finite"),
        ({"warmup": -1}, "warmup must be at least 0"),
        ({"clip": 0.0}, "clip must be greater than 0"),
        ({"weight_decay": -0.1, "method": "adamw"}, "weight_decay must not be negative"),
        ({"weight_decay": 0.1}, "weight_decay adam has none; use method 'adamw'"),
    ],
)
def test_bad_parameters_speak(settings, message):
    with pytest.raises(ValueError, match=message):
        Optimizer(**settings)


def test_wrong_types_speak():
    with pytest.raises(TypeError, match="warmup must be an integer"):
        Optimizer(warmup=2.5)
    with pytest.raises(TypeError, match="learning_rate must be a number"):
        Optimizer(learning_rate=None)


def test_a_warm_up_longer_than_the_run_speaks():
    with pytest.raises(ValueError, match="warmup: 10 steps do not fit into a run of 10; take fewer"):
        Optimizer(warmup=10).build(10)
