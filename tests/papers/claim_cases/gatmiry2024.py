"""How the claims of gatmiry2024 are tested."""

from functools import partial

from mesascope.papers.gatmiry2024 import _dominance, _extra_loops, _identities, _minimizer
from mesascope.processes import LinearRegression
from mesascope.theory import Construction
from mesascope.theory import gatmiry2024 as theory

from . import Case, scaled


def nearly(patch):
    """A world in which the layer writes a billionth too much."""
    right = theory.looped_layer

    def wrong(*args):
        w_kq, w_pv = right(*args)
        return Construction(w_kq, w_pv * (1 + 1e-9))

    patch.setattr(theory, "looped_layer", wrong)


def symmetric_only(patch):
    """Minimizers are sought among symmetric matrices."""
    patch.setattr(_minimizer, "minimizer", partial(_of_any_kind, _minimizer.minimizer))


def _of_any_kind(right, moments, loops, seed, *, symmetric):
    return right(moments, loops, seed, symmetric=True)


def larger_test_inputs(patch):
    """Fresh prompts have inputs of 1.7 times the variance."""
    right = _extra_loops.regression

    def wrong(settings):
        rows = right(settings).covariance
        return LinearRegression(
            len(rows), covariance=[[1.7 * c for c in row] for row in rows], prior="inverse"
        )

    patch.setattr(_extra_loops, "regression", wrong)


CASES = {
    "gatmiry2024/loops-are-steps": Case({"cases": [[2, 5, 3]], "prompts": 4}, nearly),
    # Σ^{1/2} a hundred-thousandth too large
    "gatmiry2024/one-loop": Case(
        {"dim": 2, "examples": [6], "starts": 2}, scaled(_identities, "root_of_covariance", 1 + 1e-5)
    ),
    # prompts whose moments are a fifth too large
    "gatmiry2024/minimizer": Case(
        {"dim": 2, "loops": [2], "examples": [40, 160], "sets": 3, "prompts": 400},
        scaled(_minimizer, "drawn_moments", 1.2),
    ),
    "gatmiry2024/minimizer-is-not-symmetric": Case(
        {"dim": 2, "examples": 40, "fresh": 5000, "symmetric_within": [0.97, 1.05]}, symmetric_only
    ),
    "gatmiry2024/extra-loops": Case({"sets": 3, "prompts": 400, "fresh": 2000}, larger_test_inputs),
    # away from the least loss it holds, a slope of two fifths would not do
    "gatmiry2024/gradient-dominance": Case(
        {"loops": [1, 2], "fractions": [0.0, 0.5, 0.9]}, scaled(theory, "multiple_slope", 0.4)
    ),
    # inputs of a tenth of the variance: the inequality has no meaning without Σ = I
    "gatmiry2024/dominance-above-the-least-loss": Case(
        {"dim": 2, "loops": [1], "matrices": 8, "groups": 3, "prompts": 200},
        scaled(_dominance, "drawn_moments", 0.1),
    ),
}
