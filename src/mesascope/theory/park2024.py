r"""Four strategies for Markov chains of a pool, and their exact losses (park2024, arXiv 2412.01003).

Setting: every sequence $s_1 s_2 \dots$ of $S$ symbols is a Markov chain whose transition matrix is one of a pool
$T_1 \dots T_K$, each with probability $1/K$; the matrices were drawn with independent rows from
$\mathrm{Dirichlet}(\alpha, \dots, \alpha)$, and the first symbol is uniform. A model predicts $s_{t+1}$ from $s_1 \dots s_t$.
Strategies retrieve a chain of the pool or infer a new one, by unigrams or by bigrams. (The paper calls the number of chains
N, that of symbols k, and draws the first symbol from the stationary distribution.)
"""

from itertools import product
from typing import Any

import numpy as np

from ..core import finite_positive, finite_reals, integer_at_least
from ..specs import Number, show
from . import edelman2024

_MOST = 2**22  # sequences that are enumerated
STRATEGIES = ("uni-ret", "bi-ret", "uni-inf", "bi-inf")
"""The paper's strategies: unigrams or bigrams, retrieval or inference."""
_COUNTS = {"uni-inf": "unigram", "bi-inf": "bigram"}  # as in edelman2024


def stationary(matrices: Any) -> np.ndarray:
    r"""Return the stationary distributions, $\pi T = \pi$: shape (…, S, S) → (…, S).

    Raises:
        ValueError: matrices whose rows are no positive probabilities.

    Source: the elimination of Grassmann, Taksar and Heyman (1985).
    """
    chains = _chains(matrices).copy()
    size = chains.shape[-1]
    # States are eliminated from the last one on, without a difference: nothing cancels, however rare a transition is.
    for last in range(size - 1, 0, -1):
        chains[..., :last, last] /= chains[..., last, :last].sum(-1, keepdims=True)
        chains[..., :last, :last] += chains[..., :last, last, None] * chains[..., last, None, :last]
    found = np.ones(chains.shape[:-1])
    for state in range(1, size):
        found[..., state] = (found[..., :state] * chains[..., :state, state]).sum(-1)
    return _shares(found)


def probabilities(
    strategy: str, sequences: np.ndarray, matrices: Any, concentration: Number = 1.0
) -> np.ndarray:
    r"""Return the probabilities that a strategy gives to every next symbol of sequences.

    With $N_b$ the number of times that b stands in $s_1 \dots s_t$, $N_{ab}$ the number of times that b followed a in it, and
    $\pi_k$ the stationary distribution of $T_k$:

    - uni-ret: $\sum_k q_k \pi_k(b)$ with $q_k \propto \prod_b \pi_k(b)^{N_b}$;
    - bi-ret: $\sum_k q_k T_k(s_t, b)$ with $q_k \propto \prod_{ab} T_k(a, b)^{N_{ab}}$;
    - uni-inf: $(N_b + \alpha)/(t + S\alpha)$;
    - bi-inf: $(N_{ab} + \alpha)/(\sum_{b'} N_{ab'} + S\alpha)$ with $a = s_t$.

    Those that infer are the unigram and the bigram predictor of edelman2024.

    Args:
        strategy: one of `STRATEGIES`.
        sequences: integers from 0 to S − 1, shape (n, T).
        matrices: $T_1 \dots T_K$, shape (K, S, S), of positive probabilities.
        concentration: α > 0.

    Returns:
        Shape (n, T, S): entry t − 1 from $s_1 \dots s_t$.

    Raises:
        TypeError, ValueError: an unknown strategy, or arrays that are not as described.

    Source: park2024, `analysis_markov_mixture.py:175-204` and `utils.py:663-723` and `902-930` of the authors' program (commit
    e36d2d3).
    """
    chains, alpha = _chains(matrices), float(finite_positive("concentration", concentration))
    if strategy not in STRATEGIES:
        raise ValueError(f"strategy must be one of {', '.join(STRATEGIES)}, got {show(strategy)}")
    sequences, symbols = np.asarray(sequences), chains.shape[-1]
    if strategy in _COUNTS:
        lengths = range(1, sequences.shape[1] + 1)
        return np.stack(
            [edelman2024.probabilities(_COUNTS[strategy], sequences[:, :t], symbols, alpha) for t in lengths],
            1,
        )
    now = np.eye(symbols)[sequences]  # (n, T, S)
    if strategy == "uni-ret":
        resting = stationary(chains)
        return _posterior(np.cumsum(now, 1) @ np.log(resting).T) @ resting
    pairs = np.zeros((*now.shape, now.shape[-1]))
    pairs[:, 1:] = np.cumsum(now[:, :-1, :, None] * now[:, 1:, None, :], 1)
    shares = _posterior(np.einsum("ntab,kab->ntk", pairs, np.log(chains), optimize=True))
    return np.asarray(np.einsum("ntk,kab,nta->ntb", shares, chains, now, optimize=True))


