"""Von Oswald et al. 2023, Transformers Learn In-Context by Gradient Descent: its claims and figures."""

from ._constructions import CLAIMS as _CONSTRUCTIONS
from ._curved import CLAIMS as _CURVED
from ._differences import DIFFERENCES as DIFFERENCES
from ._five_layers import CLAIMS as _FIVE_LAYERS
from ._headlines import HEADLINES as HEADLINES
from ._interleaved import CLAIMS as _INTERLEAVED
from ._larger_inputs import CLAIMS as _LARGER_INPUTS
from ._looped import CLAIMS as _LOOPED
from ._named import CLAIMS as _NAMED
from ._one_layer import CLAIMS as _ONE_LAYER

CLAIMS = (
    *_CONSTRUCTIONS,
    *_ONE_LAYER,
    *_LARGER_INPUTS,
    *_NAMED,
    *_LOOPED,
    *_FIVE_LAYERS,
    *_INTERLEAVED,
    *_CURVED,
)
