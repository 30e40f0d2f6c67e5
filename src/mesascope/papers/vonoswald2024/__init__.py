"""Von Oswald et al. 2024, Uncovering Mesa-Optimization Algorithms in Transformers: its claims and figures."""

from ._compressed import CLAIMS as _COMPRESSED
from ._copying import CLAIMS as _COPYING
from ._depth import CLAIMS as _DEPTH
from ._differences import DIFFERENCES as DIFFERENCES
from ._few_shot import CLAIMS as _FEW_SHOT
from ._few_shot_exact import CLAIMS as _FEW_SHOT_EXACT
from ._headlines import HEADLINES as HEADLINES
from ._identities import CLAIMS as _IDENTITIES
from ._one_layer import CLAIMS as _ONE_LAYER
from ._preconditioned import CLAIMS as _PRECONDITIONED

CLAIMS = (
    *_IDENTITIES,
    *_ONE_LAYER,
    *_DEPTH,
    *_COMPRESSED,
    *_PRECONDITIONED,
    *_COPYING,
    *_FEW_SHOT_EXACT,
    *_FEW_SHOT,
)
