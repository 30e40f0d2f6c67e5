"""Gradient descent with a preconditioner."""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax
from jax import Array

from mesascope.core import integer_at_least

from ._arithmetic import einsum, in_precision_of
from ._checks import matrix_or_diagonal
from ._fitting import learner
from ._learner import Features, Learner
from ._moments import NormalEquations


@learner(
    "preconditioned-gradient-descent",
    family="descent",
    flexibility=200,
    example={"preconditioner": (0.1, 0.2, 0.3)},
)
class PreconditionedGradientDescent(Learner):
    r"""$K$ steps of gradient descent with a preconditioner, from $W_0 = 0$, and a map of the outputs.

    $$W_{k+1} = W_k + (\bar C - W_k \bar S) R, \qquad \hat y = L W_K q.$$

    One step is $\hat y = L \bar C R q$. With $R = \eta I$ and $L = I$ it is gradient descent. The step size is part of $R$;
    a factor may be moved between $R$ and $L$.

    Args:
        preconditioner: $R$, a matrix of shape (p, p) or the diagonal (p,) of one; real or complex.
        output_map: $L$, shape (m, m) or (m,); by default the identity.
        steps: $K \ge 1$.

    Raises:
        TypeError, ValueError: maps that are not finite or have another number of axes, `steps` is not an integer ≥ 1; in
            predictions, maps that do not fit the data.

    Source: ahn2023, Lemma 1, with $A = R^\top$; zheng2024, section on the full-one token, where $R$ and $L$ have the form
    $\alpha I + \beta 1 1^\top$.
    """

    reads: ClassVar[type[Features]] = NormalEquations

    preconditioner: Array
    output_map: Array | None
    steps: int = eqx.field(static=True)

    def __init__(self, preconditioner: Any, output_map: Any = None, steps: int = 1):
        self.preconditioner = matrix_or_diagonal("preconditioner", preconditioner)
        self.output_map = None if output_map is None else matrix_or_diagonal("output_map", output_map)
        self.steps = integer_at_least("steps", steps, 1)

    @property
    def rotation_invariant(self) -> bool:
        """No: the preconditioner has coordinates."""
        return False

    def respond(self, features: NormalEquations) -> Array:
        """Return the prediction, shape (…, m)."""
        first = _apply_map("preconditioner", self.preconditioner, features.query)

        def step(_: Any, query: Array) -> Array:
            gram = einsum("...ij,...j->...i", features.gram, query)
            return first + query - _apply_map("preconditioner", self.preconditioner, gram)

        query = jax.lax.fori_loop(1, self.steps, step, first)  # (Σ_{k<K} (I − R S̄)^k) R q
        output = einsum("...mp,...p->...m", features.cross, query)
        return output if self.output_map is None else _apply_map("output_map", self.output_map, output)


def _apply_map(name: str, matrix: Array, vector: Array) -> Array:
    """Return a matrix, or the diagonal of one, times vectors (…, size)."""
    if matrix.shape[-1] != vector.shape[-1]:
        raise ValueError(f"{name} of shape {matrix.shape} does not fit vectors of {vector.shape[-1]} entries")
    matrix = in_precision_of(vector, matrix)
    return matrix * vector if matrix.ndim == 1 else einsum("ij,...j->...i", matrix, vector)
