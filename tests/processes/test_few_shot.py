from fractions import Fraction

import jax
import numpy as np
import pytest

from mesascope.processes import FewShot


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


def test_mappings_and_sequences_say_the_same():
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
        (FewShot(20), "FewShot(N=20)"),
        (FewShot(20, {10: 1, 20: 2}), "FewShot(N=20, w_10=1, w_20=2)"),
        (FewShot.every(20), "FewShot(N=20, 21 weights)"),
    ],
)
def test_descriptions(task, text):
    assert task.describe() == text
    assert eval(repr(task)) == task


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((0,), ValueError, "examples must be at least 1, got 0"),
        ((3.0,), TypeError, "examples must be an integer"),
        ((2, [1, 1]), ValueError, r"weights has 2 numbers, expected 3, one for each example count 0 … 2"),
        ((2, "111"), TypeError, "weights must be a table from lengths to weights, or their list"),
        ((2, [1, -1, 1]), ValueError, r"weights\[1\] must not be negative, got -1"),
        ((2, {0: float("inf")}), ValueError, "weights.0 must be finite"),
        ((2, {}), ValueError, "all weights are zero"),
        ((2, {3: 1}), ValueError, "example counts are 0 … 2, got 3"),
        ((2, {-1: 1}), TypeError, "-1 is not a number of tokens or examples"),
    ],
)
def test_bad_tasks_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        FewShot(*arguments)


def test_every_checks_its_argument():
    with pytest.raises(ValueError, match="examples must be at least 1"):
        FewShot.every(0)
