r"""Linear attention on features: the optimal attention for given features, and its loss (kim2024, arXiv 2402.01258).

Setting: labels $y = v^\top f(x)$ with targets $f : \mathbb R^d \to \mathbb R^k$ shared by all prompts and $v$ drawn for every
prompt, $E v = 0$, $E v v^\top = \tau I$; a network computes features $h(x) \in \mathbb R^m$ and linear attention predicts

$$\hat y = \frac1N \sum_{i \le N} y_i\, h(x_i)^\top W h(x_q).$$

With $S = E h h^\top$, $M = E f h^\top$, $F = E f f^\top$ and $R = E |f|^2 h h^\top$ the loss is quadratic in $W$,

$$\tfrac12 E (\hat y - y_q)^2 = \tau \big( \tfrac12 \mathrm{tr} F - \mathrm{tr}\, M W M^\top + \tfrac12
\mathrm{tr}\, G W S W^\top \big), \qquad G = (1 - \tfrac1N) M^\top M + \tfrac1N R.$$
"""

from typing import Any, NamedTuple

import numpy as np

from ..core import finite_positive, finite_reals, integer_at_least
from ..specs import Number

_CUTOFF = 1e-12  # eigenvalues of the Gram matrix below this fraction of the largest: dependent features


class FeatureMoments(NamedTuple):
    """The moments through which the loss depends on features and targets: S (m, m), M (k, m), F (k, k), R (m, m)."""

    gram: np.ndarray
    cross: np.ndarray
    targets: np.ndarray
    weighted: np.ndarray


def feature_moments(features: Any, targets: Any, weights: Any = None) -> FeatureMoments:
    r"""Return the moments of features and targets on finitely many inputs.

    Args:
        features: $h(x_p)$, shape `(P, m)`.
        targets: $f(x_p)$, shape `(P, k)`.
        weights: probabilities of the inputs, shape `(P,)`; by default all equal.

    Raises:
        TypeError, ValueError: arrays that are not real and finite, or do not fit.
    """
    h, f = finite_reals("features", features), finite_reals("targets", targets)
    if h.ndim != 2 or f.ndim != 2 or len(h) != len(f) or h.size == 0 or f.size == 0:
        raise ValueError(f"features must be (P, m) and targets (P, k), got {h.shape} and {f.shape}")
    p = np.full(len(h), 1 / len(h)) if weights is None else finite_reals("weights", weights)
    if p.shape != (len(h),):
        raise ValueError(f"weights must be ({len(h)},), one for every input, got {p.shape}")
    weighted = p[:, None] * h
    size = np.sum(f**2, 1)
    return FeatureMoments(
        weighted.T @ h, (p[:, None] * f).T @ h, (p[:, None] * f).T @ f, (size[:, None] * weighted).T @ h
    )


def attention_loss(attention: Any, moments: FeatureMoments, examples: int, variance: Number = 1) -> float:
    r"""Return the population loss $\tfrac12 E (\hat y - y_q)^2$ of attention $W$ after $N$ examples.

    Args:
        attention: $W$, shape `(m, m)`.
        moments: $S, M, F, R$.
        examples: $N \ge 1$.
        variance: $\tau > 0$.

    Raises:
        TypeError, ValueError: an attention of another shape, or numbers out of range.

    Source: derived here from the setting of kim2024, sections 2.1 and 2.2 (second-hand), which take $N \to \infty$.
    """
    w = finite_reals("attention", attention)
    if w.shape != moments.gram.shape:
        raise ValueError(f"attention must be {moments.gram.shape} for these features, got {w.shape}")
    power = np.trace(_memory(moments, examples) @ w @ moments.gram @ w.T)
    agreement = np.trace(moments.cross @ w @ moments.cross.T)
    tau = float(finite_positive("variance", variance))
    return float(tau * (np.trace(moments.targets) / 2 - agreement + power / 2))


def optimal_attention(moments: FeatureMoments, examples: int) -> np.ndarray:
    r"""Return the optimal attention for given features.

    $$W_* = G^{-1} M^\top M\, S^{-1}$$

    where the gradient $G W S - M^\top M$ is zero; for $N \to \infty$ and at most as many features as targets it is
    $S^{-1}$: least squares in the features. Of several minima it is the one of minimum norm.

    Arguments and errors as in `attention_loss`. Source: derived here.
    """
    product = moments.cross.T @ moments.cross
    inverse = np.linalg.pinv(_memory(moments, examples), _CUTOFF, hermitian=True)
    return np.asarray(inverse @ product @ np.linalg.pinv(moments.gram, _CUTOFF, hermitian=True))


