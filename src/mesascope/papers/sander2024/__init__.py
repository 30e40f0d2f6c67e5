"""Sander et al. 2024, How do Transformers Perform In-Context Autoregressive Learning?: its claims and figures."""

from ._augmented import CLAIMS as _AUGMENTED
from ._minimisers import CLAIMS as _MINIMISERS

CLAIMS = (*_MINIMISERS, *_AUGMENTED)
