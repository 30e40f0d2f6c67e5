"""Zhang, Frei and Bartlett 2024, Trained Transformers Learn Linear Models In-Context: its claims and figures."""

from ._differences import DIFFERENCES as DIFFERENCES
from ._flows import CLAIMS as _FLOWS
from ._headlines import HEADLINES as HEADLINES
from ._random_covariance import CLAIMS as _RANDOM
from ._shifts import CLAIMS as _SHIFTS

CLAIMS = (*_FLOWS, *_SHIFTS, *_RANDOM)
