"""Fu et al. 2024, Transformers Learn to Achieve Second-Order Convergence Rates for In-Context Linear Regression: its claims."""

from ._depth import CLAIMS as _DEPTH
from ._differences import DIFFERENCES as DIFFERENCES
from ._headlines import HEADLINES as HEADLINES
from ._ill_conditioned import CLAIMS as _ILL_CONDITIONED
from ._newton import CLAIMS as _NEWTON
from ._transformer import CLAIMS as _TRANSFORMER

CLAIMS = (*_NEWTON, *_ILL_CONDITIONED, *_DEPTH, *_TRANSFORMER)
