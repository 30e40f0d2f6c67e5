"""How the claims of mahankali2024 are tested."""

from mesascope.papers.mahankali2024 import _linear_targets, _nonlinear_targets
from mesascope.theory import mahankali2024 as theory

from . import Case, scaled


def more_noise(patch):
    """Labels noisier than theory is told, by a hundredth."""
    right = _linear_targets.LinearRegression
    patch.setattr(
        _linear_targets,
        "LinearRegression",
        lambda dim, law, sigma, prior, noise: right(dim, law, sigma, prior, 1.01 * noise),
    )


CASES = {
    "mahankali2024/noisy-step": Case({"cases": [[2, 6, 0.5]], "starts": 2}, more_noise, traced=False),
    "mahankali2024/preconditioned-step": Case(
        {"starts": 2}, scaled(theory, "step_size", 1.001), traced=False
    ),
    # a step a tenth too long
    "mahankali2024/nonlinear-targets": Case(
        {"seeds": 6, "steps": 800, "prompts": 20_000},
        scaled(_nonlinear_targets.theory, "relu_step_size", 1.1),
        traced=False,
    ),
}