def losses(matrices: Any, length: int, concentration: Number = 1.0) -> dict[str, np.ndarray]:
    r"""Return the expected cross-entropy of each strategy on chains of the pool after $t = 1 \dots T - 1$ symbols.

    It is a sum over all sequences of T symbols, weighted by their probabilities.

    Args:
        matrices: $T_1 \dots T_K$, shape (K, S, S), of positive probabilities.
        length: T ≥ 2; at most 2²² sequences of T symbols.
        concentration: α > 0, of the strategies that infer.

    Returns:
        Strategy → shape (T − 1,), in nats.

    Raises:
        TypeError, ValueError: numbers out of range.
    """
    chains = _chains(matrices)

    def chances(sequences: np.ndarray) -> np.ndarray:
        steps = chains[:, sequences[:, :-1], sequences[:, 1:]]
        return np.asarray(steps.prod(-1).mean(0) / chains.shape[-1])

    return _summed(chains, length, concentration, chances)


def losses_on_new(matrices: Any, length: int, concentration: Number = 1.0) -> dict[str, np.ndarray]:
    """Return the same on new chains, with rows drawn from the Dirichlet prior.

    Args:
        matrices: the pool of the strategies that retrieve.
        length: as for `losses`.
        concentration: as for `losses`; also of the chains.

    Raises:
        TypeError, ValueError: as `losses`.
    """
    chains, alpha = _chains(matrices), finite_positive("concentration", concentration)
    return _summed(chains, length, alpha, lambda one: edelman2024.likelihoods(one, chains.shape[-1], alpha))


def _summed(chains: np.ndarray, length: int, concentration: Number, chances: Any) -> dict[str, np.ndarray]:
    length, symbols = integer_at_least("length", length, 2), chains.shape[-1]
    if symbols**length > _MOST:
        raise ValueError(
            f"length: {symbols}^{length} sequences are more than {_MOST}; take fewer symbols or shorter sequences"
        )
    sequences = np.array(list(product(range(symbols), repeat=length)))
    weights = chances(sequences)
    rows = np.arange(length - 1)
    return {
        name: -weights
        @ np.log(
            probabilities(name, sequences[:, :-1], chains, concentration)[
                np.arange(len(sequences))[:, None], rows, sequences[:, 1:]
            ]
        )
        for name in STRATEGIES
    }


def _posterior(scores: np.ndarray) -> np.ndarray:
    return _shares(np.exp(scores - scores.max(-1, keepdims=True)))


def _shares(numbers: np.ndarray) -> np.ndarray:
    return np.asarray(numbers / numbers.sum(-1, keepdims=True))


def _chains(matrices: Any) -> np.ndarray:
    chains = finite_reals("matrices", matrices)
    square = chains.ndim == 3 and chains.size and chains.shape[1] == chains.shape[2]
    if not square or chains.min() <= 0 or abs(chains.sum(-1) - 1).max() > 1e-9:
        raise ValueError(
            f"matrices must have rows of positive probabilities with the sum 1, and the shape (K, S, S), got {chains.shape}"
        )
    return chains
