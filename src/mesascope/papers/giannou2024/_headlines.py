"""What the abstract of giannou2024 announces."""

from .._headline import Headline

HEADLINES = (
    Headline(
        "Linear attention with ReLU layers approximates Newton's method for logistic regression.",
        ("logistic-newton",),
        "The layers here have exact nonlinearities in place of ReLU networks that approximate them.",
    ),
    Headline(
        "The error ε takes only logarithmically more layers.",
        ("quadratic-convergence", "exact-law"),
        "Shown for matrix inversion.",
    ),
    Headline(
        "Two layers of linear attention carry out one step of Newton's iteration for matrix inversion.",
        ("newton-step",),
    ),
)