def optimal_loss(moments: FeatureMoments, examples: int, variance: Number = 1) -> float:
    r"""Return the loss of `optimal_attention`, $\frac\tau2 (\mathrm{tr} F - \mathrm{tr}\, M^\top M\, W_*)$.

    Arguments and errors as in `attention_loss`. Source: derived here.
    """
    agreement = np.trace(moments.cross @ optimal_attention(moments, examples) @ moments.cross.T)
    tau = float(finite_positive("variance", variance))
    return float(tau * (np.trace(moments.targets) - agreement) / 2)


def distance_from_span(moments: FeatureMoments) -> float:
    r"""Return the fraction of the targets outside the span of the features, $1 - \mathrm{tr}(M S^{-1} M^\top)/\mathrm{tr} F$.

    The loss of `optimal_attention` for $N \to \infty$ is $\frac12 \tau\, \mathrm{tr} F$ times this: with infinitely many
    examples only the span of the features matters.

    Args:
        moments: $S, M, F$.

    Source: derived here; the objective over features that kim2024 studies.
    """
    inverse = np.linalg.pinv(moments.gram, _CUTOFF, hermitian=True)
    return float(1 - np.trace(moments.cross @ inverse @ moments.cross.T) / np.trace(moments.targets))


def relu_kernel(first: Any, second: Any) -> np.ndarray:
    r"""Return $E\,\mathrm{relu}(a^\top x)\,\mathrm{relu}(b^\top x)$ for $x \sim N(0, I)$, the arc-cosine kernel of degree 1.

    $$\frac{|a| |b|}{2 \pi} (\sin \theta + (\pi - \theta) \cos \theta), \qquad \theta = \angle(a, b)$$

    Args:
        first: non-zero vectors $a$, shape `(m, d)`.
        second: non-zero vectors $b$, shape `(k, d)`.

    Returns:
        Shape `(m, k)`.

    Raises:
        TypeError, ValueError: arrays that are not real and finite, or do not fit.

    Source: Cho and Saul 2009 (arc-cosine kernels); used here for the features of kim2024.
    """
    a, b = finite_reals("first", first), finite_reals("second", second)
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1]:
        raise ValueError(f"first and second must be (m, d) and (k, d), got {a.shape} and {b.shape}")
    sizes = np.linalg.norm(a, axis=1)[:, None] * np.linalg.norm(b, axis=1)
    if np.any(sizes == 0):
        raise ValueError("first and second must not contain the vector 0, whose feature is 0")
    cosine = np.clip(a @ b.T / sizes, -1, 1)
    angle = np.arccos(cosine)
    return np.asarray(sizes / (2 * np.pi) * (np.sin(angle) + (np.pi - angle) * cosine))


def relu_span_loss(vectors: Any, targets: Any, ridge: Number = 1e-9) -> tuple[float, np.ndarray]:
    r"""Return the distance of ReLU targets from the span of ReLU features, and its gradient in the features.

    $\ell(w) = 1 - \mathrm{tr}\, M (S + r I)^{-1} M^\top/\mathrm{tr} F$ with the kernels $S, M, F$ of features
    $\mathrm{relu}(\hat w_j^\top x)$, $\hat w = w/|w|$, and targets $\mathrm{relu}(v_i^\top x)$, $x \sim N(0, I)$: the loss
    of the optimal attention with infinitely many examples (`distance_from_span`), up to the effect of $r$.

    Args:
        vectors: non-zero $w$, shape `(m, d)`.
        targets: non-zero $v$, shape `(k, d)`.
        ridge: $r > 0$, which allows equal features.

    Returns:
        $\ell \in (0, 1)$ and $\partial \ell / \partial w$, shape `(m, d)`.

    Raises:
        TypeError, ValueError: as `relu_kernel`.

    Source: derived here; $\partial_b E\,\mathrm{relu}(a^\top x)\,\mathrm{relu}(b^\top x) = \frac1{2\pi} (|a| \sin\theta\,
    \hat b + (\pi - \theta) a)$.
    """
    w = finite_reals("vectors", vectors)
    sizes = np.linalg.norm(w, axis=-1, keepdims=True)
    unit, v = w / np.where(sizes == 0, 1, sizes), finite_reals("targets", targets)
    gram, cross = relu_kernel(unit, unit), relu_kernel(v, unit)
    total = float(np.trace(relu_kernel(v, v)))
    solved = np.linalg.solve(gram + float(finite_positive("ridge", ridge)) * np.eye(len(w)), cross.T)
    slope = 2 * (_kernel_slopes(unit, solved @ solved.T, unit) - _kernel_slopes(v, solved.T, unit)) / total
    tangent = slope - np.sum(slope * unit, 1, keepdims=True) * unit
    return float(1 - np.sum(cross * solved.T) / total), tangent / sizes


