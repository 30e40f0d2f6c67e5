"""What the abstract of yang2024 announces."""

from .._headline import Headline

HEADLINES = (
    Headline(
        "The delta rule recalls associations better than additive linear attention.",
        ("repeated-keys", "random-keys"),
    ),
    Headline(
        "A chunkwise form by products of Householder matrices trains it in parallel over the sequence.",
        ("chunkwise-form",),
        "Its speed on accelerators is not measured.",
    ),
    Headline(
        "At 1.3 billion parameters it outperforms recent linear-time models, and hybrids outperform transformers.",
        rest="Language models of this size are out of reach here.",
    ),
)
