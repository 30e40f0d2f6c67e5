"""Lu et al. 2024, Asymptotic theory of in-context learning by linear attention: its claims and figures."""

from ._differences import DIFFERENCES as DIFFERENCES
from ._double_descent import CLAIMS as _DOUBLE_DESCENT
from ._full_layer import CLAIMS as _FULL_LAYER
from ._headlines import HEADLINES as HEADLINES
from ._limit import CLAIMS as _LIMIT
from ._map import CLAIMS as _MAP
from ._mean import CLAIMS as _MEAN
from ._stored import CLAIMS as _STORED

CLAIMS = (*_LIMIT, *_DOUBLE_DESCENT, *_STORED, *_MEAN, *_MAP, *_FULL_LAYER)
