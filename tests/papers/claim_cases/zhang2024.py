"""How the claims of zhang2024 are tested."""

from mesascope.papers.zhang2024 import _flows, _shifts
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


CASES = {
    "zhang2024/reduced-flow": Case({"eigenvalues": [1.0, 0.4], "examples": 4}, larger_gamma(1.001)),
    "zhang2024/limit": Case({"cases": [[[1.0, 0.5], 3]]}, larger_gamma(1.001)),
    "zhang2024/other-starts": Case({"starts": 2}, other_risk),
    "zhang2024/test-risk": Case({"eigenvalues": [1.0, 0.4], "lengths": 5}, scaled(theory, "risk", 1.0001)),
    "zhang2024/covariate-shift": Case({"eigenvalues": [1.0, 0.4], "scales": [1.01]}, shift_of_covariance),
    "zhang2024/random-covariance": Case({"dim": 1}, scaled(theory, "random_covariance_step", 1.001)),
}
