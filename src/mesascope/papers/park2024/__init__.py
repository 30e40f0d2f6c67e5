"""Park et al. 2024, Competition dynamics shape algorithmic phases of in-context learning: its claims and figures."""

from ._differences import DIFFERENCES as DIFFERENCES
from ._headlines import HEADLINES as HEADLINES
from ._losses import CLAIMS as _EXACT
from ._phases import CLAIMS as _TRAINED

CLAIMS = (*_EXACT, *_TRAINED)
