"""Zhang, Singh, Latham and Saxe 2025, Training Dynamics of In-Context Learning in Linear Attention: its claims and figures."""

from ._course import CLAIMS as _COURSE
from ._differences import DIFFERENCES as DIFFERENCES
from ._fixed_points import CLAIMS as _FIXED
from ._flows import CLAIMS as _FLOWS
from ._headlines import HEADLINES as HEADLINES
from ._in_weights import CLAIMS as _IN_WEIGHTS

CLAIMS = (*_FIXED, *_FLOWS, *_COURSE, *_IN_WEIGHTS)
