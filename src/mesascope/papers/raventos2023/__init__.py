"""Raventós et al. 2023, Pretraining task diversity and non-Bayesian in-context learning: its claims and figures."""

from ._differences import DIFFERENCES as DIFFERENCES
from ._headlines import HEADLINES as HEADLINES
from ._pools import CLAIMS as CLAIMS
