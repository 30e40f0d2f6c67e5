"""The claims on the phases of transformers on Markov chains, judged with planted strategies."""

from dataclasses import replace
from itertools import product

import equinox as eqx
import jax
import numpy as np
import pytest
from claim_cases.edelman2024 import ORDER, QUICK, planted
from scipy.optimize import minimize

import mesascope as ms
from mesascope.papers import shipped_record
from mesascope.papers.edelman2024 import CLAIMS, _exact_flow

PHASES, NAMED = CLAIMS[-2:]
pytestmark = pytest.mark.slow


def _alternating(contexts):
    """The other symbol than the one before the last."""
    found = np.full((len(contexts), 2), 0.1)
    found[np.arange(len(contexts)), 1 - contexts[:, -2]] = 0.9
    return found


def judged(patch, claim, *strategies, seeds=5, **world):
    planted(*strategies, **world)(patch)
    return claim.check(replace(claim.settings["small"], **QUICK, seeds=seeds))


@pytest.mark.parametrize(
    ("world", "seeds", "decision"),
    [({}, 10, "met"), ({"from_seed": 1}, 9, "met"), ({"from_seed": 2}, 8, "undecided")],
)
def test_the_order_of_the_paper_is_met_by_nine_of_ten_seeds(monkeypatch, world, seeds, decision):
    found = judged(monkeypatch, PHASES, *ORDER, seeds=10, **world)
    assert (found.measured["seeds in this order"], found.decision) == (seeds, decision)


@pytest.mark.parametrize(
    ("order", "decision"),
    [
        (ORDER[:2], "undecided"),
        (ORDER[1:], "not met"),
        ((ORDER[2], *ORDER), "met"),  # as it was drawn, before it is uniform
        ((*ORDER, ORDER[0]), "not met"),
        ((ORDER[0], ORDER[1], ORDER[0], ORDER[2]), "not met"),
    ],
)
def test_other_orders(monkeypatch, order, decision):
    assert judged(monkeypatch, PHASES, *order).decision == decision


def test_times_lie_between_the_checkpoints(monkeypatch):
    """The models change after 1 and after 10 steps, before 3 and before 32."""
    found = judged(monkeypatch, PHASES, *ORDER)
    assert 1 < found.measured["step of unigram-posterior"] < 3
    assert 10 < found.measured["step of dirichlet-posterior"] < 32


def test_names(monkeypatch):
    assert judged(monkeypatch, NAMED, ORDER[2]).decision == "met"
    assert judged(monkeypatch, NAMED, ORDER[1]).decision == "not met"
    assert judged(monkeypatch, NAMED, _alternating).decision == "not met"


def test_keys_and_queries_that_are_zero_have_no_gradient_and_curvatures_of_both_signs():
    """L = L₀ + Σ ⟨G, W_Kᵀ W_Q⟩ + …: the curvatures are ±σ(G), each as many times as a key has entries."""
    settings = _exact_flow._Saddle(horizon=5, width=3, layers=2, scale=0.7)
    model = _exact_flow._with_uniform_attention(_exact_flow.transformer(settings, seed=0))
    objective = ms.Enumeration().objective(ms.MarkovChains(2), ms.NextToken(5))
    shape = (2, 2, 1, 3, 3)  # layer, key or query, head

    def loss(links):
        return objective(
            eqx.tree_at(_exact_flow._keys_and_queries, model, [*links.reshape(4, 1, 3, 3)])
        ).value

    links = np.zeros(shape)
    assert np.abs(jax.grad(loss)(links)).max() == 0
    sizes = []
    for layer in range(2):
        keys = links.copy()
        keys[layer, 0, 0] = np.eye(3)
        sizes += [*np.linalg.svd(np.asarray(jax.grad(loss)(keys))[layer, 1, 0])[1]] * 3
    expected = np.sort([*sizes, *(-np.array(sizes))])
    curvatures = np.linalg.eigvalsh(np.asarray(jax.hessian(loss)(links)).reshape(36, 36))
    assert expected.max() > 1e-4
    np.testing.assert_allclose(curvatures, expected, atol=1e-12)


def test_the_saddle_is_the_best_that_uniform_attention_can():
    """Without MLPs its logits are linear in the last symbol, the mean, and the mean of means: a convex regression."""
    claim = next(one for one in CLAIMS if one.id == "edelman2024/saddle")
    found = shipped_record(claim).measured
    horizon, chain = 10, ms.MarkovChains(2)
    data = []
    for t in range(2, horizon):
        sequences = np.array(list(product((0, 1), repeat=t + 1)))
        seen = 2 * sequences[::2, :t] - 1
        means = seen.cumsum(1) / np.arange(1, t + 1)
        features = np.stack([seen[:, -1], means[:, -1], means.mean(1)], 1)
        data.append((features, chain.probabilities_of(sequences).reshape(-1, 2)))

    def loss(weights):
        return sum(
            p[:, 0] @ np.logaddexp(0, x @ weights) + p[:, 1] @ np.logaddexp(0, -x @ weights) for x, p in data
        )

    least = minimize(loss, np.zeros(3), method="BFGS", options={"gtol": 1e-7}).fun
    assert list(found.values()) == pytest.approx(
        [least] * 2, abs=1e-9
    )  # gradients by differences leave 1e-12
