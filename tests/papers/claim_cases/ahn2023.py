"""How the claims of ahn2023 are tested."""

import numpy as np

from mesascope.papers.ahn2023 import _deep
from mesascope.theory import Construction
from mesascope.theory import ahn2023 as theory

from . import Case

SMALL = {"cases": [[2, 5, 2]], "prompts": 4}
DEEP = {"eigenvalues": [1.0, 0.25], "examples": 8, "layers": 2, "prompts": 4000, "spectra": 2000}


def nearly(patch):
    """A world in which the layers write a billionth too much."""
    right = theory.preconditioned_gradient_descent

    def wrong(*args):
        w_kq, w_pv = right(*args)
        return Construction(w_kq, w_pv * (1 + 1e-9))

    patch.setattr(theory, "preconditioned_gradient_descent", wrong)


def of_more_examples(patch):
    """The closed form is taken for one and a half times as many examples as there are."""
    right = theory.one_layer_preconditioner
    patch.setattr(theory, "one_layer_preconditioner", lambda sigma, n: right(sigma, 3 * n // 2))


def milder_covariance(patch):
    """The covariance that trained layers are held against has the roots of the eigenvalues."""
    right = _deep.covariance

    def wrong(settings):
        values, vectors = np.linalg.eigh(right(settings))
        return (vectors * values**0.5) @ vectors.T

    patch.setattr(_deep, "covariance", wrong)


def another_prior(patch):
    """Weights are drawn from N(0, I), not from N(0, Σ⁻¹)."""
    right = _deep.data
    patch.setattr(_deep, "data", lambda settings, prior: right(settings, "identity"))


CASES = {
    "ahn2023/lemma-1": Case(SMALL, nearly),
    "ahn2023/input-updates": Case(SMALL, nearly),
    "ahn2023/theorem-1": Case({"prompts": 5000}, of_more_examples),
    "ahn2023/theorem-3": Case(
        {**DEEP, "batch": 256, "steps": 1500, "cosine": 0.98, "loss_ratio": [0.8, 1.3]}, milder_covariance
    ),
    "ahn2023/theorem-4": Case({**DEEP, "batch": 128, "steps": 1500, "loss_ratio": [0.0, 0.5]}, another_prior),
}
