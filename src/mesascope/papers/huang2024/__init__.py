"""Huang et al. 2024, In-context Convergence of Transformers: its claims and figures."""

from ._differences import DIFFERENCES as DIFFERENCES
from ._flows import CLAIMS as _FLOWS
from ._headlines import HEADLINES as HEADLINES
from ._times import CLAIMS as _TIMES
from ._trained import CLAIMS as _TRAINED

CLAIMS = (*_FLOWS, *_TIMES, *_TRAINED)
