r"""Mesa-optimization in causal linear attention and the mesa layer (vonoswald2024, arXiv 2309.05858).

Setting: tokens $s_1, \dots, s_T \in \mathbb{R}^d$ of a linear system, $s_0 = 0$. After $t$ tokens the linear map $\Phi$ from
one token to the next has the in-context loss $L_t(\Phi) = \frac12 \sum_{i \le t} \|s_i - \Phi s_{i-1}\|^2$; the query is
$s_t$. Attention is causal, with $\rho = 1$, and $z_t \leftarrow z_t + \sum_{i \le t} W^{PV} z_i (z_i^\top W^{KQ} z_t)$.
"""

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from ..core import (
    exact,
    finite_nonnegative,
    finite_number,
    finite_positive,
    finite_reals,
    integer_at_least,
    square_matrix,
)
from ..processes import Law
from ..specs import Number
from ._construction import Construction


class MesaFactors(NamedTuple):
    """Weights of one head of a mesa layer, the arguments of `MesaLayer`.

    Attributes:
        w_k, w_q, w_v: shape `(1, d, w)`.
        w_p: shape `(1, w, d)`.
    """

    w_k: np.ndarray
    w_q: np.ndarray
    w_p: np.ndarray
    w_v: np.ndarray


class FewShotError(NamedTuple):
    r"""What one gradient step misses of a label, $E\|\hat y - y\|^2/d$, in two parts.

    Attributes:
        examples: what the step on the pairs $(x_i, y_i)$ alone leaves.
        other_pairs: what the pairs between examples add, at least 0.
    """

    examples: Fraction
    other_pairs: Fraction

    @property
    def total(self) -> Fraction:
        """The sum of the two."""
        return self.examples + self.other_pairs


def gradient_step(start: Any, step_size: Number) -> Construction:
    r"""Return the layer that is one step of gradient descent on $L_t$ from $\Phi_0$, for every $t$.

    On `gradient_step_tokens` the first block of token $t$ becomes $(\Phi_0 - \eta \nabla L_t(\Phi_0)) s_t$: block (3, 2) of
    $W^{KQ}$ is $I$, so that token $i$ has the weight $s_{i-1}^\top s_t$, and the first row of blocks of $W^{PV}$ is $(0, \eta
    I, -\eta \Phi_0)$, so that it adds $\eta (s_i - \Phi_0 s_{i-1})$.

    Args:
        start: $\Phi_0$, shape `(d, d)`.
        step_size: $\eta$.

    Returns:
        Weights of shape `(1, 3d, 3d)`.

    Raises:
        TypeError, ValueError: `start` is not a square matrix of finite reals, `step_size` is not a finite number.

    Source: vonoswald2024, Proposition 1.
    """
    phi, eta = square_matrix("start", start), float(finite_number("step_size", step_size))
    d = len(phi)
    w_kq, w_pv = np.zeros((2, 1, 3 * d, 3 * d))
    w_kq[0, 2 * d :, d : 2 * d] = np.eye(d)
    w_pv[0, :d, d : 2 * d], w_pv[0, :d, 2 * d :] = eta * np.eye(d), -eta * phi
    return Construction(w_kq, w_pv)


def gradient_step_tokens(sequence: Any, start: Any) -> np.ndarray:
    r"""Return the tokens $(\Phi_0 s_t, s_t, s_{t-1})$ on which `gradient_step` works.

    Args:
        sequence: $s_1, \dots, s_T$, shape `(…, T, d)`.
        start: $\Phi_0$, shape `(d, d)`.

    Returns:
        Shape `(…, T, 3d)`.

    Raises:
        TypeError, ValueError: arrays that are not real and finite, or do not fit.
    """
    phi, s = square_matrix("start", start), _sequence(sequence)
    if s.shape[-1] != len(phi):
        raise ValueError(
            f"start must have shape (d, d) with the d = {s.shape[-1]} of the tokens, got {phi.shape}"
        )
    return np.concatenate([s @ phi.T, s, _previous(s)], -1)


