"""Sander et al. 2024, How do Transformers Perform In-Context Autoregressive Learning?: its claims and figures."""

from ._augmented import CLAIMS as _AUGMENTED
from ._differences import DIFFERENCES as DIFFERENCES
from ._double_count import CLAIMS as _DOUBLE_COUNT
from ._headlines import HEADLINES as HEADLINES
from ._minimisers import CLAIMS as _MINIMISERS
from ._positions_alone import CLAIMS as _POSITIONS
from ._rotations import CLAIMS as _ROTATIONS
from ._softmax_and_mlp import CLAIMS as _SOFTMAX_AND_MLP
from ._stored import CLAIMS as _STORED
from ._without_commuting import CLAIMS as _WITHOUT_COMMUTING

CLAIMS = (
    *_MINIMISERS,
    *_ROTATIONS,
    *_STORED,
    *_DOUBLE_COUNT,
    *_POSITIONS,
    *_AUGMENTED,
    *_WITHOUT_COMMUTING,
    *_SOFTMAX_AND_MLP,
)