def mean_field_loss(outputs: Any, vectors: Any, targets: Any) -> tuple[float, np.ndarray, np.ndarray]:
    r"""Return the distance of ReLU targets from the span of a network's features, and its gradients in the network.

    The features are the outputs $h(x) = \frac1M \sum_j a_j\, \mathrm{relu}(w_j^\top x)$ of $M$ neurons, one for every target;
    with the kernels $K, C, F$ of neurons and targets, $x \sim N(0, I)$,

    $$\ell = 1 - \frac{\mathrm{tr}\, T S^{-1} T^\top}{\mathrm{tr} F}, \qquad S = \frac1{M^2} A^\top K A, \quad
    T = \frac1M C A,$$

    the loss of the optimal attention with infinitely many examples. It depends on the distribution of $(a, w)$ alone:
    $\dot\theta_j = -M\, \partial \ell/\partial \theta_j$ for $\theta_j = (a_j, w_j)$ is its Wasserstein gradient flow.

    Args:
        outputs: $A$, the $a_j$ as rows, shape `(M, k)`.
        vectors: non-zero $w_j$, shape `(M, d)`.
        targets: non-zero $v$, shape `(k, d)`.

    Returns:
        $\ell$, $\partial \ell/\partial A$ and $\partial \ell/\partial w$.

    Raises:
        TypeError, ValueError: as `relu_kernel`; outputs of another shape.

    Source: kim2024, sections 2.1 and 3.1 (second-hand), for ReLU neurons; the kernels as in `relu_span_loss`.
    """
    w, v, a = (
        finite_reals(*one) for one in (("vectors", vectors), ("targets", targets), ("outputs", outputs))
    )
    gram, cross = relu_kernel(w, w), relu_kernel(v, w)
    if a.shape != (len(w), len(v)):
        raise ValueError(f"outputs must have shape {(len(w), len(v))}, got {a.shape}")
    count, total = len(w), float(np.trace(relu_kernel(v, v)))
    seen = cross @ a / count
    solved = np.linalg.solve(a.T @ gram @ a / count**2, seen.T)
    read = a @ solved / count  # of the neurons by the best attention
    by_outputs = 2 * (gram @ read @ solved.T - cross.T @ solved.T) / (count * total)
    sizes = np.linalg.norm(w, axis=1, keepdims=True)
    unit = w / sizes
    slopes = _kernel_slopes(w, read @ read.T, unit) - _kernel_slopes(v, read.T, unit)
    return float(1 - np.sum(seen * solved.T) / total), by_outputs, 2 * slopes / total


def _kernel_slopes(a: np.ndarray, weights: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return Σ_i weights_ij ∂κ(a_i, b_j)/∂b_j for unit vectors b, shape (m, d)."""
    sizes = np.linalg.norm(a, axis=1)
    cosine = np.clip(a @ b.T / sizes[:, None], -1, 1)
    angle = np.arccos(cosine)
    radial = np.sum(weights * sizes[:, None] * np.sin(angle), 0)
    return np.asarray((radial[:, None] * b + (weights * (np.pi - angle)).T @ a) / (2 * np.pi))


def _memory(moments: FeatureMoments, examples: int) -> np.ndarray:
    """Return G = E g gᵀ/τ for the summary of the examples g = (1/N) Σ y_i h(x_i)."""
    n = integer_at_least("examples", examples, 1)
    return np.asarray((1 - 1 / n) * moments.cross.T @ moments.cross + moments.weighted / n)
