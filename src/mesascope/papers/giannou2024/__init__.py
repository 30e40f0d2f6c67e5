"""Giannou et al. 2024, How Well Can Transformers Emulate In-Context Newton's Method?: its claims and figures."""

from ._differences import DIFFERENCES as DIFFERENCES
from ._headlines import HEADLINES as HEADLINES
from ._linear import CLAIMS as _LINEAR
from ._logistic import CLAIMS as _LOGISTIC

CLAIMS = (*_LINEAR, *_LOGISTIC)
