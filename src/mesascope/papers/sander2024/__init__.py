"""Sander et al. 2024, How do Transformers Perform In-Context Autoregressive Learning?: its claims and figures."""

from ._augmented import CLAIMS as _AUGMENTED
from ._minimisers import CLAIMS as _MINIMISERS
from ._rotations import CLAIMS as _ROTATIONS

CLAIMS = (*_MINIMISERS, *_ROTATIONS, *_AUGMENTED)
