"""Step sizes of layers are recovered from predictions, by linear least squares and the roots of a polynomial."""

import numpy as np
import pytest
from scipy.optimize import least_squares

import mesascope as ms
from mesascope.learners import (
    GradientDescent,
    LayeredGradientDescent,
    LayeredGradientDescentPlusPlus,
    predictions,
)
from mesascope.probes import answers, identify
from mesascope.probes._evidence import Evidence
from mesascope.probes._fit_layers import LayersFitter
from mesascope.theory import ahn2023, vonoswald2023

PLAIN, CURVED = LayersFitter(LayeredGradientDescent), LayersFitter(LayeredGradientDescentPlusPlus)


def seen(learner, problems):
    return Evidence(problems, np.asarray(predictions(learner, problems.x, problems.y, problems.queries)))


def network(weights):
    """A transformer of linear attention with these weights, which reads prompts."""
    layers = [ms.LinearSelfAttention(*one, "t-1", "examples") for one in zip(*weights, strict=True)]
    return ms.PromptModel(ms.StackedPrompt(3), ms.LinearAttentionStack(layers), ms.LastEntry(-1))


@pytest.mark.slow
@pytest.mark.parametrize("data", ["prompts", "complex_sequences"])
def test_sizes_of_plain_steps_are_found(data, request):
    sizes = [0.1, 0.3, 0.9]
    found = PLAIN.fit([seen(LayeredGradientDescent(sizes), request.getfixturevalue(data))])
    assert found.integer == 3
    np.testing.assert_allclose(found.learner.step_sizes, sizes, rtol=1e-7)
    assert found.cost < 1e-20


@pytest.mark.slow
def test_sizes_and_corrections_of_two_trained_layers_are_found(prompts):
    """Two layers of ahn2023: multiples of I, where the second step is larger than the first, so that their order counts."""
    first, second, inputs = 0.765, 2.647, 0.355
    weights = ahn2023.preconditioned_gradient_descent(
        np.array([first * np.eye(3), second * np.eye(3)]), np.array([inputs * np.eye(3), np.zeros((3, 3))])
    )
    found = CURVED.fit([Evidence(prompts, answers(network(weights), prompts))])
    assert found.integer == 2
    np.testing.assert_allclose(found.learner.step_sizes, [first, second], rtol=1e-6)
    np.testing.assert_allclose(found.learner.curvatures, [inputs * first], rtol=1e-6)


@pytest.mark.slow
def test_where_no_real_sizes_fit_the_best_of_many_starts_is_found(prompts):
    """1 − s f(s) = 1 − 1.4 s + 0.79 s² has complex roots; the oracle is another optimizer on loops over steps."""
    parts = [seen(LayeredGradientDescent(sizes), prompts).answers for sizes in ([0.1, 0.2], [1.2, 1.3])]
    evidence = Evidence(prompts, (parts[0] + parts[1]) / 2)
    root = np.sqrt(evidence.weights / evidence.size)[..., None]

    def off(sizes):
        found = np.zeros_like(evidence.answers)
        for n in range(1, found.shape[1]):
            x, y, q = (np.asarray(one) for one in (prompts.x[:, :n], prompts.y[:, :n], prompts.queries[:, n]))
            weights = np.zeros((len(x), 1, 3))
            for size in sizes:
                left = y - np.einsum("bmp,bip->bim", weights, x)
                weights = weights + size / n * np.einsum("bim,bip->bmp", left, x)
            found[:, n] = np.einsum("bmp,bp->bm", weights, q)
        return (root * (found - evidence.answers)).ravel()

    rng = np.random.default_rng(0)
    found = PLAIN.fit([evidence])
    starts = rng.uniform(0, 1.5, (5, found.integer))
    best = min(2 * least_squares(off, start).cost for start in starts)
    assert 1e-9 < found.cost < best * (1 + 1e-4)


@pytest.mark.slow
def test_equal_sizes_are_gradient_descent_unless_others_fit_better(prompts):
    plain = GradientDescent(0.2, 3)
    evidence = seen(plain, prompts)
    disturbed = Evidence(prompts, evidence.answers * (1 + 1e-3 * np.cos(1e5 * evidence.answers)))
    special = PLAIN.fit([disturbed])._replace(learner=plain, integer=3)
    chosen = PLAIN.fit_beyond(special, PLAIN.fit([disturbed]), [disturbed])
    np.testing.assert_array_equal(chosen.learner.step_sizes, [0.2] * 3)
    other = [seen(LayeredGradientDescent([0.1, 0.2, 0.3]), prompts)]
    better = PLAIN.fit(other)
    assert PLAIN.fit_beyond(special, better, other) is better
    many = special._replace(learner=GradientDescent(0.2, 9))
    assert PLAIN.fit_beyond(many, better, other) is better  # more steps than layers are tried


@pytest.mark.slow
@pytest.mark.parametrize(
    ("weights", "learner", "sizes", "aliases"),
    [
        (vonoswald2023.gradient_descent(3, [0.5, 1.0]), "layered-gradient-descent", [0.5, 1.0], {"momentum"}),
        (
            vonoswald2023.gradient_descent_plus_plus(3, [0.3, 0.2], [0.1, 0.0]),
            "layered-gradient-descent++",
            [0.3, 0.2],
            set(),
        ),
    ],
)
def test_layers_with_sizes_of_their_own_are_named(weights, learner, sizes, aliases):
    """Two plain steps are also two steps with momentum: equal functions are one answer."""
    names = ["gradient-descent", "momentum", "gradient-descent++", "layered-gradient-descent"]
    names += ["layered-gradient-descent++", "chebyshev", "ridge", "zero"]
    found = identify(network(weights), ms.LinearRegression(3), ms.FewShot.every(8), tasks=200, learners=names)
    assert (found.verdict, found.candidates) == ("identified", (learner,))
    assert found.ranking[0].hyperparameters["step_sizes"] == pytest.approx(sizes, rel=1e-6)
    assert aliases <= set(found.ranking[0].contains)
    assert "[0." in found.headline
