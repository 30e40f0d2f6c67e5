"""Prompts whose inputs are drawn from a few orthonormal vectors."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import PlainSerializer, PlainValidator

from ..core import exact, finite_positive, integer_at_least, split_keys
from ..specs import Dim, Number, SpecError, entries, in_file_form, kind, nonnegative
from ._gaussian import Gaussian
from ._law import Law, LawField
from ._probabilities import require_sum_one
from ._process import Prompts, require_dim
from ._task_process import TaskProcess

if TYPE_CHECKING:
    from jaxtyping import Array, Float, PRNGKeyArray


def _probabilities(value: Any) -> tuple[Number, ...] | None:
    return None if value is None else entries(value, nonnegative)


@kind("orthonormal-features", features=4)
class OrthonormalFeatures(TaskProcess):
    r"""Prompts with labels $y_i = w^\top x_i$ and inputs drawn from $K$ orthonormal vectors (huang2024).

    $x_i = v_k$ with probability $p_k$, independently; $v_1, \dots, v_K$ are the first $K$ unit vectors of
    $\mathbb R^d$, and $w$ is drawn for every prompt: the label of feature $k$ is $w_k$.

    Args:
        features: the number $K \ge 1$ of features.
        dim: the dimension $d \ge K$ of the inputs, by default $K$.
        probabilities: $p_1, \dots, p_K$, non-negative with sum 1; by default all equal (balanced).
        law: the law of $w$, by default `Gaussian(1.0)`.

    Attributes:
        probabilities: $p_1, \dots, p_K$.
    """

    features: Dim
    dim: Dim = None  # type: ignore[assignment]  # as many as features
    probabilities: Annotated[
        tuple[Number, ...], PlainValidator(_probabilities), PlainSerializer(in_file_form)
    ] = None  # type: ignore[assignment]  # all equal
    law: LawField = Gaussian()

    def __post_init__(self) -> None:
        if vars(self)["dim"] is None:
            object.__setattr__(self, "dim", self.features)
        if self.dim < self.features:
            raise SpecError(
                f"must be at least {self.features}, the number of orthonormal vectors, got {self.dim}", "dim"
            )
        require_dim(self.law, self.dim, "dim")
        if vars(self)["probabilities"] is None:
            object.__setattr__(self, "probabilities", (Fraction(1, self.features),) * self.features)
        if len(self.probabilities) != self.features:
            what = f"must list {self.features} numbers, one for each feature, got {len(self.probabilities)}"
            raise SpecError(what, "probabilities")
        require_sum_one(self.probabilities, "probabilities")

    @classmethod
    def imbalanced(
        cls, features: int, dominant: Number | str, dim: int | None = None, law: Law | None = None
    ) -> Self:
        """Return the process with one feature of probability `dominant`, and equal probabilities of the others.

        Args:
            features: the number K ≥ 2 of features.
            dominant: the probability of the first feature, between 0 and 1.
            dim: the dimension of the inputs, by default K.
            law: the law of w, by default `Gaussian(1.0)`.

        Raises:
            TypeError: a parameter has the wrong type.
            ValueError: `features` is below 2, or `dominant` is not between 0 and 1.
        """
        features = integer_at_least("OrthonormalFeatures features", features, 2)
        first = exact(finite_positive("OrthonormalFeatures dominant", dominant))
        if first >= 1:
            raise ValueError(f"OrthonormalFeatures dominant must be below 1, got {dominant}")
        return cls(
            features, dim, (first, *((1 - first) / (features - 1),) * (features - 1)), law or Gaussian()
        )

    def sample(self, key: PRNGKeyArray, examples: int, batch: int) -> Prompts:
        """Draw independent prompts: x of shape `(batch, examples + 1, dim)`, y of `(batch, examples + 1)`."""
        batch = integer_at_least("batch", batch, 1)
        _, weight_key = split_keys(key)  # the other is that of `prompts_of`
        return self.prompts_of(key, self.draw_tasks(weight_key, batch), examples)

    def draw_tasks(self, key: PRNGKeyArray, count: int) -> Float[Array, "count dim"]:
        """Draw independent weights, shape `(count, dim)`."""
        return self.law.sample(key, self.dim, (count,))

    def prompts_of(self, key: PRNGKeyArray, tasks: Float[Array, "batch dim"], examples: int) -> Prompts:
        """Draw one prompt for each row of weights."""
        import jax
        import jax.numpy as jnp

        examples, batch = integer_at_least("examples", examples, 1), len(tasks)
        feature_key, _ = split_keys(key)
        probabilities = jnp.asarray([float(p) for p in self.probabilities])
        chosen = jax.random.choice(feature_key, self.features, (batch, examples + 1), p=probabilities)
        x = jax.nn.one_hot(chosen, self.dim, dtype=tasks.dtype)
        return Prompts(x, jnp.take_along_axis(tasks, chosen, axis=1))

    def describe(self) -> str:
        """Return e.g. `OrthonormalFeatures(features=4, balanced, w ~ Gaussian(scale=1))`."""
        largest = max(self.probabilities)
        balanced = largest == min(self.probabilities)
        kind = "balanced" if balanced else f"largest probability {float(largest):.3g}"
        dim = "" if self.dim == self.features else f", dim={self.dim}"
        return f"OrthonormalFeatures(features={self.features}{dim}, {kind}, w ~ {self.law.describe()})"
