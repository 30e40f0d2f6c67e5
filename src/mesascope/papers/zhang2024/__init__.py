"""Zhang, Frei and Bartlett 2024, Trained Transformers Learn Linear Models In-Context: its claims and figures."""

from .._claim import Difference
from ._flows import CLAIMS as _FLOWS
from ._random_covariance import CLAIMS as _RANDOM
from ._shifts import CLAIMS as _SHIFTS

CLAIMS = (*_FLOWS, *_SHIFTS, *_RANDOM)

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
