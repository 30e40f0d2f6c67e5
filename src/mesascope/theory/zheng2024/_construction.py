"""The weights with which one layer of linear attention is one step of gradient descent on the sequence."""

import numpy as np

from ...core import finite_number, integer_at_least
from ...specs import Number
from .._construction import Construction


def gradient_descent_step(dim: int, a: Number, b: Number) -> Construction:
    r"""Return one layer that predicts by one gradient step from zero on in-context least squares.

    Tokens are $e_i = (0, x_i, x_{i-1})$ with $x_0 = 0$. $W^{KQ}$ has $a I$ in row $x_{i-1}$, column $x_t$, so that
    $e_i^* W^{KQ} e_t = a\, x_{i-1}^* x_t$, and $W^{PV}$ has $b I$ in row $0$, column $x_i$: the layer, with a sum over $i
    \le t$, adds

    $$\hat y_t = \frac{ab}{\rho_t} \sum_{i<t} x_{i+1} x_i^* x_t$$

    to the zero block of $e_t$. It is $W x_t$ after a step of size $ab/\rho_t$ from $W = 0$ on $\frac12 \sum_{i<t}
    \|x_{i+1} - W x_i\|^2$.

    Args:
        dim: $d \ge 1$.
        a: the factor in $W^{KQ}$.
        b: the factor in $W^{PV}$.

    Returns:
        Weights of shape `(1, 3d, 3d)`.

    Raises:
        TypeError, ValueError: `dim` is not an integer ≥ 1, `a` or `b` is not a finite number.

    Source: zheng2024, Assumption 3.1 and section 4.1.
    """
    d = integer_at_least("dim", dim, 1)
    prediction, current, previous = (slice(k * d, (k + 1) * d) for k in range(3))
    w_kq, w_pv = np.zeros((2, 1, 3 * d, 3 * d))
    w_kq[0, previous, current] = float(finite_number("a", a)) * np.eye(d)
    w_pv[0, prediction, current] = float(finite_number("b", b)) * np.eye(d)
    return Construction(w_kq, w_pv)
