"""What differs from the setting of bordelon2025."""

from .._claim import Difference

DIFFERENCES = (
    Difference(
        "model",
        "one layer of linear attention, repeated L times (its reduced model, second-hand); finite width",
        "L layers of linear attention that are steps of gradient descent, each of its own size; unlimited width",
    ),
    Difference(
        "data",
        "isotropic, of a fixed structured covariance, or of one that is rotated in every context; D = 32 (figure 1)",
        "the same three; d = 4 to 256 and the limit of large d; rotated covariances at infinite context length",
        departure="smaller",
    ),
    Difference(
        "optimizer",
        "stochastic gradient descent (abstract)",
        "none: the least errors over step sizes, exactly",
    ),
)
"""The abstract, the beginning of the text, a figure's caption and notes of others were read."""
