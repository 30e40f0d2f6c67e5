"""What the abstract of fu2024 announces."""

from .._headline import Headline

HEADLINES = (
    Headline(
        "Successive layers match iterations of Newton's method linearly; each middle layer adds about three.",
        ("transformer", "printed-steps"),
    ),
    Headline(
        "Matching one more layer takes exponentially more steps of gradient descent.",
        ("gradient-steps", "root-two", "depth"),
    ),
    Headline(
        "Transformers also learn on ill-conditioned data, where gradient descent struggles.",
        ("ill-conditioned",),
        "The two algorithms only: a deep transformer that is trained to its end takes days on two cores.",
    ),
    Headline(
        "Transformers can implement k iterations of Newton's method with O(k) layers.",
        ("newton-layers",),
        "Linear attention with k + 2 layers; the paper's own construction was not read.",
    ),
)
