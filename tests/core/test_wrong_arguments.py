"""Arguments of no sensible type: a TypeError or ValueError in one short line; nothing is converted in silence."""

import jax
import numpy as np
import pytest

import mesascope as ms

LAYER = ms.LinearAttention.diagonal(2, 0.1, 0.2)
PROCESS, TASK = ms.DiagonalUnitary(ms.Gaussian(), dim=2), ms.NextToken(horizon=4)
LONG = "a\n\x1b[31m" * 1000
WRONG = {
    "text": "x",
    "long": LONG,
    "digits": "9" * 5000,
    "huge": 10**400,
    "ragged": [[1], [1, 2]],
    "object": object(),
    "key": jax.random.key(0),
}
KEY = jax.random.key(0)


def refused(call, *words):
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    text = str(caught.value)
    assert text.isprintable() and len(text) < 300 and all(word in text for word in words), text


@pytest.mark.parametrize("value", [None, 2.0, True, 0, -1, LONG, object(), KEY])
def test_what_is_no_dimension(value):
    refused(lambda: ms.step_size_transformer(value, 2, key=KEY), "dim")
    refused(lambda: ms.preconditioned_linear_transformer(value, 2, key=KEY), "dim")


@pytest.mark.parametrize("value", [None, *WRONG.values()])
def test_what_is_no_batch_of_problems_and_what_are_no_streams(value):
    refused(lambda: ms.linear_probe(value, value), "streams", "layer_streams")
    refused(lambda: ms.logit_lens(value, value), "streams", "layer_streams")
    refused(lambda: ms.layer_streams(lambda contexts: [contexts], value), "problems", "draw_problems")
    refused(lambda: ms.layer_progress(np.zeros((2, 1, 1, 1)), None, value), "problems", "draw_problems")


@pytest.mark.parametrize("value", WRONG.values(), ids=WRONG)
def test_what_is_no_array_of_numbers(value):
    refused(lambda: ms.Dense(value), "weights", "not an array of numbers")
    refused(lambda: ms.Estimate(value), "value", "not an array of numbers")
    refused(lambda: ms.Gaussian(value), "scale")
    refused(lambda: ms.DriftingRegression(2, covariance=value), "covariance")


@pytest.mark.parametrize(
    "value", [LONG, int("9" * 4000), np.ones((2, 2, 2))], ids=["text", "number", "array"]
)
def test_what_is_shown_of_a_value_is_short(value):
    refused(lambda: ms.LinearAttention(np.ones((4, 4)), np.ones((2, 4)), normalizer=value), "normalizer")
    refused(
        lambda: ms.LinearSelfAttention(w_kq=LAYER.w_kq[None], w_pv=LAYER.w_kq[None], context=value), "context"
    )
    refused(lambda: ms.LastEntry(value), "sign")
    refused(lambda: ms.gradient_flow(LAYER, PROCESS, TASK, solver=value), "solver")
    refused(lambda: ms.population_loss(LAYER, PROCESS, TASK, engine=value), "engine")
    refused(lambda: ms.population_loss(LAYER, PROCESS, value), "task")
    refused(lambda: ms.linear_transformer(2, 1, key=value), "key")
    refused(lambda: ms.conserved_quantities(LAYER, PROCESS, TASK, mask=value), "mask")
    refused(lambda: ms.InvariantManifold([value]), "directions")


@pytest.mark.parametrize("value", [True, "٣", np.inf, 10**400, 1e300], ids=str)
def test_numbers_are_not_converted_in_silence(value):
    refused(lambda: ms.ScipyLaw("norm", loc=value), "loc")
    if value != 1e300:
        refused(lambda: ms.factored_linear_attention(2, scale=value, key=KEY), "scale")
        refused(lambda: ms.multi_head_linear_attention(2, 1, scale=value, key=KEY), "scale")


@pytest.mark.parametrize("seed", [None, True, [], -1])
def test_a_search_has_one_seed(seed):
    refused(lambda: ms.critical_points(LAYER, PROCESS, TASK, starts=1, seed=seed), "seed")


def test_ones_that_are_no_integers():
    refused(lambda: ms.preconditioned_linear_transformer(2, 1, loops=True, key=KEY), "loops")
    refused(lambda: ms.LastEntry(True), "sign")
    refused(lambda: ms.prompt_linear_transformer(2, 1, key=KEY, start="x"), "start", "gradient-descent++")


@pytest.mark.parametrize("model", [None, "x", LONG, 1.5, [], np.zeros((0, 2)), PROCESS], ids=repr)
def test_what_has_no_weights_is_no_model(tmp_path, model):
    refused(lambda: ms.save_model(tmp_path / "a", model), "model: must be a model")
    refused(lambda: ms.export_safetensors(tmp_path / "a", model), "model: must be a model")
    refused(lambda: ms.gradient_flow(model, PROCESS, TASK), "model")
    assert list(tmp_path.iterdir()) == []
