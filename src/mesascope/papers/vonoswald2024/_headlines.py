"""What the abstract of vonoswald2024 announces."""

from .._headline import Headline

HEADLINES = (
    Headline(
        "Training to predict the next token gives rise to gradient-based optimization of a principled objective.",
        ("proposition-1", "one-layer", "second-block"),
    ),
    Headline(
        "Deep models construct the data of the objective first, then solve it.",
        ("copying", "preconditioned-inputs", "compressed-depth", "proposition-2"),
    ),
    Headline(
        "The learned algorithm generalizes, and solves supervised few-shot tasks.",
        ("few-shot", "few-shot-exact"),
        "Softmax networks on tasks of 20 tokens; mesa layers on longer tasks were not tried.",
    ),
    Headline(
        "A new layer, the mesa layer, solves the optimization problem itself.",
        ("mesa-layer-is-ridge", "linear-attention-limit", "depth-and-mesa-layer"),
        "Language modelling was not tried.",
    ),
)
