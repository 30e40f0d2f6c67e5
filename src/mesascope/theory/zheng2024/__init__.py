r"""Closed forms for one linear attention layer trained on $x_{t+1} = W x_t$ (zheng2024, arXiv 2405.16845).

Setting: $W = \mathrm{diag}(\lambda)$ unitary, $x_1 \sim D_{x_1}$ real, weights with all blocks zero except $a
I$ in $W^{KQ}$ (row $x_{i-1}$, column $x_t$) and $b I$ in $W^{PV}$ (column $x_i$). Such *diagonal* weights
predict $\hat y_t = \frac{ab}{\rho_t} \sum_{i<t} x_{i+1} x_i^* x_t$: one gradient step from zero on the
in-context least-squares problem. Their loss and their gradient flow are elementary functions of four moments
of the law.

Functions take laws, dimensions, horizons and weights, and return numbers: exact `Fraction`s if the result is rational
and not too long, floats otherwise. Nothing is simulated.
"""

from ._assumptions import Answer as Answer
from ._assumptions import AssumptionError as AssumptionError
from ._assumptions import MaskName as MaskName
from ._assumptions import diagonal_stays_diagonal as diagonal_stays_diagonal
from ._assumptions import satisfies_assumption_41 as satisfies_assumption_41
from ._assumptions import satisfies_assumption_42 as satisfies_assumption_42
from ._best_normalizer import best_normalized_loss as best_normalized_loss
from ._best_normalizer import best_normalizer_shift as best_normalizer_shift
from ._capability import capability_gap as capability_gap
from ._capability import correlation_ratio as correlation_ratio
from ._capability import expected_ratio as expected_ratio
from ._capability import finite_context_risk as finite_context_risk
from ._construction import gradient_descent_step as gradient_descent_step
from ._limits import FlowCoefficients as FlowCoefficients
from ._limits import diagonal_loss as diagonal_loss
from ._limits import flow_coefficients as flow_coefficients
from ._limits import limit_loss as limit_loss
from ._limits import limit_product as limit_product
from ._limits import masked_full_one_limit as masked_full_one_limit
from ._moments import CoordinateMoments as CoordinateMoments
from ._moments import TokenMoments as TokenMoments
from ._moments import coordinate_moments as coordinate_moments
from ._moments import token_moments as token_moments
from ._sums import WeightSums as WeightSums
from ._sums import weight_sums as weight_sums
from ._trajectory import DiagonalFlow as DiagonalFlow
from ._trajectory import DiagonalState as DiagonalState
from ._trajectory import diagonal_flow as diagonal_flow
