"""What the abstract of nichani2024 announces."""

from .._headline import Headline

HEADLINES = (
    Headline(
        "Gradient descent on a simplified two-layer transformer encodes the latent causal graph in its first layer.",
        ("adjacency", "construction"),
    ),
    Headline(
        "The gradient of attention encodes mutual information: its largest entries are the edges of the graph.",
        ("first-gradient",),
    ),
    Headline(
        "On in-context Markov chains the transformer learns an induction head.",
        ("induction-head", "full-model", "with-mlp"),
        "Of the models with all weights free only the first layer is looked at.",
    ),
    Headline(
        "Trained transformers recover a wide variety of causal structures.",
        ("adjacency",),
        "Graphs with one parent each. With two, our trainings found both for few seeds; for chains, weights are constructed.",
    ),
)
