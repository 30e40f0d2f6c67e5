"""Linear probes: known maps, unrelated targets, and streams that can only be memorized."""

from dataclasses import replace

import numpy as np
import pytest

from mesascope.probes import layer_streams, linear_probe
from mesascope.probes._ridge import PENALTIES, Split, ridge_maps, split_tasks

RNG_SEED = 7


def _fixed(streams):
    """A function that gives these streams, (batch, N + 1, width) each, at the query."""
    return lambda x, y: [stream[:, y.shape[1]] for stream in streams]


@pytest.fixture
def rng():
    return np.random.default_rng(RNG_SEED)


def test_an_affine_map_is_found_and_generalizes(prompts, rng):
    stream = 10 ** rng.uniform(-4, 4, 5) * rng.normal(size=(200, 5, 5)) + 3
    wanted = stream / np.abs(stream).mean((0, 1)) @ rng.normal(size=(5, 2)) - 1
    found = linear_probe(layer_streams(_fixed([stream]), prompts), prompts, wanted)
    # The least penalty, 1e-10, leaves 1e-20 of what the map explains.
    assert found.r_squared.value[0] > 1 - 1e-15 and found.r_squared.low[0] > 1 - 1e-15
    np.testing.assert_allclose(found.maps[0](stream)[0], wanted, rtol=1e-7, atol=1e-7)
    assert found.control.value[0] < 0.05 and found.selectivity.low[0] > 0.9


def test_noise_on_the_target_limits_the_score(many_prompts, rng):
    stream = rng.normal(size=(4000, 5, 4))
    signal = stream @ rng.normal(size=(4, 3))
    wanted = signal + np.sqrt(np.mean(signal**2) / 3) * rng.normal(size=signal.shape)
    found = linear_probe(layer_streams(_fixed([stream]), many_prompts), many_prompts, wanted)
    # A quarter of the variance is noise; 5000 held-out rows of three numbers: standard error 0.004.
    assert found.r_squared.value[0] == pytest.approx(0.75, abs=0.016)
    assert found.r_squared.high[0] - found.r_squared.low[0] < 0.04


def test_scores_equal_the_definition_on_held_out_tasks(prompts, rng):
    stream = rng.normal(size=(200, 5, 3))
    targets = stream[..., :1] + rng.normal(size=(200, 5, 1))
    uneven = replace(prompts, weights=np.array([0.1, 0.0, 0.2, 0.3, 0.4]))
    found = linear_probe(layer_streams(_fixed([stream]), uneven), uneven, targets, seed=3)
    split = split_tasks(200, 3)
    np.testing.assert_array_equal(found.held_out, split.held_out)
    read, wanted = found.maps[0](stream)[0][split.held_out], targets[split.held_out]
    left, spread = ((off[..., 0] ** 2).mean(0) for off in (read - wanted, wanted - wanted.mean(0)))
    assert found.r_squared.value[0] == pytest.approx(1 - left @ uneven.weights / (spread @ uneven.weights))
    np.testing.assert_allclose(found.each.value[0], (1 - left / spread)[[0, 2, 3, 4]])
    np.testing.assert_allclose(found.selectivity.value, found.r_squared.value - found.control.value)


def test_unrelated_targets_have_score_zero(prompts, rng):
    streams = layer_streams(_fixed([rng.normal(size=(200, 5, 20))]), prompts)
    found = linear_probe(streams, prompts, rng.normal(size=(200, 5, 2)))
    assert found.r_squared.value[0] < 0.02
    assert found.selectivity.low[0] < 0.03 and found.selectivity.high[0] > -0.03


def test_memorization_gives_no_score(prompts, rng):
    """Names and targets are the same at every position: a split by position allows memorization, one by task does not."""
    names = np.repeat(rng.normal(size=(200, 1, 60)), 5, 1)
    targets = rng.normal(size=(200, 1))
    found = linear_probe(layer_streams(_fixed([names]), prompts), prompts, targets)
    assert found.r_squared.value[0] < 0.1
    rows, known = names.reshape(-1, 60)[::2], np.repeat(targets, 5, 0)[::2]
    by_position = (
        names.reshape(-1, 60)[1::2] @ np.linalg.lstsq(rows, known)[0] - np.repeat(targets, 5, 0)[1::2]
    )
    assert 1 - np.mean(by_position**2) / targets.var() > found.r_squared.value[0] + 0.15


def test_the_control_of_identities_is_a_function_of_them(prompts, rng):
    symbols = rng.integers(0, 4, size=(200, 5))
    stream = np.eye(4)[symbols]
    targets = rng.normal(size=(200, 5, 2))
    found = linear_probe(layer_streams(_fixed([stream]), prompts), prompts, targets, identities=symbols)
    assert found.control.value[0] > 1 - 1e-9  # four symbols are told apart by a linear map
    assert found.selectivity.high[0] < -0.9
    hidden = layer_streams(_fixed([rng.normal(size=(200, 5, 4))]), prompts)
    assert linear_probe(hidden, prompts, targets, identities=symbols).control.value[0] < 0.05


def test_controls_have_the_shape_and_variance_of_the_target(rng):
    from mesascope.probes._linear_probe import _controls

    targets = rng.normal(size=(100, 4, 3)) * [1, 2, 3] + 5
    permuted = _controls(targets, None, 0)
    named = _controls(targets, rng.integers(0, 7, size=(100, 4)), 0)
    for control in (*permuted, *named):
        assert control.shape == targets.shape
        np.testing.assert_allclose(control.mean((0, 1)), targets.mean((0, 1)), rtol=1e-12)
        np.testing.assert_allclose(control.std((0, 1)), targets.std((0, 1)), rtol=1e-12)
    assert not np.array_equal(permuted[0], permuted[1]) and not np.array_equal(permuted[0], targets)


