"""What the abstract of gatmiry2024 announces."""

from .._headline import Headline

HEADLINES = (
    Headline(
        "The global minimizer of the looped loss implements multi-step preconditioned gradient descent.",
        ("minimizer", "one-loop", "loops-are-steps", "named"),
        "Its matrix is not symmetric for two and three loops (`minimizer-is-not-symmetric`).",
    ),
    Headline(
        "The preconditioner adapts to the data distribution.",
        ("minimizer", "another-covariance"),
    ),
    Headline(
        "Gradient flow converges fast, by a gradient dominance condition.",
        ("flow-rate", "dominance-above-the-least-loss"),
    ),
    Headline(
        "Experiments on synthetic data agree.",
        ("extra-loops",),
    ),
)
