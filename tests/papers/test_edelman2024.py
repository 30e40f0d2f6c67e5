"""The claims on the phases of transformers on Markov chains, judged with planted strategies."""

from dataclasses import replace

import equinox as eqx
import jax
import numpy as np
import pytest
from claim_cases.edelman2024 import ORDER, QUICK, planted

import mesascope as ms
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
    settings = _exact_flow._Saddle(horizon=5, width=3, layers=1, scale=0.7)
    model = _exact_flow._without_links(_exact_flow.transformer(settings, seed=0))
    objective = ms.Enumeration().objective(ms.MarkovChains(2), ms.NextToken(5))
    size = settings.width**2

    def loss(links):
        parts = links.reshape(2, 1, settings.width, settings.width)
        return objective(eqx.tree_at(_exact_flow._keys_and_queries, model, [*parts])).value

    links = np.zeros(2 * size)
    assert np.abs(jax.grad(loss)(links)).max() == 0
    curvatures = np.linalg.eigvalsh(jax.hessian(loss)(links))
    largest = curvatures.max()
    assert largest > 1e-4
    np.testing.assert_allclose(curvatures, -curvatures[::-1], atol=1e-12 * largest)
    np.testing.assert_allclose(curvatures[:3], -largest, rtol=1e-9)
    assert abs(curvatures[3]) < (1 - 1e-3) * largest
