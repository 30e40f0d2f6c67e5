from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import ortho_group

from mesascope.models import LinearAttentionStack, MesaLayer
from mesascope.processes import Gaussian, Uniform
from mesascope.theory import vonoswald2024


def sequence(dim, horizon, batch=2):
    return np.random.default_rng([dim, horizon]).normal(size=(batch, horizon, dim))


def moments(s, t):
    """C_t and the Gram matrix of the inputs after t tokens, as sums."""
    cross, gram = np.zeros((2, s.shape[-1], s.shape[-1]))
    for i in range(1, t):
        cross += np.outer(s[i], s[i - 1])
        gram += np.outer(s[i - 1], s[i - 1])
    return cross, gram


@pytest.mark.parametrize(("dim", "horizon"), [(1, 1), (1, 5), (3, 8)])
def test_a_layer_is_a_gradient_step_from_any_start(attention, dim, horizon):
    s = sequence(dim, horizon)
    start = np.random.default_rng(1).normal(size=(dim, dim))
    construction = vonoswald2024.gradient_step(start, 0.3)
    tokens = vonoswald2024.gradient_step_tokens(s, start)
    stream = np.asarray(attention([weights[None] for weights in construction], "1", "causal")(tokens))
    np.testing.assert_array_equal(stream[..., dim:], tokens[..., dim:])
    for b in range(len(s)):
        for t in range(1, horizon + 1):
            cross, gram = moments(s[b], t)
            phi = start - 0.3 * (start @ gram - cross)
            np.testing.assert_allclose(stream[b, t - 1, :dim], phi @ s[b, t - 1], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("regularization", [0.1, 2.0])
def test_a_mesa_layer_is_ridge_regression(regularization):
    s = sequence(3, 7)
    factors = vonoswald2024.ridge_factors(3)
    layer = LinearAttentionStack([MesaLayer(**factors._asdict(), regularization=regularization)])
    stream = np.asarray(layer(vonoswald2024.gradient_step_tokens(s, np.zeros((3, 3)))))
    for b in range(len(s)):
        for t in range(1, 8):
            cross, gram = moments(s[b], t)
            answer = cross @ np.linalg.solve(gram + np.eye(3) / regularization, s[b, t - 1])
            np.testing.assert_allclose(stream[b, t - 1, :3], answer, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("layers", [1, 2, 6])
def test_layers_are_descent_on_the_ridge_problem(attention, layers):
    dim, ridge, eta = 2, 1.5, 0.05
    s = sequence(dim, 6)
    stack = attention(vonoswald2024.ridge_by_layers(dim, layers, eta), "1", "causal")
    stream = np.asarray(stack(vonoswald2024.ridge_tokens(s, ridge)))
    for b in range(len(s)):
        for t in range(1, 7):
            cross, gram = moments(s[b], t)
            phi = np.zeros((dim, dim))
            for _ in range(layers):
                phi = phi - eta * (phi @ gram - cross + phi / ridge)
            np.testing.assert_allclose(
                stream[b, dim + t - 1, :dim], phi @ s[b, t - 1], rtol=1e-12, atol=1e-12
            )


def squared_errors(rng, dim, examples, step, noise, end):
    """‖ŷ − y‖²/d of one step on all neighbours, of many tasks with Gaussian inputs: pair by pair."""
    count = 20_000
    w = ortho_group.rvs(dim, size=count, random_state=rng)
    x = rng.normal(size=(examples + 1, count, dim))
    y = [np.einsum("bij,bj->bi", w, one) + noise * rng.normal(size=one.shape) for one in x]
    tokens = []
    for number in range(examples):
        tokens += [x[number], y[number]] + ([] if end is None else [np.broadcast_to(end, x[0].shape)])
    tokens.append(x[-1])
    answer = np.zeros((count, dim))
    for before, after in pairwise(tokens):
        answer += step * after * np.sum(before * x[-1], -1, keepdims=True)
    return np.mean((answer - y[-1]) ** 2, -1)


@pytest.mark.parametrize(
    "end", [None, np.zeros(3), np.array([0.5, -1.0, 0.2])], ids=["none", "zero", "other"]
)
def test_errors_of_few_shot_tasks_are_those_of_random_rotations(end):
    errors = squared_errors(np.random.default_rng(5), 3, 3, 0.1, 0.3, end)
    size = None if end is None else float(end @ end)
    formula = vonoswald2024.few_shot_error(Gaussian(1), 3, 3, 0.1, noise=0.3, end_token_square=size)
    assert abs(errors.mean() - float(formula.total)) < 4 * errors.std() / np.sqrt(len(errors))
    # what other pairs add is far above these intervals, unless the end token is 0
    added = float(formula.other_pairs)
    assert added == 0 if size == 0 else added > 10 * errors.std() / np.sqrt(len(errors))


def test_errors_of_few_shot_tasks_begin_at_that_of_the_answer_0():
    law = Uniform(1)
    assert vonoswald2024.few_shot_error(law, 4, 0, "1/2", noise="1/2").total == law.moment(2) + Fraction(1, 4)
    # one example in one dimension: (1 − η x²)², and η² times the pair (y, x)
    v, q = law.moment(2), law.moment(4)
    one = vonoswald2024.few_shot_error(law, 1, 1, 1)
    assert one.examples == v * (1 - 2 * v + q) and one.other_pairs == v * q


def test_the_mean_over_all_pairs_makes_few_shot_errors_rise_first_and_leaves_a_part_of_them():
    """The step of long sequences, 1/v, divided by the number of pairs: the numbers of the paper's page."""
    law = Uniform(1)
    v = law.moment(2)

    def left(examples, pairs, square):
        step = 1 / (v * pairs * examples)
        return vonoswald2024.few_shot_error(law, 10, examples, step, end_token_square=square).total / v

    assert left(1, 2, None) == Fraction(27, 5)
    # what is above the limits falls as 1/m, from a few times d
    assert 0 < left(10**6, 2, None) - Fraction(1, 4) < 1e-4
    assert 0 < left(10**6, 3, 0) - Fraction(4, 9) < 1e-4
