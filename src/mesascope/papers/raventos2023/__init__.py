"""Raventós et al. 2023, Pretraining task diversity and non-Bayesian in-context learning: its claims and figures."""

from ._differences import DIFFERENCES as DIFFERENCES
from ._learning import CLAIMS as _LEARNING
from ._named import CLAIMS as _NAMED
from ._pools import CLAIMS as _POOLS

CLAIMS = (*_POOLS, *_LEARNING, *_NAMED)
