"""What the abstract of park2024 announces."""

from .._headline import Headline

HEADLINES = (
    Headline(
        "Models trained on a finite mixture of Markov chains reproduce known results on in-context learning.",
        ("diversity",),
        "Of these results only the effect of the number of chains.",
    ),
    Headline(
        "Four algorithms explain their behaviour: retrieval or inference, with unigrams or bigrams.",
        ("bayes", "mixture"),
    ),
    Headline(
        "The algorithms compete: the context size and the amount of training decide which one dominates.",
        ("unigrams-first", "uni-inf-first", "short-contexts"),
    ),
    Headline(
        "Competition explains why in-context learning is transient.",
        rest="It takes training far beyond the first end of learning: days at the paper's scale.",
    ),
)
