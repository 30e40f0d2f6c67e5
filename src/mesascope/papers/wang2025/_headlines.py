"""What the abstract of wang2025 announces."""

from .._headline import Headline

HEADLINES = (
    Headline(
        "Linear attention, state-space models, online learners and softmax attention solve regression at test time.",
        ("layers-are-solvers", "softmax-is-kernel-regression"),
        "Seven layers with a memory, and softmax attention.",
    ),
    Headline(
        "Linear attention fails to capture correlations between tokens.",
        ("orthonormal-keys", "correlated-keys"),
    ),
    Headline(
        "Normalizing queries and keys of softmax attention has a justification.",
        ("softmax-is-kernel-regression",),
        "That it is kernel regression for unit keys; not that normalizing helps.",
    ),
    Headline(
        "New higher-order generalizations of softmax attention.",
        rest="Not built here.",
    ),
)
