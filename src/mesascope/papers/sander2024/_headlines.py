"""What the abstract of sander2024 announces."""

from .._headline import Headline

HEADLINES = (
    Headline(
        "For augmented tokens and commuting orthogonal matrices one layer implements one gradient step.",
        ("augmented-step",),
    ),
    Headline(
        "For plain tokens the global minima of a diagonal multi-head layer are known.",
        ("unitary-minimiser", "rotation-minimiser", "fewer-heads"),
    ),
    Headline(
        "Heads are orthogonal to each other.",
        ("unitary-minimiser",),
        "As part of the minimiser; no claim of its own.",
    ),
    Headline(
        "Positional encoding captures trigonometric relations of the data.",
        ("rotation-minimiser", "rotation-ends", "positions-alone"),
    ),
    Headline(
        "Experiments on matrices that do not commute generalize the theory.",
        ("without-commuting", "softmax-and-mlp"),
        "Augmented tokens, mostly with Gaussian first tokens; layers on bare tokens were not trained on them.",
    ),
)
