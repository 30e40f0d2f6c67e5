"""Random nonlinear functions from inputs to labels, one for every prompt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypeAlias

from ..core import named_key, split_keys
from ..specs import Seed, Size, kind, one_of
from ._process import Target

if TYPE_CHECKING:
    from jaxtyping import Array, Float, PRNGKeyArray

    from ._traced import TracedFeatures


@kind("two-layer-relu", hidden=20)
class TwoLayerReLU(Target):
    r"""Networks $f(x) = \sum_{k=1}^m a_k\,\mathrm{relu}(v_k^\top x)$ with all weights drawn for every prompt.

    $a_k \sim N(0, 2/m)$ and $v_k \sim N(0, I)$, so that $E f(x)^2 = \|x\|^2$ as for a linear function with
    weights from $N(0, I)$. A nonlinear, rotation-invariant distribution as in mahankali2024.

    Args:
        hidden: the number $m \ge 1$ of hidden units.
    """

    hidden: Size

    def draw(self, key: PRNGKeyArray, dim: int, count: int) -> tuple[Array, Array]:
        """Draw networks: $v$ of shape `(count, dim, hidden)`, $a$ of `(count, hidden)`."""
        from ._draws import standard_normal

        inner_key, outer_key = split_keys(key)
        inner = standard_normal(inner_key, (count, dim, self.hidden))
        return inner, (2 / self.hidden) ** 0.5 * standard_normal(outer_key, (count, self.hidden))

    def values(
        self, functions: tuple[Array, Array], x: Float[Array, "batch n dim"]
    ) -> Float[Array, "batch n"]:
        """Return the outputs of one network for every row of inputs, shape `(batch, n)`."""
        import jax

        from ._draws import einsum

        inner, outer = functions
        return einsum("bnk,bk->bn", jax.nn.relu(einsum("bnj,bjk->bnk", x, inner)), outer)


@kind("random-features", features=20)
class RandomFeatures(Target):
    r"""Functions $f(x) = \sum_{k=1}^m w_k\,\mathrm{relu}(v_k^\top x)$ with features $v_k$ shared by all prompts.

    $w_k \sim N(0, 2/m)$ is drawn for every prompt; $v_k \sim N(0, I)$ is drawn once, from `seed`: prompts are
    linear regression in features that can only be learned across prompts (a setting like that of kim2024).

    Args:
        features: the number $m \ge 1$ of features.
        seed: the seed of the $v_k$, ≥ 0.
    """

    features: Size
    seed: Seed = 0

    def draw(self, key: PRNGKeyArray, dim: int, count: int) -> Float[Array, "count features"]:
        """Draw weights $w$, shape `(count, features)`."""
        from ._draws import standard_normal

        return (2 / self.features) ** 0.5 * standard_normal(key, (count, self.features))

    def values(
        self, functions: Float[Array, "batch features"], x: Float[Array, "batch n dim"]
    ) -> Float[Array, "batch n"]:
        """Return one combination of the features for every row of inputs, shape `(batch, n)`."""
        return self.traced(x.shape[-1]).values(functions, x)

    def feature_values(self, x: Float[Array, "*batch dim"]) -> Float[Array, "*batch features"]:
        r"""Return $\mathrm{relu}(v_k^\top x)$, shape `(…, features)`."""
        return self.traced(x.shape[-1]).feature_values(x)

    def vectors(self, dim: int) -> Float[Array, "dim features"]:
        """Return the $v_k$ as columns."""
        from ._draws import draw_in_float64, standard_normal

        shape = (dim, self.features)
        return draw_in_float64(lambda: standard_normal(named_key(self.seed, "RandomFeatures"), shape))

    def traced(self, dim: int) -> TracedFeatures:
        """Return the same functions with the $v_k$ as an array: all seeds share compiled programs."""
        from ._traced import TracedFeatures

        return TracedFeatures(self.vectors(dim))


TargetField: TypeAlias = Annotated[Target, *one_of("target")]
"""A distribution of functions."""
