"""What the abstract of edelman2024 announces."""

from .._headline import Headline

HEADLINES = (
    Headline(
        "Trained transformers form statistical induction heads: they predict by bigram counts of the context.",
        ("bayes", "named"),
    ),
    Headline(
        "Training passes from uniform predictions to unigrams of the context, then suddenly to bigrams.",
        ("phases", "saddle", "short-contexts"),
        "How sudden the last transition is has no claim.",
    ),
    Headline(
        "The simpler unigram solution may delay the bigram solution.",
        rest="It takes chains on which unigrams do not help; their training was not repeated.",
    ),
    Headline(
        "How the prior over Markov chains, and n-grams with n > 2, change learning.",
        rest="One Dirichlet prior and bigrams only.",
    ),
)
