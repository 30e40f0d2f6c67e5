"""What the abstract of mahankali2024 announces."""

from .._headline import Headline

HEADLINES = (
    Headline(
        "On isotropic Gaussian covariates the best layer carries out one step of gradient descent.",
        ("noisy-step",),
        "Compared with the lowest losses that searches find; the proof is the paper's.",
    ),
    Headline(
        "For other covariances of covariates and weights the step is preconditioned.",
        ("preconditioned-step",),
    ),
    Headline(
        "Nonlinear targets still lead to one step on linear least squares.",
        ("nonlinear-targets", "nonlinear-targets-named"),
        "One family of targets.",
    ),
)
