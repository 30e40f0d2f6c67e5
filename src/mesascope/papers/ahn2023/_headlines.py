"""What the abstract of ahn2023 announces."""

from .._headline import Headline

HEADLINES = (
    Headline(
        "The global minimum of one layer implements one step of preconditioned gradient descent.",
        ("theorem-1", "named"),
        "Compared with the lowest losses that searches find; the proof is the paper's.",
    ),
    Headline(
        "The preconditioner adapts to the input distribution and to the variance of few examples.",
        ("theorem-1",),
    ),
    Headline(
        "Some critical points of L layers implement L iterations of preconditioned gradient descent.",
        ("critical-points", "critical-points-proved", "theorem-3", "theorem-4"),
        "Two and three layers.",
    ),
)
