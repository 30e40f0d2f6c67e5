"""Specifications of models of sequences that are made of linear attention or mesa layers."""

from typing import TYPE_CHECKING, ClassVar, Literal

from mesascope.specs import Depth, Positive, Rho, Size, Spec, at

from ._inits import InitSpec
from ._model import TOKENS, DrawnSpec, Shape

if TYPE_CHECKING:
    from mesascope.models import LinearAttentionModel, SequenceModel


class LinearAttentionSpec(Spec):
    """One layer and head of linear attention, as the exact engine treats it.

    Attributes:
        init: initial weights, as for a flow.
        rho: the normalizer ρ_t.
    """

    reads: ClassVar = TOKENS
    kind: Literal["linear-attention"] = "linear-attention"
    init: InitSpec
    rho: Rho = "t-1"

    def check(self, shape: Shape) -> None:
        """Refuse explicit weights of another dimension."""
        self.init.check(shape.width)

    def build(self, shape: Shape, seed: int) -> "LinearAttentionModel":
        """Return the model."""
        with at("init"):
            return self.init.build(shape.width, self.rho, seed)


class MultiHeadLinearAttentionSpec(DrawnSpec):
    """One layer of linear attention with several heads.

    Attributes:
        heads: number of heads.
        scale: standard deviation > 0 of the weights.
        rho: the normalizer ρ_t.
    """

    reads: ClassVar = TOKENS
    kind: Literal["multi-head-linear-attention"] = "multi-head-linear-attention"
    heads: Size
    scale: Positive = 0.1
    rho: Rho = "t-1"

    def build(self, shape: Shape, seed: int) -> "LinearAttentionModel":
        """Return the model."""
        from mesascope.models import MultiHeadLinearAttention

        key = self.key(seed)
        return MultiHeadLinearAttention.gaussian(
            shape.width, self.heads, float(self.scale), key=key, normalizer=self.rho
        )


class FactoredLinearAttentionSpec(DrawnSpec):
    """One layer of linear attention with weights W_K, W_Q, W_P, W_V.

    Attributes:
        heads: number of heads.
        scale: standard deviation > 0 of the weights.
        key_size, value_size: 2 dim and dim when left out.
        rho: the normalizer ρ_t.
    """

    reads: ClassVar = TOKENS
    kind: Literal["factored-linear-attention"] = "factored-linear-attention"
    heads: Size = 1
    scale: Positive = 0.1
    key_size: Size | None = None
    value_size: Size | None = None
    rho: Rho = "t-1"

    def build(self, shape: Shape, seed: int) -> "LinearAttentionModel":
        """Return the model."""
        from mesascope.models import FactoredLinearAttention

        return FactoredLinearAttention.gaussian(
            shape.width,
            self.heads,
            float(self.scale),
            key=self.key(seed),
            key_size=self.key_size,
            value_size=self.value_size,
            normalizer=self.rho,
        )


class LinearTransformerSpec(DrawnSpec):
    """Layers of linear attention on paired tokens.

    Attributes:
        layers, heads: how many.
        scale: standard deviation > 0 of the weights.
        rho: the normalizer ρ_t.
    """

    reads: ClassVar = TOKENS
    kind: Literal["linear-transformer"] = "linear-transformer"
    layers: Depth
    heads: Size = 1
    scale: Positive = 0.1
    rho: Rho = "t-1"

    def build(self, shape: Shape, seed: int) -> "SequenceModel":
        """Return the model."""
        from mesascope.models import linear_transformer

        key = self.key(seed)
        return linear_transformer(
            shape.width, self.layers, self.heads, float(self.scale), key=key, normalizer=self.rho
        )


class FactoredLinearTransformerSpec(DrawnSpec):
    """As linear-transformer, with weights W_K, W_Q, W_P, W_V.

    Attributes:
        layers, heads: how many.
        scale: standard deviation > 0 of the weights.
        key_size, value_size: 3 dim when left out.
        rho: the normalizer ρ_t.
    """

    reads: ClassVar = TOKENS
    kind: Literal["factored-linear-transformer"] = "factored-linear-transformer"
    layers: Depth
    heads: Size = 1
    scale: Positive = 0.1
    key_size: Size | None = None
    value_size: Size | None = None
    rho: Rho = "t-1"

    def build(self, shape: Shape, seed: int) -> "SequenceModel":
        """Return the model."""
        from mesascope.models import factored_linear_transformer

        return factored_linear_transformer(
            shape.width,
            self.layers,
            self.heads,
            float(self.scale),
            key=self.key(seed),
            key_size=self.key_size,
            value_size=self.value_size,
            normalizer=self.rho,
        )


class MesaTransformerSpec(DrawnSpec):
    """Mesa layers on paired tokens: ridge regression in context.

    Attributes:
        layers, heads: how many.
        scale: standard deviation > 0 of the weights.
        key_size, value_size: 3 dim when left out.
        regularization: λ > 0 at the start; it is trained.
    """

    reads: ClassVar = TOKENS
    kind: Literal["mesa-transformer"] = "mesa-transformer"
    layers: Depth = 1
    heads: Size = 1
    scale: Positive = 0.1
    key_size: Size | None = None
    value_size: Size | None = None
    regularization: Positive = 1.0

    def build(self, shape: Shape, seed: int) -> "SequenceModel":
        """Return the model."""
        from mesascope.models import mesa_transformer

        return mesa_transformer(
            shape.width,
            self.layers,
            self.heads,
            float(self.scale),
            key=self.key(seed),
            key_size=self.key_size,
            value_size=self.value_size,
            regularization=float(self.regularization),
        )
