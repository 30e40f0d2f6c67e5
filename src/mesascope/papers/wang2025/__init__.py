"""Wang et al. 2025, Test-time regression: its claims and figures."""

from ._correlations import CLAIMS as _CORRELATIONS
from ._differences import DIFFERENCES as DIFFERENCES
from ._forgetting import CLAIMS as _FORGETTING
from ._headlines import HEADLINES as HEADLINES
from ._solvers import CLAIMS as _SOLVERS

CLAIMS = (*_SOLVERS, *_CORRELATIONS, *_FORGETTING)
