"""Nichani et al. 2024, How Transformers Learn Causal Structure with Gradient Descent: its claims and figures."""

from ._graph import CLAIMS as _GRAPH
from ._induction import CLAIMS as _INDUCTION
from ._lengths import CLAIMS as _LENGTHS
from ._loss import CLAIMS as _LOSS

CLAIMS = (*_GRAPH, *_LOSS, *_LENGTHS, *_INDUCTION)
