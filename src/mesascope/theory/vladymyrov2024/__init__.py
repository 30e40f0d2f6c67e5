r"""Linear transformers on regression with unknown noise variance (vladymyrov2024, arXiv 2402.14180).

Setting: $x_i \sim N(0, I_d)$, $w \sim N(0, I_d)$, labels $y_i = w^\top x_i + \sigma_\tau \xi_i$, and a noise level
that is drawn for every prompt, $\sigma_\tau \sim U(0, \sigma_{\max})$. Tokens $(x_i, y_i)$, $i \le N$, and a query
$(x_q, 0)$ are mapped by layers $z_j \leftarrow z_j + \sum_k P_k \bigl(\frac1N \sum_{i \le N} z_i z_i^\top\bigr) Q_k z_j$; the
prediction is minus the last entry of the query. Losses are half the squared error; an *excess* is a loss minus that
of the oracle, ridge regression with known $\sigma_\tau$. (The excess is the same for noisy and noiseless labels of the query.)
"""

from ._implicit import ImplicitModels as ImplicitModels
from ._implicit import diagonal_heads as diagonal_heads
from ._implicit import implicit_models as implicit_models
from ._risk import one_layer_excess as one_layer_excess
from ._risk import one_layer_loss as one_layer_loss
from ._risk import oracle_loss as oracle_loss
from ._risk import oracle_loss_at as oracle_loss_at
from ._second_order import Schedule as Schedule
from ._second_order import gradient_steps as gradient_steps
from ._second_order import second_order_schedule as second_order_schedule
