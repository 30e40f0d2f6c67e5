"""Ahn et al. 2023, Transformers Learn to Implement Preconditioned Gradient Descent: its claims and figures."""

from ._critical import CLAIMS as _CRITICAL
from ._deep import CLAIMS as _DEEP
from ._differences import DIFFERENCES as DIFFERENCES
from ._distances import CLAIMS as _DISTANCES
from ._headlines import HEADLINES as HEADLINES
from ._identities import CLAIMS as _IDENTITIES
from ._one_layer import CLAIMS as _ONE_LAYER
from ._printed import CLAIMS as _PRINTED
from ._proved import CLAIMS as _PROVED
from ._sizes import CLAIMS as _SIZES

CLAIMS = (*_IDENTITIES, *_ONE_LAYER, *_CRITICAL, *_PROVED, *_DISTANCES, *_SIZES, *_DEEP, *_PRINTED)
