"""Vladymyrov et al. 2024, Linear Transformers are Versatile In-Context Learners: its claims and figures."""

from ._differences import DIFFERENCES as DIFFERENCES
from ._exact import CLAIMS as _EXACT
from ._headlines import HEADLINES as HEADLINES
from ._mixed_noise import CLAIMS as _MIXED_NOISE
from ._named import CLAIMS as _NAMED
from ._rows import CLAIMS as _ROWS
from ._second_order import CLAIMS as _SECOND_ORDER

CLAIMS = (*_EXACT, *_SECOND_ORDER, *_ROWS, *_MIXED_NOISE, *_NAMED)
