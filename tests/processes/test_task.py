import tracemalloc
from fractions import Fraction

import jax
import numpy as np
import pytest

from mesascope.processes import FewShot, NextToken


def test_the_papers_task_has_equal_weights():
    task = NextToken(6)
    assert list(task.context_lengths) == [2, 3, 4, 5]
    assert list(task.support) == [2, 3, 4, 5]
    assert task.weights is None
    assert [task.weight(t) for t in task.context_lengths] == [1, 1, 1, 1]
    np.testing.assert_array_equal(task.weights_array(), np.ones(4))
    assert task.total_weight == 4


def test_mappings_and_sequences_of_weights_are_equal():
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


def test_by_default_only_the_last_query_has_a_weight():
    task = FewShot(3)
    assert task.weights is None
    assert task.support == (3,)
    assert task.total_weight == 1
    np.testing.assert_array_equal(task.weights_array(), [0, 0, 0, 1])
    assert task == FewShot(3, {3: 1}) == FewShot(3, [0, 0, 0, 1.0])
    assert task != FewShot(3, {3: 2})
    assert task != FewShot(4)


def test_equal_weights_of_all_queries():
    task = FewShot.every(3)
    assert task == FewShot(3, np.ones(4))
    assert task.support == (0, 1, 2, 3)
    assert task.total_weight == 4
    np.testing.assert_array_equal(task.weights_array(), np.ones(4))


def test_mappings_and_sequences_of_weights_of_queries_are_equal():
    by_mapping = FewShot(3, {3: 2, 0: "1/2"})
    assert by_mapping == FewShot(3, ["1/2", 0, 0, 2])
    assert hash(by_mapping) == hash(FewShot(3, [0.5, 0, 0, 2.0]))
    assert by_mapping.weights == ((0, Fraction(1, 2)), (3, 2))
    assert by_mapping.total_weight == Fraction(5, 2)
    np.testing.assert_array_equal(by_mapping.weights_array(), [0.5, 0, 0, 2])
    assert jax.tree.leaves(by_mapping) == []


@pytest.mark.parametrize(
    ("task", "text"),
    [
        (NextToken(100), "NextToken(T=100)"),
        (NextToken.last(100), "NextToken(T=100, w_99=1)"),
        (NextToken(5, [1, 2, 3]), "NextToken(T=5, w_2=1, w_3=2, w_4=3)"),
        (NextToken(7, [1, 2, 3, 4, 5]), "NextToken(T=7, 5 weights)"),
        (FewShot(20), "FewShot(N=20)"),
        (FewShot(20, {10: 1, 20: 2}), "FewShot(N=20, w_10=1, w_20=2)"),
        (FewShot.every(20), "FewShot(N=20, 21 weights)"),
    ],
)
def test_descriptions(task, text):
    assert task.describe() == text
    assert eval(repr(task)) == task


@pytest.mark.parametrize(
    ("kind", "arguments", "error", "message"),
    [
        (NextToken, (2,), ValueError, "horizon must be at least 3, got 2"),
        (NextToken, (10**30,), ValueError, "horizon must be at most 1000000000000000"),
        (NextToken, (100.0,), TypeError, "horizon must be an integer"),
        (
            NextToken,
            (5, [1, 1]),
            ValueError,
            r"weights has 2 numbers, expected 3, one for each context length 2 … 4",
        ),
        (NextToken, (5, np.ones((3, 1))), TypeError, r"weights\[0\] must be a number"),
        (NextToken, (5, "111"), TypeError, "weights must be a table from lengths to weights, or their list"),
        (NextToken, (5, 1.0), TypeError, "weights must be a table from lengths to weights, or their list"),
        (NextToken, (5, [1, -1, 1]), ValueError, r"weights\[1\] must not be negative, got -1"),
        (NextToken, (5, [1, float("nan"), 1]), ValueError, r"weights\[1\] must be finite"),
        (NextToken, (5, [1, None, 1]), TypeError, r"weights\[1\] must be a number"),
        (NextToken, (5, [0, 0, 0]), ValueError, "all weights are zero"),
        (NextToken, (5, {}), ValueError, "all weights are zero"),
        (NextToken, (5, {1: 1}), ValueError, "context lengths are 2 … 4, got 1"),
        (NextToken, (5, {5: 1}), ValueError, "context lengths are 2 … 4, got 5"),
        (NextToken, (5, {"two": 1}), TypeError, "'two' is not a number of tokens or examples"),
        (FewShot, (0,), ValueError, "examples must be at least 1, got 0"),
        (FewShot, (10**30,), ValueError, "examples must be at most 1000000000000000"),
        (FewShot, (3.0,), TypeError, "examples must be an integer"),
        (
            FewShot,
            (2, [1, 1]),
            ValueError,
            r"weights has 2 numbers, expected 3, one for each example count 0 … 2",
        ),
        (FewShot, (2, "111"), TypeError, "weights must be a table from lengths to weights, or their list"),
        (FewShot, (2, [1, -1, 1]), ValueError, r"weights\[1\] must not be negative, got -1"),
        (FewShot, (2, {0: float("inf")}), ValueError, "weights.0 must be finite"),
        (FewShot, (2, {}), ValueError, "all weights are zero"),
        (FewShot, (2, {3: 1}), ValueError, "example counts are 0 … 2, got 3"),
        (FewShot, (2, {-1: 1}), TypeError, "-1 is not a number of tokens or examples"),
    ],
)
def test_bad_tasks_are_refused(kind, arguments, error, message):
    with pytest.raises(error, match=message):
        kind(*arguments)


def test_weights_exist_only_within_the_horizon():
    for t in (1, 6):
        with pytest.raises(ValueError, match="context length must be at"):
            NextToken(6).weight(t)
    with pytest.raises(ValueError, match="horizon must be at least 3"):
        NextToken.last(2)
    with pytest.raises(ValueError, match="examples must be at least 1"):
        FewShot.every(0)
