"""Markov chains, every one with a transition matrix of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..specs import kind
from ._alphabet import Concentration, Symbols
from ._symbol_process import SymbolProcess, urn_probabilities

if TYPE_CHECKING:
    from jaxtyping import Array, Float, Int, PRNGKeyArray


@kind("markov-chains")
class MarkovChains(SymbolProcess):
    r"""Sequences $s_{t+1} \sim \pi(s_t, \cdot)$ with a transition matrix $\pi$ drawn for every sequence.

    The $S$ rows of $\pi$ are independent and Dirichlet($\alpha, \dots, \alpha$), and the first symbol is uniform. The best
    prediction of every next symbol is `DirichletPosterior`. `MarkovTree` has the chains of nichani2024, of which only the last
    symbol is to be predicted.

    Args:
        symbols: the number $S$ of symbols, 2 … 65536; the transition matrices of a batch take at most 2 GiB.
        concentration: the parameter $\alpha$ of the Dirichlet prior, between 1e-30 and 1e30; 1 is uniform.
    """

    symbols: Symbols = 3
    concentration: Concentration = 1

    @property
    def task_shape(self) -> tuple[int, int]:
        """The shape (S, S) of a transition matrix."""
        return (self.symbols, self.symbols)

    def draw_tasks(self, key: PRNGKeyArray, count: int) -> Float[Array, "count S S"]:
        """Draw independent transition matrices, shape `(count, S, S)`; rows are of the symbol before."""
        from ._symbol_draws import dirichlet

        return dirichlet(key, float(self.concentration), self.symbols, (count, self.symbols))

    def sequences_of(
        self, key: PRNGKeyArray, tasks: Float[Array, "batch S S"], horizon: int
    ) -> Int[Array, "batch horizon"]:
        """Draw one chain for each transition matrix, from a uniform first symbol."""
        from ._symbol_draws import chain_symbols

        return chain_symbols(key, tasks, horizon)

    def probabilities_of(self, sequences: np.ndarray) -> np.ndarray:
        """Return the probability of each of the sequences, shape (n, T) → (n,): what follows each symbol is an urn."""
        before, after = sequences[:, :-1], sequences[:, 1:]
        return urn_probabilities(after, before, self.symbols, float(self.concentration)) / self.symbols

    def probabilities_given(self, sequences: np.ndarray, tasks: np.ndarray) -> np.ndarray:
        """Return the probability of each of the sequences (n, T) given each of the matrices (count, S, S) → (count, n)."""
        return np.asarray(tasks[:, sequences[:, :-1], sequences[:, 1:]].prod(-1) / self.symbols)
