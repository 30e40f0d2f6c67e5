"""The base class of sequences of symbols with tasks that can be kept."""

from __future__ import annotations

import abc
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..core import integer_at_least, split_keys
from ..specs import Data
from ._draw_once import require_room
from ._process import SequenceProcess

if TYPE_CHECKING:
    from jaxtyping import Array, Int, PRNGKeyArray


class SymbolProcess(SequenceProcess):
    """Sequences of symbols 0 … S − 1, every one with a hidden *task* of its own, which can be drawn apart, and kept in a pool.

    Every position of a sequence is drawn by the task. `NextToken(horizon)` counts the predictions of the third symbol and later
    ones: its context lengths begin at 2.

    Attributes:
        symbols: the number S of symbols.
        task_shape: the shape of one task if it is given by probabilities: `(S,)` for those of independent symbols, `(S, S)` for
            the transition matrix of a Markov chain whose first symbol is uniform; by default None: it is something else.
    """

    data: ClassVar[Data] = "symbols"
    symbols: Any

    @property
    def dim(self) -> int:
        """The number of symbols S."""
        return int(self.symbols)

    @property
    def vocabulary(self) -> int:
        """The number of symbols S."""
        return int(self.symbols)

    @property
    def task_shape(self) -> tuple[int, ...] | None:
        """The shape of one task, if it is given by probabilities."""
        return None

    @property
    def task_numbers(self) -> int:
        """The numbers in one task."""
        return prod(self.task_shape or ())

    @abc.abstractmethod
    def draw_tasks(self, key: PRNGKeyArray, count: int) -> Any:
        """Draw independent tasks: arrays, or a tuple of arrays, with the first axis `count`."""

    @abc.abstractmethod
    def sequences_of(self, key: PRNGKeyArray, tasks: Any, horizon: int) -> Int[Array, "batch horizon"]:
        """Draw one sequence for each task: symbols 0 … S − 1 as int32, shape `(batch, horizon)`."""

    def probabilities_of(self, sequences: np.ndarray) -> np.ndarray | None:
        """Return the probability of each of the sequences, shape (n, T) → (n,); None, by default, if it is not known.

        `Enumeration` sums over all sequences with these.
        """
        return None

    def probabilities_given(self, sequences: np.ndarray, tasks: Any) -> np.ndarray | None:
        """Return the probability of each of the sequences (n, T) given each of the tasks → (count, n); None, by default.

        With these the probabilities of a `SymbolPool` are known.
        """
        return None

    def sample(self, key: PRNGKeyArray, horizon: int, batch: int) -> Int[Array, "batch horizon"]:
        """Draw independent sequences of symbols 0 … S − 1 as int32, shape `(batch, horizon)`."""
        horizon = integer_at_least("horizon", horizon, 1)
        batch = integer_at_least("batch", batch, 1)
        require_room(f"{batch} tasks", 8 * batch * self.task_numbers, "symbols")
        task_key, symbol_key = split_keys(key)
        return self.sequences_of(symbol_key, self.draw_tasks(task_key, batch), horizon)


def urn_probabilities(
    sequences: np.ndarray, urns: np.ndarray, symbols: int, concentration: float
) -> np.ndarray:
    r"""Return the probability of sequences whose symbols come from urns with Dirichlet($\alpha, \dots, \alpha$) probabilities.

    By Pólya's rule the next symbol of an urn is $s$ with probability $(c_s + \alpha)/(c + S \alpha)$ after $c$ draws from it,
    $c_s$ of them $s$.

    Args:
        sequences: symbols, shape (n, T).
        urns: the number of the urn of every symbol, shape (n, T).
        symbols: the number S.
        concentration: $\alpha$.
    """
    found = np.ones(len(sequences))
    for t in range(sequences.shape[1]):
        drawn = urns[:, :t] == urns[:, [t]]
        same = drawn & (sequences[:, :t] == sequences[:, [t]])
        found *= (same.sum(1) + concentration) / (drawn.sum(1) + symbols * concentration)
    return found
