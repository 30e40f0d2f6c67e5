"""Mahankali, Hashimoto and Ma 2024, One Step of Gradient Descent is Provably the Optimal In-Context Learner: its claims."""

from ._differences import DIFFERENCES as DIFFERENCES
from ._headlines import HEADLINES as HEADLINES
from ._linear_targets import CLAIMS as _LINEAR
from ._nonlinear_targets import CLAIMS as _NONLINEAR

CLAIMS = (*_LINEAR, *_NONLINEAR)
