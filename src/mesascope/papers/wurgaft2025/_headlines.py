"""What the abstract of wurgaft2025 announces."""

from .._headline import Headline

HEADLINES = (
    Headline(
        "A memorizing and a generalizing Bayesian predictor capture the strategies of models trained on mixtures of tasks.",
        ("bayes", "weights"),
        "Urns only; regression and classification were not tried.",
    ),
    Headline(
        "Posterior odds from loss and complexity predict models throughout training.",
        ("odds", "left-out", "constant-complexity"),
    ),
    Headline(
        "Strategies trade loss against complexity.",
        ("loss-gap", "constant-complexity"),
        "Here a complexity that ignores the number of tasks fits at least as well.",
    ),
    Headline(
        "The time until memorizing grows faster than the number of tasks.",
        ("superlinear",),
    ),
)
