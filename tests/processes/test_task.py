import tracemalloc
from fractions import Fraction

import jax
import numpy as np
import pytest

from mesascope.processes import NextToken


def test_the_papers_task_has_equal_weights():
    task = NextToken(6)
    assert list(task.context_lengths) == [2, 3, 4, 5]
    assert list(task.support) == [2, 3, 4, 5]
    assert task.weights is None
    assert [task.weight(t) for t in task.context_lengths] == [1, 1, 1, 1]
    np.testing.assert_array_equal(task.weights_array(), np.ones(4))
    assert task.total_weight == 4


def test_mappings_and_sequences_say_the_same():
    by_mapping = NextToken(6, {5: 2, 3: "1/2"})
    assert by_mapping == NextToken(6, [0, "1/2", 0, 2]) == NextToken(6, np.array([0, 0.5, 0, 2.0]))
    assert hash(by_mapping) == hash(NextToken(6, [0, 0.5, 0, 2]))
    assert by_mapping.weights == ((3, Fraction(1, 2)), (5, 2))
    assert by_mapping.support == (3, 5)
    assert by_mapping.weight(3) == Fraction(1, 2)
    assert by_mapping.weight(4) == 0
    np.testing.assert_array_equal(by_mapping.weights_array(), [0, 0.5, 0, 2])
    assert by_mapping.total_weight == Fraction(5, 2)


def test_the_last_length_only():
    task = NextToken.last(6)
    assert task == NextToken(6, {5: 1})
    assert task.support == (5,)
    np.testing.assert_array_equal(task.weights_array(), [0, 0, 0, 1])


def test_weights_that_are_all_one_are_the_default():
    assert NextToken(5, [1, 1.0, "1"]) == NextToken(5)
    assert NextToken(3, {2: 1}) == NextToken.last(3) == NextToken(3)
    assert NextToken(5, [1, 1, 2]) != NextToken(5)
    assert NextToken(5, {2: 1, 3: 1}) != NextToken(5)
    assert NextToken(5) != NextToken(6)


def test_huge_horizons_need_no_memory():
    tracemalloc.start()
    try:
        for task in (NextToken(10**12), NextToken.last(10**12)):
            assert task.context_lengths[-1] == 10**12 - 1
            assert task.weight(10**12 - 1) == 1
            assert hash(task) == hash(task)
            assert "1000000000000" in task.describe()
            assert task.total_weight in (1, 10**12 - 2)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 100_000  # bytes


def test_a_task_may_be_static_under_jit():
    traces = []

    def total(task):
        traces.append(task)
        return task.weights_array().sum()

    jitted = jax.jit(total, static_argnums=0)
    assert jitted(NextToken(6, {3: 2})) == jitted(NextToken(6, [0, 2.0, 0, 0])) == 2
    assert len(traces) == 1
    assert jax.tree.leaves(NextToken(6)) == []


@pytest.mark.parametrize(
    ("task", "text"),
    [
        (NextToken(100), "NextToken(T=100)"),
        (NextToken.last(100), "NextToken(T=100, w_99=1)"),
        (NextToken(5, [1, 2, 3]), "NextToken(T=5, w_2=1, w_3=2, w_4=3)"),
        (NextToken(7, [1, 2, 3, 4, 5]), "NextToken(T=7, 5 weights)"),
    ],
)
def test_descriptions(task, text):
    assert task.describe() == text
    assert eval(repr(task)) == task


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((2,), ValueError, "horizon must be at least 3, got 2"),
        ((100.0,), TypeError, "horizon must be an integer"),
        ((5, [1, 1]), ValueError, r"weights has 2 numbers, expected 3, one for each context length 2 … 4"),
        ((5, np.ones((3, 1))), TypeError, r"weights\[0\] must be a number"),
        ((5, "111"), TypeError, "weights must be a table from lengths to weights, or their list"),
        ((5, 1.0), TypeError, "weights must be a table from lengths to weights, or their list"),
        ((5, [1, -1, 1]), ValueError, r"weights\[1\] must not be negative, got -1"),
        ((5, [1, float("nan"), 1]), ValueError, r"weights\[1\] must be finite"),
        ((5, [1, None, 1]), TypeError, r"weights\[1\] must be a number"),
        ((5, [0, 0, 0]), ValueError, "all weights are zero"),
        ((5, {}), ValueError, "all weights are zero"),
        ((5, {1: 1}), ValueError, "context lengths are 2 … 4, got 1"),
        ((5, {5: 1}), ValueError, "context lengths are 2 … 4, got 5"),
        ((5, {"two": 1}), TypeError, "'two' is not a number of tokens or examples"),
    ],
)
def test_bad_tasks_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        NextToken(*arguments)


def test_weights_exist_only_within_the_horizon():
    for t in (1, 6):
        with pytest.raises(ValueError, match="context length must be at"):
            NextToken(6).weight(t)
    with pytest.raises(ValueError, match="horizon must be at least 3"):
        NextToken.last(2)
