"""Von Oswald et al. 2025, MesaNet: its claims and figures."""

from ._differences import DIFFERENCES as DIFFERENCES
from ._family import CLAIMS as _FAMILY
from ._headlines import HEADLINES as HEADLINES
from ._solution import CLAIMS as _SOLUTION

CLAIMS = (*_SOLUTION, *_FAMILY)
