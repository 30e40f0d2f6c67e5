"""What the abstract of zhang2025 announces."""

from .._headline import Headline

HEADLINES = (
    Headline(
        "With merged keys and queries training has two fixed points and one abrupt drop of the loss.",
        ("merged",),
    ),
    Headline(
        "A time course in closed form for certain data and starts.",
        ("merged-course",),
        "White inputs and multiples of the identity, derived here; the paper's class was not read.",
    ),
    Headline(
        "With separate keys and queries there are exponentially many fixed points.",
        ("fixed-points", "no-other-fixed-points"),
    ),
    Headline(
        "The loss goes from saddle to saddle, which scalar differential equations describe.",
        ("order", "predicted-times", "inverse-times", "low-rank"),
    ),
    Headline(
        "Training implements principal component regression in context, with more components over time.",
        ("order", "fixed-points"),
    ),
)
