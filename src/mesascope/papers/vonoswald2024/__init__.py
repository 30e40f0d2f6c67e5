"""Von Oswald et al. 2024, Uncovering Mesa-Optimization Algorithms in Transformers: its claims and figures."""

from ._copying import CLAIMS as _COPYING
from ._identities import CLAIMS as _IDENTITIES
from ._trained import CLAIMS as _TRAINED

CLAIMS = (*_IDENTITIES, *_TRAINED, *_COPYING)
