r"""Latent causal graphs and attention that learns them (nichani2024, arXiv 2402.14735).

Setting: symbols $s_1, \dots, s_T$ out of $S$; position $i$ has at most one parent $p(i) < i$, and $s_i \sim
\pi(s_{p(i)}, \cdot)$ with a transition matrix $\pi$ drawn for every sequence, its rows independent and
$\mathrm{Dirichlet}(\alpha, \dots, \alpha)$. The last symbol $s_T$ is uniform, and $s_{T+1} \sim \pi(s_T, \cdot)$ is the
target. With one-hot tokens $x_i$ two layers of attention give the probabilities

$$c_i = \sum_{j \le i} \mathrm{softmax}_j(A^{(1)}_{ij})\, x_j, \qquad
f = \sum_{i \le T} \mathrm{softmax}_i(x_T^\top A^{(2)} c_i)\, x_i,$$

with scores of positions $A^{(1)} \in \mathbb R^{T \times T}$ and of symbols $A^{(2)} \in \mathbb R^{S \times S}$.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy  # its parts are imported where they are first used: half a second, which few programs need

from ..core import finite_number, finite_positive, integer_at_least
from ..specs import Number, show

Parents = Sequence[int | None]
ParentSets = Sequence[Sequence[int]]
_SUM = 1e-9  # rounding of a sum of probabilities


class AttentionScores(NamedTuple):
    """$A^{(1)}$, shape (T, T), with unused entries above the diagonal, and $A^{(2)}$, shape (S, S)."""

    positions: np.ndarray
    symbols: np.ndarray


class DisentangledTransformer(NamedTuple):
    """Weights of two layers of softmax attention. Blocks of the stream: token, position, token of every parent, prediction.

    Attributes:
        embedding: one-hot symbols into the first block, shape (width, S).
        positions: one-hot positions in the second block, shape (T, width).
        layers: for both layers `w_k`, `w_q` (heads, key size, width), `w_p` (heads, width, S), `w_v` (heads, S, width).
        readout: the last block, shape (S, width).
    """

    embedding: np.ndarray
    positions: np.ndarray
    layers: tuple[dict[str, np.ndarray], dict[str, np.ndarray]]
    readout: np.ndarray


def attention_scores(parents: Parents, states: int, first: Number, second: Number) -> AttentionScores:
    r"""Return the scores with which layer one attends to the parent and layer two to positions with equal parent symbols.

    $A^{(1)}_{i, p(i)} = \beta_1$, all other entries are 0, so that roots attend uniformly to all earlier positions and
    themselves; $A^{(2)} = \beta_2 I$.

    Args:
        parents: for each of the $T$ positions the index of its parent, counted from 0, or `None`.
        states: $S \ge 1$.
        first: $\beta_1$.
        second: $\beta_2$.

    Raises:
        TypeError, ValueError: arguments that are not finite numbers, or `states` below 1.

    Source: nichani2024, the construction with its main theorem.
    """
    sharp = float(finite_number("first", first)), float(finite_number("second", second))
    positions = np.zeros((len(parents), len(parents)))
    for child, parent in enumerate(parents):
        if parent is not None:
            positions[child, parent] = sharp[0]
    return AttentionScores(positions, sharp[1] * np.eye(integer_at_least("states", states, 1)))


def disentangled_transformer(scores: AttentionScores) -> DisentangledTransformer:
    r"""Return weights of two layers of softmax attention with residual connections that have these scores.

    The stream has $S + T + 2S$ entries: the token, its position, and the outputs of the two layers.
    Queries are multiplied by the square root of the key size, by which attention divides.

    Source: nichani2024, the disentangled transformer, whose layers append their outputs.
    """
    size, states = len(scores.positions), len(scores.symbols)
    token, place, copied, answer = np.split(
        np.eye(3 * states + size), np.cumsum([states, size, states]), axis=0
    )
    first = {
        "w_k": place[None],
        "w_q": size**0.5 * (scores.positions.T @ place)[None],
        "w_p": copied.T[None],
        "w_v": token[None],
    }
    second = {
        "w_k": copied[None],
        "w_q": states**0.5 * (scores.symbols.T @ token)[None],
        "w_p": answer.T[None],
        "w_v": token[None],
    }
    return DisentangledTransformer(token.T, place, (first, second), answer)


def matched_frequencies(parents: Parents, symbols: Any, states: int, sharpness: Number) -> np.ndarray:
    r"""Return the probabilities of `attention_scores` with $\beta_1 = \infty$, computed by counting.

    $$f_b = \frac{\sum_i e^{\beta m_i} [s_i = b]}{\sum_i e^{\beta m_i}}, \qquad m_i = [s_{p(i)} = s_T],$$

    and for roots $m_i$ is the fraction of $s_T$ among $s_1, \dots, s_i$. Without roots, with $N_b$ the number of times that
    $b$ followed $s_T$ and $n = \sum_b N_b$, $f_b = (N_b + e^{-\beta} M_b)/(n + e^{-\beta} M)$ where $M_b$ counts all other
    positions with $b$: frequencies that are shrunk towards those of all symbols, as a prior shrinks them towards uniform.

    Args:
        parents: as in `attention_scores`.
        symbols: $s_1, \dots, s_T$ from 0 to $S - 1$, shape `(..., T)`.
        states: $S$.
        sharpness: $\beta$.

    Returns:
        $f$, shape `(..., S)`.

    Raises:
        TypeError, ValueError: entries that are not symbols, or not one for every position.

    Source: derived here, for the construction of nichani2024.
    """
    s, m = _checked_symbols(parents, symbols, integer_at_least("states", states, 1))
    hits = s == s[..., -1:]
    matches = np.cumsum(hits, -1) / np.arange(1, s.shape[-1] + 1)
    for child, parent in enumerate(parents):
        if parent is not None:
            matches[..., child] = hits[..., parent]
    return _frequencies(s, m, float(finite_number("sharpness", sharpness)) * matches)


def chain_transformer(
    order: int, size: int, states: int, first: Number, second: Number
) -> DisentangledTransformer:
    r"""Return two layers of softmax attention for chains of order $k$, in which every position has $k$ parents.

    Head $h \le k$ of the first layer copies the symbol $h$ positions before, and the second layer compares the last $k$
    symbols with those before every position $i$:

    $$A^{(1,h)}_{i, i-h} = \beta_1, \qquad \text{score}_{T,i} = \beta_2 \Big(x_T^\top c^{(1)}_i +
    \sum_{h=2}^k c^{(h-1)\top}_T c^{(h)}_i\Big).$$

    All other entries of $A^{(1,h)}$ are 0: where nothing is $h$ positions before, the head attends uniformly. The stream has
    $S + T + kS + S$ entries: token, position, the outputs of the heads, and the prediction.

    Args:
        order: $k \ge 1$.
        size: $T \ge k$, the number of positions.
        states: $S \ge 1$.
        first: $\beta_1$.
        second: $\beta_2$.

    Raises:
        TypeError, ValueError: arguments that are not finite numbers, or out of range.

    Source: derived here; for $k = 1$ it is `disentangled_transformer` of the chain. nichani2024 trains a head for each parent.
    """
    k, m = integer_at_least("order", order, 1), integer_at_least("states", states, 1)
    size = integer_at_least("size", size, k)
    sharp, scale = float(finite_number("first", first)), float(finite_number("second", second))
    ends = np.cumsum([m, size, *[m] * k])
    token, place, *copied, answer = np.split(np.eye(ends[-1] + m), ends, axis=0)
    scores = np.stack([sharp * np.eye(size, k=-h) for h in range(1, k + 1)])
    heads = {
        "w_k": np.stack([place] * k),
        "w_q": size**0.5 * np.swapaxes(scores, 1, 2) @ place,
        "w_p": np.stack([one.T for one in copied]),
        "w_v": np.stack([token] * k),
    }
    comparison = {
        "w_k": np.concatenate(copied)[None],
        "w_q": (k * m) ** 0.5 * scale * np.concatenate([token, *copied[:-1]])[None],
        "w_p": answer.T[None],
        "w_v": token[None],
    }
    return DisentangledTransformer(token.T, place, (heads, comparison), answer)


def matched_contexts(symbols: Any, states: int, order: int, sharpness: Number) -> np.ndarray:
    r"""Return the probabilities of `chain_transformer` with $\beta_1 = \infty$, computed by counting.

    $$f_b = \frac{\sum_i e^{\beta m_i} [s_i = b]}{\sum_i e^{\beta m_i}}, \qquad
    m_i = \sum_{h=1}^k [s_{i-h} = s_{T+1-h}],$$

    where for $i \le h$ the fraction of $s_{T+1-h}$ among $s_1, \dots, s_i$ takes the place of the bracket. For
    $\beta \to \infty$ these are the frequencies of what followed the last $k$ symbols, if they occurred before. If the last
    $k$ symbols all equal $s_1$, the first positions, as long as they repeat $s_1$ (at most $k$), count too, although nothing
    comes before them.

    Args:
        symbols: $s_1, \dots, s_T$ from 0 to $S - 1$, shape `(..., T)`.
        states: $S$.
        order: $k$, from 1 to $T$.
        sharpness: $\beta$.

    Returns:
        $f$, shape `(..., S)`.

    Raises:
        TypeError, ValueError: entries that are not symbols, or arguments out of range.

    Source: derived here, for chains of order $k$.
    """
    if np.ndim(symbols) < 1:
        raise ValueError(f"symbols must be (..., T), got {np.shape(symbols)}")
    size = np.shape(symbols)[-1]
    s, m = _checked_symbols([None] * size, symbols, integer_at_least("states", states, 1))
    k = integer_at_least("order", order, 1)
    if k > size:
        raise ValueError(f"order must be at most the number of symbols, {size}, got {k}")
    matches = np.zeros(s.shape)
    for h in range(1, k + 1):
        hits = s == s[..., size - h, None]
        matches[..., h:] += hits[..., :-h]
        matches[..., :h] += np.cumsum(hits[..., :h], -1) / np.arange(1, h + 1)
    return _frequencies(s, m, float(finite_number("sharpness", sharpness)) * matches)


def _frequencies(s: np.ndarray, states: int, exponents: np.ndarray) -> np.ndarray:
    """Frequencies of the symbols with weights e^{exponents}, shape (..., T) → (..., S)."""
    weights = np.exp(exponents - exponents.max(-1, keepdims=True))
    sums = np.stack([np.sum(weights * (s == b), -1) for b in range(states)], -1)
    return np.asarray(sums / sums.sum(-1, keepdims=True))


def posterior_mean(parents: Parents, symbols: Any, states: int, alpha: Number) -> np.ndarray:
    r"""Return the posterior mean of $\pi(s_T, \cdot)$ given the transitions along the graph.

    $$\hat\pi_b = \frac{N_b + \alpha}{n + S \alpha}$$

    It is the Bayes predictor if roots are independent of $\pi$. Roots from the stationary distribution of $\pi$ contain
    some more information, which it does not use.

    Args:
        parents: as in `attention_scores`.
        symbols: $s_1, \dots, s_T$, shape `(..., T)`.
        states: $S$.
        alpha: $\alpha > 0$.

    Returns:
        $\hat\pi$, shape `(..., S)`.

    Raises:
        TypeError, ValueError: as `matched_frequencies`, and for $\alpha \le 0$.

    Source: nichani2024 (Bayes predictor); the Dirichlet prior is conjugate.
    """
    sets = [() if parent is None else (parent,) for parent in parents]
    return posterior_mean_of_parents([*sets, (len(sets) - 1,)], symbols, states, alpha)


def posterior_mean_of_parents(parents: ParentSets, symbols: Any, states: int, alpha: Number) -> np.ndarray:
    r"""Return the posterior mean of the next symbol where positions have several parents.

    $$\hat\pi_b = \frac{N_b + \alpha}{\sum_c N_c + S \alpha}$$

    $N_b$ is how often $b$ stood at a position $i \le T$ that has as many parents as the next one, and the same symbols at them.
    It is the Bayes predictor of `MarkovGraph`.

    Args:
        parents: for positions $1, \dots, T + 1$ the indices of their parents, counted from 0; none for a root.
        symbols: $s_1, \dots, s_T$, shape `(..., T)`.
        states: $S$.
        alpha: $\alpha > 0$.

    Returns:
        $\hat\pi$, shape `(..., S)`.

    Raises:
        TypeError, ValueError: entries that are not symbols, or not one for every position but the last; a parent that is no
            earlier position; $\alpha \le 0$.

    Source: nichani2024, the authors' `problems.py`, `InContextDAG.bayes`; the Dirichlet prior is conjugate.
    """
    *known, asked = parents
    s, m = _checked_symbols(known, symbols, integer_at_least("states", states, 1))
    found = np.full((*s.shape[:-1], m), float(finite_positive("alpha", alpha)))
    for child, own in enumerate(parents):
        if any(not 0 <= parent < child for parent in own):
            raise ValueError(f"parents[{child}] must be earlier positions, got {show(list(own))}")
    for child, own in enumerate(known):
        if asked and len(own) == len(asked):  # roots tell nothing of another root
            matched = (s[..., list(own)] == s[..., list(asked)]).all(-1)
            found += matched[..., None] & (s[..., child, None] == np.arange(m))
    return found / found.sum(-1, keepdims=True)


def mutual_information(sequences: Any, probabilities: Any, states: int) -> np.ndarray:
    r"""Return the mutual information of the symbols at two positions, in nats.

    $$I_{ij} = \sum_{a, b} P(s_i = a, s_j = b) \log \frac{P(s_i = a, s_j = b)}{P(s_i = a) P(s_j = b)}$$

    On a tree no earlier position tells more about $s_i$ than its parent (data processing inequality). With several parents it
    tells no more than all of them together, but it may tell more than one of them.

    Args:
        sequences: all that are possible, symbols from 0 to $S - 1$, shape `(n, T)`.
        probabilities: of the sequences, shape `(..., n)`, of sum 1.
        states: $S$.

    Returns:
        Shape `(..., T, T)`; the entropies of the positions are on the diagonal.

    Raises:
        TypeError, ValueError: entries that are not symbols, or not one probability for each sequence, at least 0 and of sum 1.

    Source: its definition; nichani2024 says that the gradient of attention encodes it, for one parent.
    """
    m = integer_at_least("states", states, 1)
    s, _ = _checked_symbols([None] * np.shape(sequences)[-1], sequences, m)
    p = np.asarray(probabilities, float)
    if s.ndim != 2 or p.shape[-1:] != (len(s),):
        raise ValueError(f"probabilities must be (..., {len(s)}), one for each sequence, got {p.shape}")
    if not (p >= 0).all() or np.abs(p.sum(-1) - 1).max(initial=0) > _SUM:
        raise ValueError("probabilities must be at least 0 and of sum 1")
    one_hot = (s[..., None] == np.arange(m)).reshape(len(s), -1).astype(float)
    joint = (one_hot.T * p[..., None, :]) @ one_hot
    alone = np.einsum("...kk->...k", joint)
    logs = np.log(np.where(alone > 0, alone, 1.0))
    terms = joint * (np.log(np.where(joint > 0, joint, 1.0)) - logs[..., :, None] - logs[..., None, :])
    return np.asarray(terms.reshape(*p.shape[:-1], s.shape[1], m, s.shape[1], m).sum((-3, -1)))


def posterior_loss(observations: int, states: int, alpha: Number) -> float:
    r"""Return the expected cross-entropy of the posterior mean for the next symbol of a row, in nats.

    After $n$ independent draws from a row $\pi(a, \cdot) \sim \mathrm{Dirichlet}(\alpha, \dots, \alpha)$ the count of one
    symbol is beta-binomial with parameters $n$, $\alpha$, $(S-1)\alpha$:

    $$L_n = -S \sum_{j=0}^n P(N = j)\, \frac{j + \alpha}{n + S\alpha} \log \frac{j + \alpha}{n + S\alpha},$$

    It decreases from $L_0 = \log S$ to `entropy_of_rows`.

    Args:
        observations: $n \ge 0$.
        states: $S \ge 2$.
        alpha: $\alpha > 0$.

    Raises:
        TypeError, ValueError: a number out of range.

    Source: derived here (nichani2024 compares with this loss of the Bayes predictor).
    """
    n, m = integer_at_least("observations", observations, 0), integer_at_least("states", states, 2)
    a = float(finite_positive("alpha", alpha))
    gammaln, betaln = scipy.special.gammaln, scipy.special.betaln
    j = np.arange(n + 1)
    log_binomial = gammaln(n + 1) - gammaln(j + 1) - gammaln(n - j + 1)
    probabilities = np.exp(log_binomial + betaln(j + a, n - j + (m - 1) * a) - betaln(a, (m - 1) * a))
    predicted = (j + a) / (n + m * a)
    return float(-m * np.sum(probabilities * predicted * np.log(predicted)))


def entropy_of_rows(states: int, alpha: Number) -> float:
    r"""Return $E H(\pi(a, \cdot)) = \psi(S\alpha + 1) - \psi(\alpha + 1)$, the loss if $\pi$ is known, in nats.

    Arguments and errors as in `posterior_loss`, whose limit for $n \to \infty$ it is. Source: derived here.
    """
    a, m = float(finite_positive("alpha", alpha)), integer_at_least("states", states, 2)
    return float(scipy.special.digamma(m * a + 1) - scipy.special.digamma(a + 1))


def _checked_symbols(parents: Sequence[Any], symbols: Any, states: int) -> tuple[np.ndarray, int]:
    s = np.asarray(symbols)
    if not np.issubdtype(s.dtype, np.integer):
        raise TypeError(f"symbols must be integers from 0 to {states - 1}, got {s.dtype}")
    if s.ndim < 1 or s.shape[-1] != len(parents):
        raise ValueError(f"symbols must be (..., {len(parents)}), one for every position, got {s.shape}")
    if s.size and (s.min() < 0 or s.max() >= states):
        raise ValueError(f"symbols must be in 0 to {states - 1}, got {s.min()} to {s.max()}")
    return s, states