def test_scores_do_not_depend_on_units(prompts, rng):
    stream = rng.normal(size=(200, 5, 6))
    targets = stream[..., :1] + rng.normal(size=(200, 5, 1))
    units = 10.0 ** np.arange(-6, 6, 2)
    one, other = (
        linear_probe(layer_streams(_fixed([z]), prompts), prompts, targets) for z in (stream, stream * units)
    )
    np.testing.assert_allclose(one.r_squared.value, other.r_squared.value, rtol=1e-9)


def test_constant_entries_are_ignored(prompts, rng):
    stream = rng.normal(size=(200, 5, 3))
    padded = np.concatenate([stream, np.full((200, 5, 2), 0.1)], -1)
    one, other = (linear_probe(layer_streams(_fixed([z]), prompts), prompts) for z in (stream, padded))
    np.testing.assert_allclose(one.r_squared.value, other.r_squared.value, rtol=1e-9)


def test_ridge_is_that_of_its_normal_equations(rng):
    """Against the weighted normal equations of standardized entries, penalty by penalty."""
    z, y = rng.normal(size=(40, 3, 4)) * [1, 2, 3, 4] + 1, rng.normal(size=(2, 40, 3, 1))
    weights = np.array([0.5, 0.3, 0.2])
    split = split_tasks(40, 0)
    found = ridge_maps(z, y, weights, split)
    rows = np.tile(weights, 20) / 20
    x = z[split.training].reshape(-1, 4)
    mean = rows @ x
    scale = np.sqrt(rows @ (x - mean) ** 2)
    x = (x - mean) / scale
    for group in range(2):
        t = y[group, split.training].reshape(-1)
        errors = []
        for penalty in PENALTIES:
            b = np.linalg.solve(x.T * rows @ x + penalty * np.eye(4), x.T @ (rows * (t - rows @ t)))
            off = (z[split.validation] - mean) / scale @ b + rows @ t - y[group, split.validation, :, 0]
            errors.append((off**2 @ weights).mean())
            if penalty == found.penalties[group]:
                np.testing.assert_allclose(found.weights[group, :, 0], b / scale, rtol=1e-9)
                np.testing.assert_allclose(found.biases[group, 0], rows @ t - mean / scale @ b, rtol=1e-9)
        assert found.penalties[group] == PENALTIES[np.argmin(errors)]


def test_the_penalty_is_large_for_many_entries_and_little_signal(rng):
    z = rng.normal(size=(80, 1, 200))
    y = (z[..., :1] + 3 * rng.normal(size=(80, 1, 1)))[None]
    assert ridge_maps(z, y, np.ones(1), Split(*np.split(np.arange(80), [40, 60]))).penalties[0] >= 1


def test_tasks_are_split_once(rng):
    split = split_tasks(103, 1)
    assert sorted(np.concatenate(split)) == list(range(103))
    assert [len(part) for part in split] == [51, 25, 27]


def test_complex_streams_are_read_by_complex_maps(prompts, rng):
    stream = rng.normal(size=(200, 5, 3)) + 1j * rng.normal(size=(200, 5, 3))
    wanted = stream @ (rng.normal(size=(3, 2)) + 1j * rng.normal(size=(3, 2))) + 1j
    found = linear_probe(layer_streams(_fixed([stream]), prompts), prompts, wanted)
    assert found.r_squared.value[0] > 1 - 1e-15


def test_layers_of_descent_contain_its_steps(prompts, steps_of_descent, descent):
    """After layer 2 of three the prediction of two steps is in the stream; in the embedding it is not."""
    streams = layer_streams(steps_of_descent(3, 0.3), prompts)
    found = linear_probe(streams, prompts, descent(prompts, 0.3, 2))
    assert found.r_squared.value[2] > 1 - 1e-12 and found.r_squared.value[0] < 0.2
    assert found.each.value.shape == (4, 5) and list(found.lengths) == list(range(5))
    assert np.isnan(found.each.value[:, 0]).all()  # before the first example 0 is predicted for all tasks
    assert found.each.value[2, 4] > 1 - 1e-12 and found.selectivity.low[2] > 0.8
    assert str(found).count("\n") == 4 and "selectivity" in str(found)


@pytest.mark.parametrize(
    ("targets", "identities", "said"),
    [
        (np.ones((200, 4, 1)), None, "targets: must have shape"),
        (np.ones((200, 5, 1)), None, "are the same for all tasks"),
        (np.full((200, 5, 1), np.nan), None, "infinite or nan"),
        (None, np.zeros((200, 4), int), "identities: must have shape"),
        (None, np.zeros((200, 5), int), "are all the same"),
    ],
)
def test_bad_targets_and_identities_are_refused(targets, identities, said, prompts, rng):
    streams = layer_streams(_fixed([rng.normal(size=(200, 5, 2))]), prompts)
    with pytest.raises(ValueError, match=said):
        linear_probe(streams, prompts, targets, identities=identities)


def test_wrong_types_and_too_few_tasks_are_refused(prompts, sequences, rng):
    streams = layer_streams(_fixed([rng.normal(size=(200, 5, 2))]), prompts)
    with pytest.raises(TypeError, match="must be an array of numbers"):
        linear_probe(streams, prompts, np.full((200, 5, 1), "a"))
    with pytest.raises(TypeError, match="must be integers"):
        linear_probe(streams, prompts, identities=np.zeros((200, 5)))
    few = prompts.part(0, 100)
    short = layer_streams(_fixed([np.ones((100, 5, 2))]), few)
    with pytest.raises(ValueError, match="at least 40 tasks to be judged by, got 25"):
        linear_probe(short, few)
    with pytest.raises(ValueError, match="give the problems of the streams"):
        linear_probe(short, prompts)
