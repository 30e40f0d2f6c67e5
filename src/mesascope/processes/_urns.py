"""Independent symbols, every sequence with probabilities of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..specs import kind
from ._alphabet import Concentration, Symbols
from ._symbol_process import SymbolProcess, urn_probabilities

if TYPE_CHECKING:
    from jaxtyping import Array, Float, Int, PRNGKeyArray


@kind("urns")
class Urns(SymbolProcess):
    r"""Sequences of independent symbols $s_t \sim p$ with probabilities $p$ drawn for every sequence.

    $p$ is Dirichlet($\alpha, \dots, \alpha$): balls of $S$ colours are drawn from an urn, with replacement (wurgaft2025). The
    best prediction of every next symbol is `UnigramPosterior`.

    Args:
        symbols: the number $S$ of symbols, 2 … 65536.
        concentration: the parameter $\alpha$ of the Dirichlet prior, between 1e-30 and 1e30; 1 is uniform.
    """

    symbols: Symbols = 3
    concentration: Concentration = 1

    @property
    def task_shape(self) -> tuple[int]:
        """The shape (S,) of the probabilities of an urn."""
        return (self.symbols,)

    def draw_tasks(self, key: PRNGKeyArray, count: int) -> Float[Array, "count S"]:
        """Draw the probabilities of independent urns, shape `(count, S)`."""
        from ._symbol_draws import dirichlet

        return dirichlet(key, float(self.concentration), self.symbols, (count,))

    def sequences_of(
        self, key: PRNGKeyArray, tasks: Float[Array, "batch S"], horizon: int
    ) -> Int[Array, "batch horizon"]:
        """Draw one sequence from each urn."""
        from ._symbol_draws import independent_symbols

        return independent_symbols(key, tasks, horizon)

    def probabilities_of(self, sequences: np.ndarray) -> np.ndarray:
        """Return the probability of each of the sequences, shape (n, T) → (n,): that of Pólya's urn."""
        return urn_probabilities(sequences, np.zeros_like(sequences), self.symbols, float(self.concentration))

    def probabilities_given(self, sequences: np.ndarray, tasks: np.ndarray) -> np.ndarray:
        """Return the probability of each of the sequences (n, T) given each of the urns (count, S) → (count, n)."""
        return np.asarray(tasks[:, sequences].prod(-1))
