"""Models that are constructed to run an algorithm, compared with the learner of that algorithm."""

import numpy as np
import pytest

from mesascope.core import named_key
from mesascope.learners import (
    DeltaRule,
    DiscountedRidge,
    GradientDescent,
    GradientDescentPlusPlus,
    MiniBatchGradientDescent,
    NormalizedLMS,
    OnlineGradientDescent,
    OnlineMomentum,
    PreconditionedGradientDescent,
    Ridge,
    predictions,
    prompt_examples,
    sequence_examples,
)
from mesascope.models import (
    DeltaNet,
    Gate,
    GatedDeltaNet,
    LastEntry,
    LinearAttention,
    LinearAttentionStack,
    LinearSelfAttention,
    Longhorn,
    MemoryLayer,
    MemorySizes,
    MesaLayer,
    MesaNet,
    PromptModel,
    StackedPrompt,
    Titans,
    memory_solver,
    prompt_memory_solver,
)
from mesascope.processes import DiagonalUnitary, Gaussian, LinearRegression, OrthogonalAR
from mesascope.theory import ahn2023, vonoswald2023

DIM, SIZE = 3, 6


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-11, atol=1e-11)


@pytest.fixture(scope="module")
def tokens():
    return DiagonalUnitary(Gaussian(), DIM).sample(named_key(0), SIZE, 4)


@pytest.mark.slow
def test_linear_attention_on_the_diagonal_is_one_step_with_step_size_ab(tokens):
    model = LinearAttention.diagonal(DIM, a=0.3, b=0.5)
    close(predictions(GradientDescent(0.15), *sequence_examples(tokens))[:, 1:], model.predictions(tokens))


@pytest.mark.slow
def test_blocks_of_full_matrices_are_a_preconditioner_and_a_map_of_outputs(tokens):
    rng = np.random.default_rng(0)
    inner, outer = rng.normal(size=(2, DIM, DIM))
    w_kq, w_pv = np.zeros((2 * DIM, 2 * DIM)), np.zeros((DIM, 2 * DIM))
    w_kq[DIM:, :DIM], w_pv[:, :DIM] = inner, outer
    model = LinearAttention(w_kq=w_kq, w_pv=w_pv)
    close(
        predictions(PreconditionedGradientDescent(inner, outer), *sequence_examples(tokens))[:, 1:],
        model.predictions(tokens),
    )


def test_a_mesa_layer_is_ridge_regression(tokens):
    # Tokens (x_t, x_{t−1}) contain an output and its input; queries are x_t
    pairs = np.concatenate([tokens, np.concatenate([np.zeros_like(tokens[:, :1]), tokens[:, :-1]], 1)], -1)
    now, before = np.eye(2 * DIM)[:DIM], np.eye(2 * DIM)[DIM:]
    layer = MesaLayer(
        w_k=before[None], w_q=now[None], w_v=now[None], w_p=np.eye(DIM)[None], regularization=2.5
    )
    close(predictions(Ridge(1 / 2.5), *sequence_examples(tokens)), layer(pairs))


SIZES = MemorySizes(2 * DIM, heads=1, key=DIM, value=DIM)
HALF, MOST, FEW = (Gate.constant(SIZES, value) for value in (0.5, 0.9, 0.1))
HALVES = Gate.constant(SIZES, 0.5, size=DIM)
NO_PENALTY = np.zeros((1, DIM))  # its logarithm: the penalty is 1


@pytest.mark.parametrize(
    ("rule", "learner"),
    [
        (DeltaNet(HALF), OnlineGradientDescent(0.5)),
        (GatedDeltaNet(HALF, MOST), DeltaRule(0.5, 0.9)),
        (Longhorn(HALVES), NormalizedLMS(1.0, 2.0)),
        (Titans(HALF, HALF, FEW), OnlineMomentum(0.5, 0.5, 0.1)),
        (MesaNet(Gate.constant(SIZES, 1 - 1e-15), MOST, NO_PENALTY), DiscountedRidge(1.0, 0.9)),
        (MesaNet(HALF, MOST, NO_PENALTY), DiscountedRidge(2.0, 0.9)),
        (MesaNet(HALF, Gate.constant(SIZES, 1 - 1e-15), NO_PENALTY), Ridge(2.0)),
        (MesaNet(HALF, MOST, NO_PENALTY, steps=DIM), DiscountedRidge(2.0, 0.9)),
    ],
    ids=lambda one: getattr(one, "name", type(one).__name__),
)
def test_rules_with_constant_gates_are_learners(tokens, rule, learner):
    assert_layer_is(rule, tokens, learner)


