"""Nichani et al. 2024, How Transformers Learn Causal Structure with Gradient Descent: its claims and figures."""

from ._differences import DIFFERENCES as DIFFERENCES
from ._full_model import CLAIMS as _FULL_MODEL
from ._graph import CLAIMS as _GRAPH
from ._headlines import HEADLINES as HEADLINES
from ._information import CLAIMS as _INFORMATION
from ._loss import CLAIMS as _LOSS
from ._with_mlp import CLAIMS as _WITH_MLP

CLAIMS = (*_GRAPH, *_FULL_MODEL, *_WITH_MLP, *_LOSS, *_INFORMATION)
