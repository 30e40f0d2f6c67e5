"""Wurgaft et al. 2025, In-context learning strategies emerge rationally: its claims and figures."""

from ._differences import DIFFERENCES as DIFFERENCES
from ._headlines import HEADLINES as HEADLINES
from ._losses import CLAIMS as _EXACT
from ._odds import CLAIMS as _ODDS
from ._transition import CLAIMS as _TRANSITION

CLAIMS = (*_EXACT, *_TRANSITION, *_ODDS)
