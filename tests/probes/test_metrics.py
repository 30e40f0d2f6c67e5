"""Metrics, compared with their definitions in NumPy, and the coverage of their intervals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mesascope.learners import GradientDescent, predictions
from mesascope.probes import (
    cosine,
    error_similarity,
    implicit_weights,
    prediction_distance,
    r_squared,
    sensitivities,
    sensitivity_cosine,
    sensitivity_distance,
)
from mesascope.probes._intervals import bootstrapped, ratio


def _pair(problems):
    rng = np.random.default_rng(1)
    f = np.asarray(predictions(GradientDescent(0.3), problems.x, problems.y, problems.queries))
    return f, 0.8 * f + 0.1 * rng.normal(size=f.shape)


@pytest.mark.slow
def test_distance_equals_its_definition(prompts):
    f, g = _pair(prompts)
    found = prediction_distance(f, g, prompts)
    assert found.pooled.value == pytest.approx(((f - g) ** 2).sum() / (f**2).sum(), rel=1e-12)
    at_4 = ((f - g) ** 2)[:, 4].sum() / (f**2)[:, 4].sum()
    assert found.each.value[list(found.lengths).index(4)] == pytest.approx(at_4, rel=1e-12)
    assert found.pooled.low < found.pooled.value < found.pooled.high


def test_distances_of_zero_and_of_the_model_itself(prompts):
    f, _ = _pair(prompts)
    assert prediction_distance(f, 0 * f, prompts).pooled.value == 1
    assert prediction_distance(f, f, prompts).pooled == (0, 0, 0)


def test_r_squared_equals_its_definition(prompts):
    f, g = _pair(prompts)
    wanted = 1 - ((f - g) ** 2).sum() / ((f - f.mean(0)) ** 2).sum()
    assert r_squared(f, g, prompts).pooled.value == pytest.approx(wanted, rel=1e-12)


def test_cosine_depends_on_direction_only(prompts):
    f, g = _pair(prompts)
    assert cosine(f, 3 * f, prompts).pooled.value == pytest.approx(1, abs=1e-12)
    assert cosine(f, -f, prompts).pooled.value == pytest.approx(-1, abs=1e-12)
    wanted = (f * g).sum() / np.sqrt((f**2).sum() * (g**2).sum())
    assert cosine(f, g, prompts).pooled.value == pytest.approx(wanted, rel=1e-12)


@pytest.mark.slow
def test_complex_cosines_are_those_of_pairs_of_reals(complex_sequences):
    f, g = _pair(complex_sequences)
    pairs = [np.concatenate([a.real, a.imag], -1) for a in (f, g)]
    assert cosine(f, g, complex_sequences).pooled.value == pytest.approx(
        cosine(*pairs, complex_sequences).pooled.value, rel=1e-12
    )


def test_similarity_of_errors_is_the_mean_cosine_of_residuals(prompts):
    f, g = _pair(prompts)
    one, other = ((a - np.asarray(prompts.targets))[..., 0] for a in (f, g))
    wanted = (one * other).sum(1) / np.sqrt((one**2).sum(1) * (other**2).sum(1))
    assert error_similarity(f, g, prompts).pooled.value == pytest.approx(wanted.mean(), rel=1e-12)


@pytest.mark.slow
def test_intervals_have_their_nominal_coverage():
    """A ratio of means of 200 normal tasks, 400 times: the count is binomial, four standard errors are 4 %."""
    rng, held = np.random.default_rng(0), 0
    for repeat in range(400):
        table = np.stack([2 + rng.normal(size=200), 4 + rng.normal(size=200)], -1)
        found = bootstrapped(table, lambda m: ratio(m[..., :1], m[..., 1:]), level=0.9, seed=repeat)
        held += bool(found.low[0] <= 0.5 <= found.high[0])
    assert abs(held / 400 - 0.9) < 4 * np.sqrt(0.9 * 0.1 / 400)


@pytest.mark.parametrize(
    ("tasks", "level", "said"),
    [(10, 0.5, "at least 20"), (39, 0.95, "at least 40 tasks"), (100, 1.0, "level must lie strictly")],
)
def test_too_few_tasks_for_an_interval_are_refused(tasks, level, said):
    with pytest.raises(ValueError, match=said):
        bootstrapped(np.ones((tasks, 1)), lambda m: m, level=level)


def test_sensitivities_by_jax_are_those_by_finite_differences(sequences, one_step):
    def in_jax(contexts):
        x, y, query = contexts[:, :-1], contexts[:, 1:], contexts[:, -1]
        return 0.3 * jnp.einsum("bim,bip,bp->bm", y, x, query) / x.shape[1]

    few = sequences.part(0, 50)
    exact, differences = sensitivities(in_jax, few, 4), sensitivities(one_step, few, 4)
    assert exact.shape == (50, 3, 5, 3)
    # steps of 1e-5: rounding/step + step² of a cubic
    np.testing.assert_allclose(differences, exact, atol=1e-8)
    assert sensitivity_distance(exact, differences).value < 1e-14
    assert sensitivity_cosine(exact, 2 * exact).value == pytest.approx(1, abs=1e-12)
    assert sensitivity_cosine(exact, -exact).value == pytest.approx(-1, abs=1e-12)
    assert sensitivity_distance(exact, 0.5 * exact).value == pytest.approx(0.25, rel=1e-12)


def test_functions_in_single_precision_take_larger_steps(sequences, one_step):
    few = sequences.part(0, 5)

    def single(contexts):
        return np.asarray(one_step(contexts.astype(np.float32)), np.float32)

    exact, found = sensitivities(one_step, few, 4), sensitivities(single, few, 4)
    # central differences lose ε^(2/3): 2.4e-5 of the entries
    np.testing.assert_allclose(found, exact, atol=1e-4 * np.abs(exact).max())


@pytest.mark.parametrize("n", [0, -1, 10, 1.5])
def test_sensitivities_and_weights_check_the_number_of_examples(sequences, one_step, n):
    for measure in (sensitivities, implicit_weights):
        with pytest.raises((ValueError, TypeError), match=r"n: must be in 1 … 8,|n must be"):
            measure(one_step, sequences, n)


def test_complex_sensitivities_are_those_of_pairs_of_reals(complex_sequences, one_step):
    def in_jax(contexts):
        x, y, query = contexts[:, :-1], contexts[:, 1:], contexts[:, -1]
        return 0.3 * jnp.einsum("bim,bip,bp->bm", y, x.conj(), query) / x.shape[1]

    few = complex_sequences.part(0, 20)
    exact = sensitivities(in_jax, few, 3)
    assert exact.shape == (20, 6, 4, 6)
    np.testing.assert_allclose(sensitivities(one_step, few, 3), exact, atol=1e-8)


def test_sensitivities_of_prompts_have_inputs_and_labels(prompts):
    def predict(x, y):
        return jnp.einsum("bi,bip,bp->b", y, x[:, :-1], x[:, -1])

    found = sensitivities(predict, prompts.part(0, 30), 4)
    x, y = (np.asarray(a)[:30] for a in prompts.sample)
    assert found.shape == (30, 1, 5, 4)
    np.testing.assert_allclose(found[:, 0, :4, 3], np.einsum("bip,bp->bi", x[:, :4], x[:, 4]), rtol=1e-12)
    np.testing.assert_allclose(found[:, 0, 4, :3], np.einsum("bi,bip->bp", y[:, :4], x[:, :4]), rtol=1e-12)
    assert not found[:, 0, 4, 3].any()


def test_implicit_weights_of_a_linear_answer_are_its_matrix(prompts):
    def predict(x, y):
        return np.einsum("bi,bip,bp->b", y, x[:, :-1], x[:, -1])

    found = implicit_weights(predict, prompts, 5)
    x, y = (np.asarray(a) for a in prompts.sample)
    np.testing.assert_allclose(
        found[:, 0], np.einsum("bi,bip->bp", y[:, :5], x[:, :5]), rtol=1e-9, atol=1e-12
    )
    with pytest.raises(ValueError, match="queries: must be between the dimension 3"):
        implicit_weights(predict, prompts, 5, queries=2)


def test_problems_count_the_lengths_of_the_task(sequences, prompts):
    assert list(sequences.lengths) == list(range(1, 9))
    assert list(prompts.lengths) == list(range(9))
    assert sequences.queries.shape == sequences.targets.shape == (200, 9, 3)
    assert jnp.array_equal(sequences.targets[:, :-1], sequences.queries[:, 1:])
    assert jax.tree.map(len, prompts.part(3, 7).sample) == (4, 4)
