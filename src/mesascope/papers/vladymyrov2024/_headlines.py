"""What the abstract of vladymyrov2024 announces."""

from .._headline import Headline

HEADLINES = (
    Headline(
        "Every layer of a linear transformer keeps a weight vector of an implicit regression: preconditioned gradient descent.",
        ("linear-models",),
    ),
    Headline(
        "On data with mixed noise levels linear transformers match or surpass many baselines.",
        (
            "two-layers",
            "three-layers",
            "three-layers-beside-ridge",
            "mixed-noise",
            "untuned-rivals",
            "categorical-noise",
        ),
    ),
    Headline(
        "Their algorithm has momentum and rescales adaptively to the noise.",
        ("diagonal-heads-nameless",),
        "That it is none of the known algorithms; momentum and rescaling are not isolated.",
    ),
)