@pytest.mark.slow
def test_linear_attention_with_a_gain_is_one_step_on_a_mean():
    x, y = LinearRegression(DIM).sample(named_key(0), SIZE, 4)
    model = prompt_memory_solver(DIM, "linear-attention", gain=0.1, key=named_key(0))
    close(predictions(GradientDescent(0.1 * SIZE), *prompt_examples(x, y))[:, -1, 0], model(x, y[:, :-1]))


@pytest.mark.slow
def test_unit_keys_of_delta_net_are_normalized_for_every_offset():
    x, y = LinearRegression(DIM).sample(named_key(0), SIZE, 4)
    model = prompt_memory_solver(DIM, {"kind": "delta-net", "rate": 0.4}, keys="unit", key=named_key(0))
    unit = x / np.linalg.norm(x, axis=-1, keepdims=True)
    learner = NormalizedLMS(0.4 * 1.7, 0.7)
    close(predictions(learner, *prompt_examples(unit, y))[:, -1, 0], model(x, y[:, :-1]))


@pytest.mark.parametrize("batch", [1, pytest.param(2, marks=pytest.mark.slow), 3])
def test_mini_batches_of_a_memory_are_those_of_a_learner(batch):
    """The bias is trained, too: it is the weight of an input that is 1."""
    tokens = OrthogonalAR(Gaussian(), DIM).sample(named_key(0), SIZE, 4)
    rule = {"kind": "ttt-linear", "rate": 0.3, "mini_batch": batch, "norm": False}
    found = memory_solver(DIM, rule, key=named_key(0)).predictions(tokens)
    x, y, queries = sequence_examples(tokens)
    ones = np.ones((*x.shape[:-1], 1)), np.ones((*queries.shape[:-1], 1))
    extended = np.concatenate([x, ones[0]], -1), y, np.concatenate([queries, ones[1]], -1)
    close(found, predictions(MiniBatchGradientDescent(0.3, batch), *extended)[:, 1:])


@pytest.mark.parametrize("rule", ["delta-net", pytest.param("linear-attention", marks=pytest.mark.slow)])
def test_the_first_token_of_a_sequence_writes_nothing_whatever_the_features(rule):
    """elu(0) + 1 = 1: a key of the first token, which has no predecessor, would be no zero."""
    tokens = OrthogonalAR(Gaussian(), DIM).sample(named_key(0), 3, 2)
    model = memory_solver(DIM, rule, feature_map="elu", key=named_key(0))
    first, second = np.moveaxis(np.asarray(tokens)[:, :2], 1, 0)
    key, query = (np.where(z > 0, z + 1, np.exp(z)) for z in (first, second))
    rate = 0.5 if rule == "delta-net" else 1
    close(model.predictions(tokens)[:, 0], rate * second * np.sum(key * query, 1, keepdims=True))


def assert_layer_is(rule, tokens, learner):
    """A layer with free keys x_{t−1}, values x_t and queries x_t."""
    close(layer_of(rule)(pairs_of(tokens)), predictions(learner, *sequence_examples(tokens))[:, 1:])


def pairs_of(tokens):
    return np.concatenate([tokens[:, 1:], tokens[:, :-1]], -1)


def layer_of(rule):
    now, before = np.eye(2 * DIM)[:DIM], np.eye(2 * DIM)[DIM:]
    factors = {"w_k": before[None], "w_q": now[None], "w_v": now[None], "w_p": np.eye(DIM)[None]}
    return MemoryLayer(**factors, rule=rule, keys="free")


@pytest.mark.parametrize(
    ("construction", "learner"),
    [
        (vonoswald2023.gradient_descent(DIM, [0.2] * 3), GradientDescent(0.2, steps=3)),
        (
            vonoswald2023.gradient_descent_plus_plus(DIM, [0.2] * 3, [0.1] * 3),
            GradientDescentPlusPlus(0.2, 0.1, steps=3),
        ),
        (
            ahn2023.preconditioned_gradient_descent(np.stack([np.diag([0.1, 0.2, 0.3]) + 0.05] * 2)),
            PreconditionedGradientDescent(np.diag([0.1, 0.2, 0.3]) + 0.05, steps=2),
        ),
    ],
    ids=["gradient-descent", "gradient-descent++", "preconditioned"],
)
def test_constructions_for_prompts(construction, learner):
    layers = [LinearSelfAttention(*layer, "t-1", "examples") for layer in zip(*construction, strict=True)]
    model = PromptModel(StackedPrompt(DIM), LinearAttentionStack(layers), LastEntry(-1))
    x, y = LinearRegression(DIM, noise=0.5).sample(named_key(0), SIZE, 4)
    close(predictions(learner, *prompt_examples(x, y))[:, -1, 0], model(x, y[:, :-1]))