def ridge_factors(dim: int) -> MesaFactors:
    r"""Return weights with which a mesa layer is ridge regression on $(s_{i-1}, s_i)$, $i \le t$, with the query $s_t$.

    On tokens $(0, s_t, s_{t-1})$ keys are $s_{i-1}$, values $s_i$ and queries $s_t$: the first block of token $t$ becomes
    $(\sum_{i \le t} s_i s_{i-1}^\top) (\sum_{i \le t} s_{i-1} s_{i-1}^\top + I/\lambda)^{-1} s_t$.

    Args:
        dim: $d \ge 1$.

    Raises:
        TypeError, ValueError: `dim` is not an integer ≥ 1.

    Source: vonoswald2024, section on the mesa layer.
    """
    d = integer_at_least("dim", dim, 1)
    first, current, previous = np.eye(3 * d).reshape(3, d, 3 * d)[:, None]
    return MesaFactors(w_k=previous, w_q=current, w_p=np.swapaxes(first, 1, 2), w_v=current)


def ridge_by_layers(dim: int, layers: int, step_size: Number) -> Construction:
    r"""Return layers of linear attention that approximate ridge regression, on the tokens of `ridge_tokens`.

    With $M_t = \sum_{i \le t} s_{i-1} s_{i-1}^\top + I/\lambda$ and $C_t = \sum_{i \le t} s_i s_{i-1}^\top$ a layer computes

    $$o_t \leftarrow o_t + \eta\, C_t r_t, \qquad r_t \leftarrow (I - \eta M_t) r_t,$$

    from $o_t = 0$ and $r_t = s_t$, with right sides evaluated before the layer. After $L$ layers $o_t = C_t M_t^{-1} (I - (I
    - \eta M_t)^L) s_t$: the truncated Neumann series of the inverse, and $L$ steps of gradient descent on the ridge problem.
    It converges to ridge regression for $0 < \eta < 2/\lambda_{\max}(M_t)$. All layers are the same.

    Args:
        dim: $d \ge 1$.
        layers: $L \ge 1$.
        step_size: $\eta$.

    Returns:
        Weights of shape `(L, 1, 4d, 4d)`.

    Raises:
        TypeError, ValueError: `dim` or `layers` is not an integer ≥ 1, `step_size` is not a finite number.

    Source: derived here, for vonoswald2024, Proposition 2.
    """
    d, layers = integer_at_least("dim", dim, 1), integer_at_least("layers", layers, 1)
    eta = float(finite_number("step_size", step_size))
    out, rest, value, key = (slice(k * d, (k + 1) * d) for k in range(4))
    w_kq, w_pv = np.zeros((2, 4 * d, 4 * d))
    w_kq[key, rest] = np.eye(d)
    w_pv[out, value], w_pv[rest, key] = eta * np.eye(d), -eta * np.eye(d)
    return Construction(*(np.tile(weights, (layers, 1, 1, 1)) for weights in (w_kq, w_pv)))


def ridge_tokens(sequence: Any, regularization: Number) -> np.ndarray:
    r"""Return the tokens on which `ridge_by_layers` works.

    The tokens $(0, s_t, s_t, s_{t-1})$, with blocks for $o_t$, $r_t$, value and key, follow $d$ tokens $(0, 0, 0,
    e_j/\sqrt\lambda)$: examples of inputs $e_j/\sqrt\lambda$ with output 0, which regularize.

    Args:
        sequence: $s_1, \dots, s_T$, shape `(…, T, d)`.
        regularization: $\lambda > 0$; a large $\lambda$ means weak regularization.

    Returns:
        Shape `(…, d + T, 4d)`.

    Raises:
        TypeError, ValueError: a sequence that is not real and finite, or has another shape; $\lambda$ not positive.
    """
    s, ridge = _sequence(sequence), float(finite_positive("regularization", regularization))
    dim = s.shape[-1]
    tokens = np.concatenate([np.zeros_like(s), s, s, _previous(s)], -1)
    prior = np.zeros((*s.shape[:-2], dim, 4 * dim))
    prior[..., 3 * dim :] = np.eye(dim) / ridge**0.5
    return np.concatenate([prior, tokens], -2)


