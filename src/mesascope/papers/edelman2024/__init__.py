"""Edelman et al. 2024, The evolution of statistical induction heads: its claims and figures."""

from ._differences import DIFFERENCES as DIFFERENCES
from ._exact_flow import CLAIMS as _FLOW
from ._headlines import HEADLINES as HEADLINES
from ._losses import CLAIMS as _EXACT
from ._phases import CLAIMS as _TRAINED

CLAIMS = (*_EXACT, *_FLOW, *_TRAINED)
