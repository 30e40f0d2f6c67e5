"""How the claims of zhang2024 are tested."""

import numpy as np

from mesascope.papers.zhang2024 import _flows, _random_covariance, _shifts
from mesascope.processes import Rademacher
from mesascope.theory import zhang2024 as theory

from . import Case, scaled


def larger_gamma(factor):
    """A world in which theory has this multiple of Γ."""
    return scaled(theory, "gamma", factor)


def other_risk(patch):
    """Risks of the layer that are a thousandth too large."""
    right = _flows.flow_of

    class Larger:
        def __init__(self, flow):
            self.model, self.times, self.loss = flow.model, flow.times, 1.001 * flow.loss

    patch.setattr(_flows, "flow_of", lambda *args: Larger(right(*args)))


def shift_of_covariance(patch):
    """Inputs √c, not c times as large: the covariance is scaled by c."""
    right = _shifts.Gaussian
    patch.setattr(_shifts, "Gaussian", lambda scale: right(scale**0.5))


def other_factors(apart, same):
    """A world in which theory has these multiples of the two factors."""

    def break_it(patch):
        right = theory.random_covariance_factors

        def wrong(*moments):
            first, second = right(*moments)
            return apart * first, same * second

        patch.setattr(theory, "random_covariance_factors", wrong)

    return break_it


def one_covariance(patch):
    """All prompts have the same covariance, which a query tells nothing about: one factor for all queries."""
    patch.setattr(_random_covariance, "_SPREADS", {"exponential": Rademacher(1.0)})
    patch.setattr(_random_covariance, "_ends", _random_covariance._ends.__wrapped__)
    patch.setattr(_random_covariance, "_given", lambda query: np.eye(len(query)))


def saddles(patch):
    """Where flows end in a trap, a direction leads down."""
    right = _flows.stability

    class Saddle:
        kind = "saddle"

    patch.setattr(_flows, "stability", lambda *args: right(*args) and Saddle())


def answers_elsewhere(patch):
    """Trapped layers that answer through the inputs, too."""
    right = _flows.preconditioner_of
    patch.setattr(_flows, "preconditioner_of", lambda model: right(model) + 1e-5)


def one_end(patch):
    """No flow ends in a trap: the risks are those of the global minimum only."""
    right = _flows._risks
    patch.setattr(_flows, "_risks", lambda lam, examples: (right(lam, examples)[0], 10.0))


def other_preconditioner(patch):
    """What is compared is a preconditioner that is a tenth of a percent too large."""
    right = _shifts.preconditioner_of
    patch.setattr(_shifts, "preconditioner_of", lambda model: 1.001 * right(model))


def a_key_of_labels(patch):
    """The query attends to the labels of the examples, too."""
    right = _shifts.weights_of

    def wrong(model):
        w_kq, w_pv = right(model)
        return w_kq + 0.001 * np.eye(len(w_kq))[:, -1:], w_pv  # the last row, which reads labels

    patch.setattr(_shifts, "weights_of", wrong)


# flows of two coordinates and of one at equal numbers of examples share compiled programs
CASES = {
    "zhang2024/reduced-flow": Case(
        {"eigenvalues": [1.0, 0.4], "examples": 6}, larger_gamma(1.001), traced=False
    ),
    "zhang2024/limit": Case({"cases": [[[1.0, 0.4], 6]]}, larger_gamma(1.001), traced=False),
    "zhang2024/other-starts": Case(
        {"starts": 2}, other_risk, (saddles, answers_elsewhere, one_end), traced=False
    ),
    "zhang2024/test-risk": Case(
        {"eigenvalues": [1.0], "examples": [100, 1000], "lengths": 5},
        scaled(theory, "prediction_error", 1.001),
        (scaled(theory, "risk_floor", 1.001),),
        traced=False,
    ),
    "zhang2024/any-task-and-query": Case(
        {"eigenvalues": [1.0], "examples": [10, 20]}, other_preconditioner, (a_key_of_labels,), traced=False
    ),
    "zhang2024/covariate-shift": Case(
        {"eigenvalues": [1.0], "scales": [1.01]}, shift_of_covariance, traced=False
    ),
    "zhang2024/random-covariance": Case(
        {"dim": 1, "lengths": [10]}, scaled(theory, "random_covariance_step", 1.001), traced=False
    ),
    "zhang2024/random-covariance-factor": Case(
        {"dim": 1},
        other_factors(1.001, 1.0),
        (
            other_factors(1.0, 1.001),
            scaled(theory, "random_covariance_risk", 1.001),
            scaled(theory, "variance_given_query", 1.001),
        ),
        traced=False,
    ),
    "zhang2024/random-covariance-as-reported": Case({"dim": 1}, other_factors(1.001, 1.0), traced=False),
}
