"""What the abstract of vonoswald2023 announces."""

from .._headline import Headline

HEADLINES = (
    Headline(
        "One layer of linear attention can be one step of gradient descent on a regression loss.",
        ("proposition-1",),
    ),
    Headline(
        "Trained layers resemble gradient descent, and their weights match the construction.",
        ("trained-loss", "sensitivities", "interpolated-weights", "named"),
    ),
    Headline(
        "Deeper models surpass plain gradient descent by a correction of curvature.",
        ("gd-plus-plus", "looped-gd-plus-plus", "five-layers"),
        "That it is GD++ is shown for two applications of a layer; of five layers, that they surpass.",
    ),
    Headline(
        "With an MLP they solve nonlinear regression by linear models of deep features.",
        ("curved-functions",),
        "Sine waves, beside the best step in closed form; the paper's rival, a step behind a trained MLP, was not trained.",
    ),
    Headline(
        "On separate tokens a copying layer comes first, as in induction heads.",
        ("interleaved-one-step", "interleaved-copying"),
    ),
)
