"""What the abstract of zheng2024 announces."""

from .._headline import Headline

HEADLINES = (
    Headline(
        "Under a condition on the data, training ends at one step of gradient descent on least squares.",
        ("theorem-4.1", "theorem-4.1-certified", "one-product", "figure-1a"),
    ),
    Headline(
        "A stronger moment assumption is sufficient and necessary for recovering the distribution.",
        ("theorem-4.2", "proposition-4.1", "example-4.1", "recovery-gap"),
    ),
    Headline(
        "Beyond the first condition the trained layer is in general no plain gradient descent.",
        ("proposition-4.2", "masked-limit-certified", "full-one-limit"),
    ),
    Headline(
        "Simulations verify the theory.",
        ("authors-descent", "figure-1a", "figure-1b", "figure-1c"),
    ),
)
