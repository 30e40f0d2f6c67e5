r"""Linear attention trained on a finite pool of regression tasks (lu2024, arXiv 2405.11751).

Setting: $x_i \sim N(0, I/d)$, tasks $w$ with $\|w\|^2 = d$ (a pool of $K$ of them, or the whole sphere), $y_i = w^\top x_i +
N(0, \rho)$, $\ell$ examples and a query. One layer of linear attention whose $W^{PV}$ reads the label alone predicts

$$\hat y = x_q^\top \Gamma f, \qquad f = \Bigl(\frac d\ell \sum_i y_i x_i,\ \frac1\ell \sum_i y_i^2\Bigr) \in \mathbb{R}^{d+1},
\qquad \Gamma \in \mathbb{R}^{d \times (d+1)},$$

where $\Gamma$ is the part of $W^{KQ}$ that then reaches the prediction. It is fitted by ridge regression on $n$ prompts. With
$\alpha = \ell/d$, $\kappa = K/d$, $\tau = n/d^2$ fixed, errors $E(\hat y - y_q)^2$ converge as $d \to \infty$.

Given the moments of the tasks, the problem at finite $d$ and $\tau = \infty$ is least squares with exact normal equations,
which is derived here, for any covariance of the inputs: $\Gamma = E[w f^\top]\,(E f f^\top)^{-1}$, the regression of the task
on the features.
"""

from ._finite_dimension import Features as Features
from ._finite_dimension import features as features
from ._finite_dimension import fitted as fitted
from ._finite_dimension import layer as layer
from ._finite_dimension import prompt_features as prompt_features
from ._limits import flow_errors as flow_errors
from ._limits import icl_error as icl_error
from ._limits import idg_error as idg_error
from ._limits import resolvent as resolvent
from ._limits import zero_answer_border as zero_answer_border
