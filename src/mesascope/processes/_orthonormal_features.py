"""Prompts whose inputs are a few orthonormal vectors."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self

import equinox as eqx

from ..core import exact, finite_nonnegative, finite_positive, integer_at_least, split_keys
from ..specs import Number
from ._gaussian import Gaussian
from ._law import Law
from ._mixture import SUM_TOLERANCE
from ._process import PromptProcess, Prompts, checked_law

if TYPE_CHECKING:
    from jaxtyping import PRNGKeyArray


class OrthonormalFeatures(PromptProcess):
    r"""Prompts with labels $y_i = w^\top x_i$ and inputs drawn from $K$ orthonormal vectors (huang2024).

    $x_i = v_k$ with probability $p_k$, independently; $v_1, \dots, v_K$ are the first $K$ unit vectors of
    $\mathbb R^d$, and $w$ is drawn for every prompt: the label of feature $k$ is $w_k$.

    Args:
        features: the number $K \ge 1$ of features.
        dim: the dimension $d \ge K$ of the inputs, $K$ if left out.
        probabilities: $p_1, \dots, p_K$, non-negative with sum 1; all equal (balanced) if left out.
        law: the law of $w$, `Gaussian(1.0)` if left out.

    Attributes:
        probabilities: $p_1, \dots, p_K$.

    Raises:
        TypeError: a parameter of the wrong type.
        ValueError: `features` below 1, `dim` below `features` or not the dimension of the law, or probabilities
            that are negative, do not sum to 1, or are not `features` many.
    """

    features: int = eqx.field(static=True)
    dim: int = eqx.field(static=True)
    probabilities: tuple[Number, ...] = eqx.field(static=True)
    law: Law = eqx.field(static=True)

    def __init__(
        self,
        features: int,
        dim: int | None = None,
        probabilities: Sequence[Number | str] | None = None,
        law: Law | None = None,
    ):
        self.features = integer_at_least("OrthonormalFeatures features", features, 1)
        self.law = Gaussian(1.0) if law is None else checked_law("OrthonormalFeatures", law)
        self.dim = self.law.check_dim(self.features if dim is None else dim)
        if self.dim < self.features:
            raise ValueError(
                f"{self.features} orthonormal vectors need dim ≥ {self.features}, got {self.dim}"
            )
        if probabilities is None:
            self.probabilities = (Fraction(1, self.features),) * self.features
        else:
            self.probabilities = _checked_probabilities(probabilities, self.features)

    @classmethod
    def imbalanced(
        cls, features: int, dominant: Number | str, dim: int | None = None, law: Law | None = None
    ) -> Self:
        """Return the process with one feature of probability `dominant` and the others alike.

        Args:
            features: the number K ≥ 2 of features.
            dominant: the probability of the first feature, between 0 and 1.
            dim: the dimension of the inputs, K if left out.
            law: the law of w, `Gaussian(1.0)` if left out.

        Raises:
            TypeError: a parameter of the wrong type.
            ValueError: `features` below 2, or `dominant` not between 0 and 1.
        """
        features = integer_at_least("OrthonormalFeatures features", features, 2)
        first = exact(finite_positive("OrthonormalFeatures dominant", dominant))
        if first >= 1:
            raise ValueError(f"OrthonormalFeatures dominant must be below 1, got {dominant}")
        return cls(features, dim, (first, *((1 - first) / (features - 1),) * (features - 1)), law)

    def sample(self, key: PRNGKeyArray, examples: int, batch: int) -> Prompts:
        """Draw independent prompts: x of shape `(batch, examples + 1, dim)`, y of `(batch, examples + 1)`."""
        import jax
        import jax.numpy as jnp

        examples = integer_at_least("examples", examples, 1)
        batch = integer_at_least("batch", batch, 1)
        feature_key, weight_key = split_keys(key)
        weights = self.law.sample(weight_key, self.dim, (batch,))
        probabilities = jnp.asarray([float(p) for p in self.probabilities])
        chosen = jax.random.choice(feature_key, self.features, (batch, examples + 1), p=probabilities)
        x = jax.nn.one_hot(chosen, self.dim, dtype=weights.dtype)
        return Prompts(x, jnp.take_along_axis(weights, chosen, axis=1))

    def describe(self) -> str:
        """Return e.g. `OrthonormalFeatures(features=4, balanced, w ~ Gaussian(scale=1))`."""
        largest = max(self.probabilities)
        balanced = largest == min(self.probabilities)
        kind = "balanced" if balanced else f"largest probability {float(largest):.3g}"
        dim = "" if self.dim == self.features else f", dim={self.dim}"
        return f"OrthonormalFeatures(features={self.features}{dim}, {kind}, w ~ {self.law.describe()})"


def _checked_probabilities(probabilities: Any, features: int) -> tuple[Number, ...]:
    if isinstance(probabilities, str) or not isinstance(probabilities, Sequence):
        raise TypeError(f"OrthonormalFeatures probabilities must list numbers, got {probabilities!r}")
    if len(probabilities) != features:
        raise ValueError(
            f"OrthonormalFeatures probabilities must list {features} numbers, got {len(probabilities)}"
        )
    checked = tuple(
        finite_nonnegative(f"OrthonormalFeatures probabilities[{k}]", p) for k, p in enumerate(probabilities)
    )
    total = sum((exact(p) for p in checked), Fraction(0))
    tolerance = SUM_TOLERANCE if any(isinstance(p, float) for p in checked) else 0.0
    if abs(float(total - 1)) > tolerance:
        raise ValueError(
            f"OrthonormalFeatures probabilities must sum to 1, not {float(total)}; "
            "write rationals as strings: '1/3'"
        )
    return checked
