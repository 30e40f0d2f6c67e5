"""Kim and Suzuki 2024, Transformers Learn Nonlinear Features In Context: its claims and figures."""

from ._differences import DIFFERENCES as DIFFERENCES
from ._fixed_features import CLAIMS as _FIXED_FEATURES
from ._headlines import HEADLINES as HEADLINES
from ._mean_field import CLAIMS as _MEAN_FIELD
from ._trained import CLAIMS as _TRAINED

CLAIMS = (*_FIXED_FEATURES, *_MEAN_FIELD, *_TRAINED)
