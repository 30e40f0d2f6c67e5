"""Zheng et al. 2024, On Mesa-Optimization in Autoregressively Trained Transformers: its claims and figures."""

from ._capability import CLAIMS as _CAPABILITY
from ._certified import CLAIMS as _CERTIFIED
from ._depth import CLAIMS as _DEPTH
from ._descent import CLAIMS as _DESCENT
from ._differences import DIFFERENCES as DIFFERENCES
from ._factored import CLAIMS as _FACTORED
from ._found_here import CLAIMS as _FOUND_HERE
from ._full_one import CLAIMS as _FULL_ONE
from ._headlines import HEADLINES as HEADLINES
from ._other_normalizers import CLAIMS as _OTHER_NORMALIZERS
from ._reviews import CLAIMS as _REVIEWS
from ._theorem_41 import CLAIMS as _THEOREM_41

CLAIMS = (
    *_THEOREM_41,
    *_CAPABILITY,
    *_FOUND_HERE,
    *_FACTORED,
    *_FULL_ONE,
    *_DESCENT,
    *_CERTIFIED,
    *_REVIEWS,
    *_OTHER_NORMALIZERS,
    *_DEPTH,
)
