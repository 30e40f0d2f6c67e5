"""The claims with proofs: they hold at small size, and in a wrong world nothing is proved that they could rest on."""

from fractions import Fraction

import pytest

from mesascope.papers import claims
from mesascope.papers.zheng2024 import _certified
from mesascope.processes import Gaussian, NextToken

SMALL = {
    "theorem-4.1-certified": {"cases": [["gaussian", 2, 6], ["one-hot", 2, 6]], "isolated": 1},
    "masked-limit-certified": {"dim": 3, "horizon": 10},
    "full-one-limit-certified": {"dim": 2, "horizon": 10},
    "signed-diagonals-certified": {"dim": 2, "horizon": 6},
    "global-minimum": {"horizon": 6, "starts": 4},
}


def checked(name):
    (claim,) = claims(f"zheng2024/{name}")
    return claim.check({**claim.settings["quick"], **SMALL[name]})


def longer_steps(patch):
    """Theory has products a hundredth larger than those of the limits."""
    for formula in ("limit_product", "masked_full_one_limit"):
        right = getattr(_certified.theory, formula)

        def wrong(*args, _right=right):
            return Fraction(_right(*args)) * Fraction(101, 100)

        patch.setattr(_certified.theory, formula, wrong)


def isolated_one_hot(patch):
    """What is called one-hot is Gaussian, whose minimum is isolated."""
    patch.setattr(_certified, "LAWS", {**_certified.LAWS, "one-hot": Gaussian})


def tokens_of_a_theorem(patch):
    """What is called full-one is Gaussian, where Theorem 4.1 names the end of the flow."""
    patch.setattr(_certified, "LAWS", {**_certified.LAWS, "full-one": Gaussian})


def another_landscape(patch):
    """Critical points are looked for at a horizon one longer."""
    right = _certified.critical_points

    def wrong(model, process, task, **settings):
        return right(model, process, NextToken(task.horizon + 1), **settings)

    patch.setattr(_certified, "critical_points", wrong)


def test_every_claim_with_a_proof_has_its_case():
    assert {f"zheng2024/{name}" for name in SMALL} == {claim.id for claim in _certified.CLAIMS}


@pytest.mark.parametrize("name", SMALL)
def test_proofs_verify_at_small_size(name):
    finding = checked(name)
    assert finding.verdict == "verified", (finding.measured, finding.details)


@pytest.mark.parametrize(
    ("name", "world"),
    [
        ("theorem-4.1-certified", longer_steps),
        ("theorem-4.1-certified", isolated_one_hot),
        ("masked-limit-certified", longer_steps),
        ("full-one-limit-certified", tokens_of_a_theorem),
        ("signed-diagonals-certified", longer_steps),
        ("global-minimum", longer_steps),
        ("global-minimum", another_landscape),
    ],
)
def test_wrong_worlds_refute(name, world, monkeypatch):
    world(monkeypatch)
    assert checked(name).verdict == "refuted"
