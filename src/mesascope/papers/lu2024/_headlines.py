"""What the abstract of lu2024 announces."""

from .._headline import Headline

HEADLINES = (
    Headline(
        "Learning curves of linear attention are sharp where dimension, contexts, tasks and prompts grow in proportion.",
        ("finite-dimension", "stored-sweeps"),
    ),
    Headline(
        "The error has a double descent in the number of pretraining prompts.",
        ("double-descent",),
    ),
    Headline(
        "With few tasks the model memorizes, with many it learns in context: a phase transition.",
        ("map", "mean-of-the-pool"),
        "No claim says how sharp the transition is as d grows.",
    ),
    Headline(
        "Experiments with linear attention and nonlinear transformers agree with the theory.",
        ("full-layer",),
        "Nonlinear transformers were not trained.",
    ),
)
