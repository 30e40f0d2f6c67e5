"""Bare tokens as the paper has them: their process, the layer of diagonal heads that reads them, and its exact loss."""

from __future__ import annotations

from abc import abstractmethod
from itertools import product
from typing import Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mesascope.core import Estimate, named_key
from mesascope.dynamics import Flow, gradient_flow
from mesascope.models import Normalizer
from mesascope.objectives import Engine, Objective, sample_losses
from mesascope.processes import Constant, DiagonalUnitary, NextToken, SequenceProcess
from mesascope.specs import Dim, component
from mesascope.theory import sander2024 as theory

from .._claim import Settings


@component
class Eigencoordinates(SequenceProcess):
    """x_{t+1} = diag(λ) x_t from x_1 = (1, …, 1), in the eigenbasis of W.

    Attributes:
        dim: d.
    """

    dim: Dim

    @property
    @abstractmethod
    def angles(self) -> int:
        """How many eigenvalues are drawn."""

    @abstractmethod
    def completed(self, drawn: Array) -> Array:
        """All coordinates from those of drawn eigenvalues: (batch, horizon, angles) → (batch, horizon, d)."""

    @abstractmethod
    def loss(self, heads: Any, row: Any) -> Any:
        """E‖x̂ − x‖² in closed form, differentiable: C, shape (d, d), and the positions of one context length."""

    def sample(self, key: Array, horizon: int, batch: int) -> Array:
        """Independent sequences (batch, horizon, dim)."""
        return self.completed(DiagonalUnitary(Constant(1.0), self.angles).sample(key, horizon, batch))

    def every(self, horizon: int) -> Array:
        """All sequences whose angles are multiples of π/(T − 1): their mean loss is the population loss.

        An entry of an error has exponents −T+3 … T−1 in every λ_j, so that 2T − 2 roots of unity integrate its square.
        """
        steps = 2 * horizon - 2
        angles = np.array(list(product(range(steps), repeat=self.angles))) * 2 * np.pi / steps
        return self.completed(jnp.asarray(np.exp(1j * angles[:, None, :] * np.arange(horizon)[:, None])))


class IndependentEigenvalues(Eigencoordinates):
    """Every eigenvalue is drawn."""

    @property
    def angles(self) -> int:
        """All d."""
        return self.dim

    def completed(self, drawn: Array) -> Array:
        """Nothing is missing."""
        return drawn

    def loss(self, heads: Any, row: Any) -> Any:
        """`theory.sander2024.unitary_polynomial`."""
        return theory.unitary_polynomial(heads, row)

    def describe(self) -> str:
        """Return e.g. `4 independent eigenvalues`."""
        return f"{self.dim} independent eigenvalues"


class ConjugatePairs(Eigencoordinates):
    """The eigenvalues of planes that turn; d is even."""

    @property
    def angles(self) -> int:
        """One for every plane."""
        return self.dim // 2

    def completed(self, drawn: Array) -> Array:
        """Each coordinate followed by its conjugate."""
        return jnp.stack([drawn, drawn.conj()], -1).reshape(*drawn.shape[:-1], self.dim)

    def loss(self, heads: Any, row: Any) -> Any:
        """`theory.sander2024.rotation_polynomial`."""
        return theory.rotation_polynomial(heads, row)

    def describe(self) -> str:
        """Return e.g. `4 eigenvalues in conjugate pairs`."""
        return f"{self.dim} eigenvalues in conjugate pairs"


class DiagonalHeads(eqx.Module):
    """x̂_{t+1} = Σ_h Σ_{i≤t} P_ti ⟨x_{t−1}, a_h ⊙ x_i⟩ b_h ⊙ x_i: what `theory.sander2024` treats, for every context length.

    Attributes:
        a, b: rows a_h and b_h, shape (heads, d), real.
        positions: P, shape (horizon, horizon), of which the lower triangle is used.
    """

    a: Array
    b: Array
    positions: Array

    @classmethod
    def gaussian(cls, dim: int, heads: int, horizon: int, scale: float, *, key: Array) -> Self:
        """Every entry independent N(0, scale²)."""
        shapes = ((heads, dim), (heads, dim), (horizon, horizon))
        keys = jax.random.split(key, 3)
        return cls(*(scale * jax.random.normal(k, shape) for k, shape in zip(keys, shapes, strict=True)))

    def predictions(self, tokens: Array) -> Array:
        """Tokens (…, t, d) → (…, t − 1, d): the predictions from the contexts of 2 … t tokens."""
        length = tokens.shape[-2]
        rows = jnp.tril(self.positions)[1:length, :length]
        scores = jnp.einsum("...tl,hl,...il->...tih", tokens[..., :-1, :].conj(), self.a, tokens)
        return jnp.einsum("ti,...tih,hj,...ij->...tj", rows, scores, self.b, tokens)

    def product(self) -> np.ndarray:
        """C = BᵀA, shape (d, d)."""
        return np.asarray(self.b.T @ self.a)

    def scale(self) -> float:
        """The mean c of the diagonal of C."""
        heads = self.product()
        return float(np.trace(heads)) / len(heads)

    def row(self, context: int) -> np.ndarray:
        """p_1 … p_t of the context length t."""
        return np.asarray(self.positions[context - 1, :context])


def loss_over_angles(layer: DiagonalHeads, process: Eigencoordinates, context: int) -> float:
    """E‖x̂ − x‖² at one context length as a sum over roots of unity; for few eigenvalues and short sequences."""
    horizon = context + 1
    return 2 * float(jnp.mean(sample_losses(layer, process.every(horizon), NextToken.last(horizon))))


class ClosedForms(Objective):
    """Σ_T ½ E‖x̂_{T+1} − x_{T+1}‖² by the closed form, for contexts of 2 … `longest` tokens."""

    process: Eigencoordinates
    longest: int = eqx.field(static=True)

    def __call__(self, model: Any) -> Estimate:
        """Exact."""
        heads = model.b.T @ model.a
        rows = (model.positions[context - 1, :context] for context in range(2, self.longest + 1))
        value = sum(self.process.loss(heads, row) for row in rows) / 2
        return Estimate(value, jnp.zeros_like(value))


class ByClosedForm(Engine):
    """Population losses on `Eigencoordinates` by the formulas.

    `sander2024/rotation-loss` and `sander2024/double-count` compare these with `loss_over_angles`.
    """

    def objective(
        self, process: Eigencoordinates, task: NextToken, normalizer: Normalizer = "t-1"
    ) -> ClosedForms:
        """The objective of this process and task, all context lengths counted alike; the layer has no normalizer."""
        return ClosedForms(process, task.horizon - 1)


class Starts(Settings):
    """Sizes, and the random heads and positions at which flows start."""

    dim: int = 3
    longest: int = 5
    starts: int = 8
    scale: float = 0.3
    steps: int = 20_000
    seed: int = 0


def flows_of_heads(process: Eigencoordinates, heads: int, settings: Starts) -> list[Flow[DiagonalHeads]]:
    """Gradient flows of the exact loss on contexts of 2 … `longest` tokens, from all starts."""
    longest, flows = settings.longest, []
    for number in range(settings.starts):
        key = named_key(settings.seed, "start", f"{heads} heads, {number}")
        flows.append(
            gradient_flow(
                DiagonalHeads.gaussian(process.dim, heads, longest, settings.scale, key=key),
                process,
                NextToken(longest + 1),
                engine=ByClosedForm(),
                rtol=1e-8,
                tolerance=1e-8,
                saves=64,
                max_steps=settings.steps,
            )
        )
    return flows
