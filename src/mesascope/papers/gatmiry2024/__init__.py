"""Gatmiry et al. 2024, Can Looped Transformers Learn to Implement Multi-step Gradient Descent …?: its claims."""

from ._another_covariance import CLAIMS as _ANOTHER_COVARIANCE
from ._differences import DIFFERENCES as DIFFERENCES
from ._dominance import CLAIMS as _DOMINANCE
from ._extra_loops import CLAIMS as _EXTRA_LOOPS
from ._headlines import HEADLINES as HEADLINES
from ._identities import CLAIMS as _IDENTITIES
from ._minimizer import CLAIMS as _MINIMIZER
from ._named import CLAIMS as _NAMED
from ._rate import CLAIMS as _RATE

CLAIMS = (*_IDENTITIES, *_MINIMIZER, *_EXTRA_LOOPS, *_DOMINANCE, *_RATE, *_ANOTHER_COVARIANCE, *_NAMED)
