"""Certificates on regression prompts: what is proved agrees with closed forms, and what is false is not proved."""

from fractions import Fraction

import jax
import numpy as np
import pytest

from mesascope import (
    FewShot,
    LinearAttention,
    LinearRegression,
    NextToken,
    TaskPool,
    prompt_linear_transformer,
)
from mesascope.dynamics.certificates import (
    NotProvedError,
    PromptQuestion,
    certify,
    certify_near,
    prove_exactly,
    prove_isolated,
    statement,
)
from mesascope.objectives import PromptLayer
from mesascope.theory import zhang2025 as theory

EIGENVALUES, EXAMPLES = [Fraction(7, 10), Fraction(3, 10)], 9
PROCESS, TASK = LinearRegression(2, covariance=np.diag(EIGENVALUES)), FewShot(EXAMPLES)


def heads(count=1, **more):
    return prompt_linear_transformer(2, 1, count, key=jax.random.key(0), **more)


def question(model, process=PROCESS):
    return PromptQuestion(process, TASK, PromptLayer.of(model, 2))


def weights(asked, **entries):
    """θ that is 0 but for these entries of its arrays, given as (index, value)."""
    theta = [Fraction(0)] * asked.layer.size
    for name, places in asked.layer.places().items():
        for index, value in entries.get(name, ()):
            theta[places[index]] = Fraction(value)
    return theta


def learned(asked, which, factor=1):
    """Heads of rank one with v = −1, as the read-out has this sign, k = e_k and q = a_k e_k, times a factor."""
    best = theory.slopes(EIGENVALUES, EXAMPLES)
    return weights(
        asked,
        w_pv=[((h, 2, 2), -1) for h, _ in enumerate(which)],
        w_k=[((h, 0, k), 1) for h, k in enumerate(which)],
        w_q=[((h, 0, k), best[k] * factor) for h, k in enumerate(which)],
    )


@pytest.mark.parametrize("which", [(), (0,), (1,), (0, 1)])
def test_fixed_points_of_rank_one_heads_are_critical_with_the_errors_of_the_theory(which):
    asked = question(heads(2, rank=1))
    proved = prove_exactly(asked, learned(asked, which))
    assert 2 * proved.loss[0] == theory.fixed_point_error(EIGENVALUES, EXAMPLES, which) == 2 * proved.loss[1]
    assert proved.least == (len(which) == 2)
    assert proved.products == () and proved.theorem is None
    assert ("so that it is a global minimum" in statement(asked, proved)[3]) == proved.least
    with pytest.raises(NotProvedError, match="the gradient is not 0 at these weights"):
        prove_exactly(
            asked,
            learned(asked, which, 1 + Fraction(1, 10**9)) if which else [Fraction(1)] * asked.layer.size,
        )


def test_the_minimum_of_one_merged_head_is_isolated_and_has_the_least_loss():
    """Newton's method starts at rounded weights; with noise, and a covariance that is not diagonal."""
    process = LinearRegression(2, covariance=[["7/10", "1/5"], ["1/5", "3/10"]], noise="1/3")
    asked = question(heads(), process)
    sigma = np.array([[0.7, 0.2], [0.2, 0.3]])
    # E ββᵀ: the power of a label is tr Σ + σ²
    second = (EXAMPLES + 1) / EXAMPLES * sigma @ sigma + (1 + 1 / 9) / EXAMPLES * sigma
    best = np.linalg.solve(second, sigma)
    near = np.array(weights(asked, w_pv=[((0, 2, 2), -1)]), float)
    near[asked.layer.places()["w_kq"][0, :2, :2].ravel()] = best.ravel()
    certificate = certify_near(asked, near, 30)
    proved = certificate.proved
    assert certificate.isolated and proved.inertia == (8, 0, 1) and proved.unused == 9
    assert proved.loss[0] <= asked.least <= proved.loss[1] < proved.loss[0] + Fraction(1, 10**28)
    assert 2 * float(asked.least) == pytest.approx(1 + 1 / 9 - np.trace(sigma @ sigma @ best), rel=1e-13)
    moved = [centre + Fraction(1, 1000) for centre in certificate.centre]
    with pytest.raises(NotProvedError):
        prove_isolated(asked, moved, Fraction(1, 10**6))


def test_weights_that_share_what_is_learned_are_replaced_by_rational_ones():
    """Two heads of rank one at rotated factors of the best map, which no ball holds alone."""
    asked = question(heads(2, rank=1))
    best = np.diag([float(one) for one in theory.slopes(EIGENVALUES, EXAMPLES)])
    turn = np.array([[0.8, -0.6], [0.6, 0.8]])
    at, near = asked.layer.places(), np.zeros(asked.layer.size)
    near[at["w_pv"][:, 2, 2]] = -1
    near[at["w_k"][:, 0, :2]] = turn
    near[at["w_q"][:, 0, :2]] = turn @ best
    certificate = certify_near(asked, near, 20)
    assert not certificate.isolated and certificate.proved.least
    assert certificate.centre == tuple(learned(asked, (0, 1)))
    near[at["w_q"][0, 0, 0]] += 0.01
    with pytest.raises(NotProvedError):
        certify_near(asked, near, 20)


@pytest.mark.slow
def test_a_flow_is_certified():
    """One head of rank one for two eigenvectors: an irrational minimum, where the covariance has irrational axes."""
    process = LinearRegression(2, covariance=[["7/10", "1/5"], ["1/5", "3/10"]])
    certificate = certify(heads(1, rank=1, scale=0.3), process, TASK, digits=20)
    assert certificate.isolated and certificate.proved.inertia == (6, 0, 2)
    assert not certificate.proved.least


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            {"process": LinearRegression(2, covariance=[[0.7, 0], [0, 0.3]])},
            r"covariance\[0\]\[0\]: 0\.7 is a float",
        ),
        ({"process": LinearRegression(2, noise=0.1)}, r"noise: 0\.1 is a float"),
        (
            {"process": TaskPool(PROCESS, 4)},
            "must be a LinearRegression, got TaskPool; its loss is exact in floating point",
        ),
        ({"task": NextToken(5)}, "must be a FewShot"),
        ({"mask": "off-diagonal"}, "mask: is of sequences"),
        (
            {"model": prompt_linear_transformer(2, 2, key=jax.random.key(0))},
            "one layer of real linear attention",
        ),
        ({"model": LinearAttention.diagonal(2, 1.0, 1.0)}, "process: must be a DiagonalUnitary"),
    ],
)
def test_refused(change, told):
    arguments = {"model": heads(), "process": PROCESS, "task": TASK}
    with pytest.raises((TypeError, ValueError), match=told):
        certify(**arguments | change)
