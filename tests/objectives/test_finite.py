"""The exact loss on a training set."""

import jax
import pytest

import mesascope as ms
from mesascope.objectives import _finite

PROCESS, TASK = ms.LinearRegression(dim=2, noise=0.3), ms.FewShot(examples=4, weights={2: 1, 4: 2})
SET = ms.TrainingSet(PROCESS, prompts=13, seed=1)
LAYER = ms.prompt_linear_transformer(dim=2, layers=1, key=jax.random.key(0))
SOFTMAX = ms.prompt_transformer(dim=2, examples=4, layers=1, width=4, heads=1, key=jax.random.key(1))


def by_definition(model):
    """Σ_t w_t ½ (ŷ − y)², the mean over the set, prompt by prompt and in NumPy."""
    total = 0.0
    for x, y in zip(*SET.table(4), strict=True):
        for count, weight in ((2, 1), (4, 2)):
            # the query of `count` examples is the next input
            answer = float(model(x[: count + 1], y[:count]))
            total += weight * 0.5 * (answer - y[count]) ** 2
    return total / 13


@pytest.mark.slow
@pytest.mark.parametrize("model", [LAYER, SOFTMAX], ids=["linear", "softmax"])
@pytest.mark.parametrize("batch", [4, 13, 500])
def test_it_is_the_mean_over_all_prompts(monkeypatch, model, batch):
    monkeypatch.setattr(_finite, "_BATCH", batch)
    _finite.objective_on_a_set.cache_clear()
    loss = ms.Enumeration().objective(SET, TASK)(model)
    assert float(loss.standard_error) == 0.0
    assert float(loss) == pytest.approx(by_definition(model), rel=1e-12)
    _finite.objective_on_a_set.cache_clear()


def test_it_is_the_loss_by_default():
    exact = ms.Enumeration().objective(SET, TASK)(LAYER)
    assert float(ms.population_loss(LAYER, SET, TASK)) == float(exact)


@pytest.mark.slow
def test_sampling_from_the_set_agrees():
    exact = float(ms.Enumeration().objective(SET, TASK)(LAYER))
    sampled = ms.MonteCarlo(samples=4000).objective(SET, TASK)(LAYER)
    assert abs(float(sampled) - exact) < 4 * float(sampled.standard_error)


@pytest.mark.slow
def test_the_flow_on_few_prompts_fits_them_and_is_worse_on_new_ones():
    task = ms.FewShot(examples=4)
    few = ms.TrainingSet(PROCESS, prompts=6, seed=0)
    start = ms.prompt_linear_transformer(dim=2, layers=1, scale=0.3, key=jax.random.key(0))
    on_set = ms.gradient_flow(start, few, task, engine=ms.Enumeration(), until=60.0)
    new = ms.ExactMoments().objective(PROCESS, task)
    on_all = ms.gradient_flow(start, PROCESS, task, until=60.0)
    # exact losses of one seed: 0.30 and 8.2 of what they are compared with
    assert on_set.loss[-1] < 0.5 * float(ms.Enumeration().objective(few, task)(on_all.model))
    assert float(new(on_set.model)) > 1.1 * on_all.loss[-1]


def test_other_data_are_refused():
    with pytest.raises(
        TypeError,
        match="Enumeration supports NextToken on DiagonalUnitary and symbols, and FewShot on a TrainingSet",
    ):
        ms.Enumeration().objective(PROCESS, TASK)
