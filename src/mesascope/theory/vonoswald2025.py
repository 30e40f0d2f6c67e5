r"""The mesa layer with gates (vonoswald2025, arXiv 2506.05233): its regression problem, and how conjugate gradients solve it.

After token $t$ the layer answers $M_t q_t$, where $M_t$ minimizes

$$\sum_{i \le t} \zeta_i |v_i - M k_i|^2 + \mathrm{tr}\, M \Lambda M^\top, \qquad
\zeta_i = \beta_i \prod_{i < s \le t} \gamma_s.$$

The gates are those of the authors' program (`naive_mesa_net_exact` in `fla/ops/mesa_net/naive.py` of
fla-org/flash-linear-attention at commit bc3b101): input strength $\beta$, forget strength $\gamma$.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core import finite_number, finite_reals, integer_at_least
from ..specs import Number


def token_weights(rates: Any, decays: Any) -> np.ndarray:
    r"""Return $\zeta_i = \beta_i \prod_{i < s \le n} \gamma_s$ after the last token.

    Args:
        rates: $\beta$, shape (n,).
        decays: $\gamma$, shape (n,).

    Raises:
        TypeError, ValueError: for anything but two lists of numbers of one length.
    """
    beta, gamma = finite_reals("rates", rates), finite_reals("decays", decays)
    if beta.ndim != 1 or gamma.shape != beta.shape:
        raise ValueError(f"rates and decays must have shape (n,), got {beta.shape} and {gamma.shape}")
    later = np.append(gamma[1:], 1.0)
    return np.asarray(beta * np.cumprod(later[::-1])[::-1])


def gated_ridge(keys: Any, values: Any, weights: Any, penalty: Any) -> np.ndarray:
    r"""Return the minimum $M$ of $\sum_i \zeta_i |v_i - M k_i|^2 + \mathrm{tr}\, M \Lambda M^\top$, shape (m, w).

    It is found by orthogonal factorization of the rows $\sqrt{\zeta_i} k_i$ and $\sqrt{\Lambda}$, without normal equations.

    Args:
        keys: shape (n, w).
        values: shape (n, m).
        weights: $\zeta \ge 0$, shape (n,).
        penalty: the diagonal of $\Lambda$, positive, shape (w,).

    Raises:
        TypeError, ValueError: for arrays that do not fit, or negative weights.
    """
    k, v = finite_reals("keys", keys), finite_reals("values", values)
    zeta, diagonal = finite_reals("weights", weights), finite_reals("penalty", penalty)
    if k.ndim != 2 or v.ndim != 2 or zeta.shape != (len(k),) or len(v) != len(k):
        raise ValueError(
            f"keys {k.shape}, values {v.shape} and weights {zeta.shape} do not fit; use (n, w), (n, m) and (n,)"
        )
    if diagonal.shape != (k.shape[1],) or not ((zeta >= 0).all() and (diagonal > 0).all()):
        raise ValueError(f"penalty must be {k.shape[1]} positive numbers, and weights must not be negative")
    root = np.sqrt(zeta)[:, None]
    rows = np.concatenate([root * k, np.diag(np.sqrt(diagonal))])
    right = np.concatenate([root * v, np.zeros((k.shape[1], v.shape[1]))])
    return np.asarray(np.linalg.lstsq(rows, right, rcond=None)[0].T)


def conjugate_gradient_bound(condition: Number, steps: int) -> float:
    r"""Return the largest error that conjugate gradients leave after $k$ steps, relative to that of the start.

    $$\frac{2}{\rho^k + \rho^{-k}}, \qquad \rho = \frac{\sqrt{\kappa} + 1}{\sqrt{\kappa} - 1},$$

    in the norm $\sqrt{e^\top A e}$ of a symmetric positive definite system with condition number $\kappa$ (Chebyshev).

    Args:
        condition: $\kappa \ge 1$.
        steps: $k \ge 0$.

    Raises:
        TypeError, ValueError: for other values.
    """
    kappa, count = float(finite_number("condition", condition)), integer_at_least("steps", steps, 0)
    if kappa < 1:
        raise ValueError(f"condition must be at least 1, got {kappa:g}")
    if kappa == 1:
        return 0.0 if count else 1.0
    power = float(count * np.log((np.sqrt(kappa) + 1) / (np.sqrt(kappa) - 1)))
    return float(1 / np.cosh(power))
