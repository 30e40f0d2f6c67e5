"""What differs from the setting of the paper, as far as it is known."""

from .._claim import Difference

DIFFERENCES = (
    Difference(
        "model",
        "theorems: one linear attention layer (eq. 3.3); Figure 1: GPT-2, 256 wide, 12 layers, 8 heads (Appendix E)",
        "one linear attention layer, all entries of both matrices free; Figure 1 is not repeated",
    ),
    Difference(
        "data",
        "x ~ N(0, Λ), w ~ N(0, I), no noise (section 3.3); Λ fixed, or diagonal with independent entries, example "
        "Exponential(1) (section 4.3)",
        "the same, Λ with given eigenvalues in random axes; besides Exponential(1) squares of Gaussian and uniform numbers",
    ),
)
"""What differs: the paper has theorems on the layer, and experiments with a larger model."""
