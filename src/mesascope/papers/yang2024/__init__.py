"""Yang et al. 2024, Parallelizing Linear Transformers with the Delta Rule: its claims and figures."""

from ._delta_rule import CLAIMS as _DELTA_RULE
from ._differences import DIFFERENCES as DIFFERENCES
from ._headlines import HEADLINES as HEADLINES
from ._recall import CLAIMS as _RECALL

CLAIMS = (*_DELTA_RULE, *_RECALL)
