"""What the abstract of huang2024 announces."""

from .._headline import Headline

HEADLINES = (
    Headline(
        "On balanced features gradient descent reaches near-zero error in finite time.",
        ("balanced", "late-rate", "trained-layer"),
    ),
    Headline(
        "Its attention map goes through two phases.",
        ("phase-times",),
        "The paper's bounds could not be read.",
    ),
    Headline(
        "On imbalanced features the dominant ones are learned first, under-represented ones later.",
        ("stages", "order-of-features", "sampled-stages"),
    ),
    Headline(
        "Dominant features take one phase, under-represented ones four.",
        rest="The phases of imbalanced features are not timed.",
    ),
)
