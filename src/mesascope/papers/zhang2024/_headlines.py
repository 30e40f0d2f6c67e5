"""What the abstract of zhang2024 announces."""

from .._headline import Headline

HEADLINES = (
    Headline(
        "Gradient flow from a suitable start finds a global minimum, although the loss is not convex.",
        ("reduced-flow", "limit", "other-starts"),
    ),
    Headline(
        "The trained layer competes with the best linear predictor of the prompt.",
        ("test-risk",),
        "For noise-free linear targets; other distributions of prompts were not tried.",
    ),
    Headline(
        "It tolerates some distribution shifts, but not shifts of the covariates.",
        ("any-task-and-query", "covariate-shift"),
    ),
    Headline(
        "Trained on random covariances it is still brittle under mild covariate shifts.",
        ("random-covariance", "random-covariance-as-reported", "random-covariance-factor"),
    ),
    Headline(
        "Large nonlinear transformers are more robust to covariate shifts.",
        rest="They were not trained.",
    ),
)
