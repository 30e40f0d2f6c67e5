"""Prompts whose examples tell nothing, and whose query has a label that can only be known by the weights of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from ..core import integer_at_least, split_keys
from ..specs import MAX_DIM, Numbers, Positive, SpecError, kind, show_number
from ._linear_regression import LinearRegression
from ._process import PromptProcess, Prompts
from ._random_diagonal import CovarianceField, RandomDiagonal

if TYPE_CHECKING:
    from jaxtyping import PRNGKeyArray


@kind("in-weights-regression", weights=[1, 1])
class InWeightsRegression(PromptProcess):
    r"""Prompts with the same weights for every query, and examples whose labels are noise.

    $$x_i \sim N(0, \Sigma), \qquad y_i \sim N(0, s^2) \text{ for } i \le N, \qquad y_{N+1} = w^\top x_{N+1}.$$

    The error on them is that of in-weights learning: nothing in the context helps (zhang2025's test of it). A model that
    reads the context loses by it.

    Args:
        weights: $w$, the same in all prompts; its length $d \ge 1$ is the dimension of the inputs.
        covariance: covariance $\Sigma$ of the inputs: `None` for I, or its rows.
        label_scale: the standard deviation $s > 0$ of the labels of examples.
    """

    weights: Annotated[Numbers, Field(max_length=MAX_DIM)]
    covariance: CovarianceField = None
    label_scale: Positive = 1

    def __post_init__(self) -> None:
        if isinstance(self.covariance, RandomDiagonal):
            raise SpecError("must be a matrix or left out, not random", "covariance")
        object.__setattr__(self, "covariance", self.inputs.covariance)  # checked

    @property
    def dim(self) -> int:
        """The dimension of the inputs."""
        return len(self.weights)

    @property
    def inputs(self) -> LinearRegression:
        """The linear regression with the same inputs."""
        return LinearRegression(self.dim, covariance=self.covariance)

    @property
    def vector(self) -> np.ndarray:
        """The weights w, shape `(d,)`."""
        return np.array([float(one) for one in self.weights])

    def sample(self, key: PRNGKeyArray, examples: int, batch: int) -> Prompts:
        """Draw independent prompts."""
        import jax.numpy as jnp

        from ._draws import standard_normal

        count, many = integer_at_least("examples", examples, 1), integer_at_least("batch", batch, 1)
        inputs_key, labels_key = split_keys(key)
        known = self.inputs.prompts_of(inputs_key, jnp.tile(jnp.asarray(self.vector), (many, 1)), count)
        labels = float(self.label_scale) * standard_normal(labels_key, (many, count))
        return Prompts(known.x, jnp.concatenate([labels, known.y[:, -1:]], 1))

    def describe(self) -> str:
        """Return e.g. `InWeightsRegression(w = (1, 1), s=1)`."""
        covariance = ", Σ given" if self.covariance is not None else ""
        weights = ", ".join(show_number(one) for one in self.weights)
        return f"InWeightsRegression(w = ({weights}), s={show_number(self.label_scale)}{covariance})"
