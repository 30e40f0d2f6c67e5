"""Bordelon, Letey and Pehlevan 2025, Theory of Scaling Laws for In-Context Regression: its claims and figures."""

from ._differences import DIFFERENCES as DIFFERENCES
from ._headlines import HEADLINES as HEADLINES
from ._isotropic import CLAIMS as _ISOTROPIC
from ._rotated import CLAIMS as _ROTATED

CLAIMS = (*_ISOTROPIC, *_ROTATED)