def few_shot_error(
    law: Law,
    dim: int,
    examples: int,
    step_size: Number,
    *,
    noise: Number = 0,
    end_token_square: Number | None = None,
) -> FewShotError:
    r"""Return the error of one gradient step on a few-shot task that is written as a sequence.

    The sequence is $x_1, y_1, \dots, x_m, y_m, x$, with $y_i = W x_i + \varepsilon_i$ and $W$ orthogonal, drawn anew from
    Haar's measure. A layer that was trained on sequences takes a step from 0 on *all* pairs of neighbours: on the examples, and
    on $(y_i, x_{i+1})$. With an end token $e$ after every label these become $(y_i, e)$ and $(e, x_{i+1})$. With $v = E x_1^2$,
    $q = E \|x\|^2 x_1^2$ and $u = v + \sigma^2$

    $$\text{examples} = u - 2 \eta m v^2 + \eta^2 m v (q + (m - 1) v^2 + d v \sigma^2),$$
    $$\text{other pairs} = \eta^2 u ((m - 1) d v^2 + q) \quad\text{or}\quad
      \eta^2 \|e\|^2 (m v u + (m - 1) v^2 + q/d),$$

    for m ≥ 1. So $e = 0$ removes what the pairs between examples add, and every other end token adds something.

    Args:
        law: of the inputs; even, with exchangeable coordinates.
        dim: $d$.
        examples: $m \ge 0$.
        step_size: $\eta$, the weight of every pair; $c/t$ where attention takes the mean over $t$ pairs.
        noise: $\sigma \ge 0$, the standard deviation of the entries of $\varepsilon_i$.
        end_token_square: $\|e\|^2 \ge 0$; None for sequences without end tokens.

    Returns:
        Exact fractions of the numbers given.

    Raises:
        TypeError, ValueError: numbers out of range, or a law that is not even and exchangeable.
        MomentError: the law has no fourth moments.

    Source: derived here; the sequences are those of vonoswald2024's few-shot tasks.
    """
    d, m = law.check_dim(dim), integer_at_least("examples", examples, 0)
    if not (law.even and law.exchangeable):
        raise ValueError(
            f"the law must be even and have exchangeable coordinates; {law.describe()} is not known to be"
        )
    eta = exact(finite_number("step_size", step_size))
    variance = exact(finite_nonnegative("noise", noise)) ** 2
    v = Fraction(law.moment(2, d))
    q = Fraction(law.moment(4, d)) + (d - 1) * Fraction(law.joint_moment((2, 2), d))
    u = v + variance
    own = u - 2 * eta * m * v**2 + eta**2 * m * v * (q + (m - 1) * v**2 + d * v * variance)
    if not m:
        return FewShotError(own, Fraction(0))
    if end_token_square is None:
        return FewShotError(own, eta**2 * u * ((m - 1) * d * v**2 + q))
    size = exact(finite_nonnegative("end_token_square", end_token_square))
    return FewShotError(own, eta**2 * size * (m * v * u + (m - 1) * v**2 + q / d))


def _previous(sequence: np.ndarray) -> np.ndarray:
    """Return s_{t−1}, with s_0 = 0."""
    return np.concatenate([np.zeros_like(sequence[..., :1, :]), sequence[..., :-1, :]], -2)


def _sequence(value: Any) -> np.ndarray:
    sequence = finite_reals("sequence", value)
    if sequence.ndim < 2 or sequence.shape[-1] == 0:
        raise ValueError(f"sequence must have shape (…, T, d), got {sequence.shape}")
    return sequence
