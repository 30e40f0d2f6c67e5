"""Specifications of the layers of composed models."""

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, TypeAlias

from pydantic import Field, StrictBool

from mesascope.specs import Positive, Rho, Size, Spec, kinds

if TYPE_CHECKING:
    from jax import Array

    from mesascope.models import Context, Layer


class _LayerSpec(Spec):
    """What all layers have in common.

    Attributes:
        real: whether it takes real streams only.
        batch_last: whether it belongs into a `LinearAttentionStack`.
        small: whether its weights shrink with the depth, where a residual connection adds what it gives.
        residual: whether the stream is added to what it gives.
        norm: whether layer normalization comes before it.
    """

    real: ClassVar = False
    batch_last: ClassVar = False
    small: ClassVar = False
    kind: str
    residual: StrictBool = True
    norm: StrictBool = False

    @property
    def needs_real(self) -> bool:
        """Whether its streams must be real, normalization before it included."""
        return self.real or self.norm

    def wrapped(self, layer: "Layer") -> "Layer":
        """The layer behind its normalization, inside its residual connection."""
        from mesascope.models import PreNorm, Residual

        normed = PreNorm(layer) if self.norm else layer
        return Residual(normed) if self.residual else normed

    def build(self, width: int, context: "Context", gain: float, key: "Array") -> "Layer":
        """Return the bare layer of this width.

        Args:
            width: entries of a token of the stream.
            context: the tokens that a query sees, where the specification does not say.
            gain: of the last weights of a layer that is `small`.
            key: of the draw.
        """
        raise NotImplementedError


class ContextSpec(_LayerSpec):
    """A layer whose queries see some of the tokens.

    Attributes:
        context: "causal", "all", or "examples"; without it "examples" for stacked prompts, else "causal".
    """

    context: Literal["causal", "all", "examples"] | None = None


class LinearSelfAttentionSpec(ContextSpec):
    """Linear attention with merged weights.

    Attributes:
        heads: how many.
        scale: standard deviation > 0 of the weights.
        rho: the normalizer ρ_t.
    """

    batch_last: ClassVar = True
    kind: Literal["linear-attention"] = "linear-attention"
    heads: Size = 1
    scale: Positive = 0.1
    rho: Rho = "t-1"

    def build(self, width: int, context: "Context", gain: float, key: "Array") -> "Layer":
        """Return the layer."""
        from mesascope.models import LinearSelfAttention

        return LinearSelfAttention.gaussian(
            width,
            self.heads,
            float(self.scale),
            key=key,
            normalizer=self.rho,
            context=self.context or context,
        )


class FactoredLinearSelfAttentionSpec(ContextSpec):
    """Linear attention with weights W_K, W_Q, W_P, W_V.

    Attributes:
        heads: how many.
        scale: standard deviation > 0 of the weights.
        key_size, value_size: the width when left out.
        rho: the normalizer ρ_t.
    """

    batch_last: ClassVar = True
    kind: Literal["factored-linear-attention"] = "factored-linear-attention"
    heads: Size = 1
    scale: Positive = 0.1
    key_size: Size | None = None
    value_size: Size | None = None
    rho: Rho = "t-1"

    def build(self, width: int, context: "Context", gain: float, key: "Array") -> "Layer":
        """Return the layer."""
        from mesascope.models import FactoredLinearSelfAttention

        return FactoredLinearSelfAttention.gaussian(
            width,
            self.heads,
            float(self.scale),
            key=key,
            key_size=self.key_size,
            value_size=self.value_size,
            normalizer=self.rho,
            context=self.context or context,
        )


class DiagonalSelfAttentionSpec(ContextSpec):
    """Linear attention with many diagonal heads on two blocks: the last entry of a token, the label of a prompt, and the rest.

    Attributes:
        scale: standard deviation > 0 of the couplings.
        rho: the normalizer ρ_t.
    """

    batch_last: ClassVar = True
    kind: Literal["diagonal-attention"] = "diagonal-attention"
    scale: Positive = 0.1
    rho: Rho = "t-1"

    def build(self, width: int, context: "Context", gain: float, key: "Array") -> "Layer":
        """Return the layer."""
        from mesascope.models import DiagonalSelfAttention

        return DiagonalSelfAttention.gaussian(
            (width - 1, 1) if width > 1 else (1,),
            float(self.scale),
            key=key,
            normalizer=self.rho,
            context=self.context or context,
        )


class SoftmaxSelfAttentionSpec(ContextSpec):
    """Softmax attention.

    Attributes:
        heads: how many.
        key_size, value_size: width / heads when left out.
    """

    real: ClassVar = True
    small: ClassVar = True
    kind: Literal["softmax-attention"] = "softmax-attention"
    heads: Size = 1
    key_size: Size | None = None
    value_size: Size | None = None

    def build(self, width: int, context: "Context", gain: float, key: "Array") -> "Layer":
        """Return the layer."""
        from mesascope.models import SoftmaxSelfAttention

        return SoftmaxSelfAttention.gaussian(
            width,
            self.heads,
            key=key,
            key_size=self.key_size,
            value_size=self.value_size,
            output_gain=gain,
            context=self.context or context,
        )


class MesaLayerSpec(_LayerSpec):
    """A mesa layer: ridge regression in context; causal.

    Attributes:
        heads: how many.
        scale: standard deviation > 0 of the weights.
        key_size, value_size: the width when left out.
        regularization: λ > 0 at the start; it is trained.
    """

    batch_last: ClassVar = True
    kind: Literal["mesa"] = "mesa"
    heads: Size = 1
    scale: Positive = 0.1
    key_size: Size | None = None
    value_size: Size | None = None
    regularization: Positive = 1.0

    def build(self, width: int, context: "Context", gain: float, key: "Array") -> "Layer":
        """Return the layer."""
        from mesascope.models import MesaLayer

        return MesaLayer.gaussian(
            width,
            self.heads,
            float(self.scale),
            key=key,
            key_size=self.key_size,
            value_size=self.value_size,
            regularization=float(self.regularization),
        )


class MLPSpec(_LayerSpec):
    """A multilayer perceptron on every token.

    Attributes:
        hidden: units between its two matrices; four times the width when left out.
        activation: "gelu" or "relu".
    """

    real: ClassVar = True
    small: ClassVar = True
    kind: Literal["mlp"] = "mlp"
    hidden: Size | None = None
    activation: Literal["gelu", "relu"] = "gelu"

    def build(self, width: int, context: "Context", gain: float, key: "Array") -> "Layer":
        """Return the layer."""
        from mesascope.models import MLP

        widths = (width, self.hidden or 4 * width, width)
        return MLP.gaussian(widths, key=key, output_gain=gain, activation=self.activation)


class LayerNormSpec(_LayerSpec):
    """Normalization of every token, by itself: without residual connection unless it is asked for."""

    real: ClassVar = True
    kind: Literal["layer-norm"] = "layer-norm"
    residual: StrictBool = False

    def build(self, width: int, context: "Context", gain: float, key: "Array") -> "Layer":
        """Return the layer."""
        from mesascope.models import LayerNorm

        return LayerNorm.unit(width)


_KINDS = (
    LinearSelfAttentionSpec,
    FactoredLinearSelfAttentionSpec,
    DiagonalSelfAttentionSpec,
    SoftmaxSelfAttentionSpec,
    MesaLayerSpec,
    MLPSpec,
    LayerNormSpec,
)

LayerSpec: TypeAlias = Annotated[
    LinearSelfAttentionSpec
    | FactoredLinearSelfAttentionSpec
    | DiagonalSelfAttentionSpec
    | SoftmaxSelfAttentionSpec
    | MesaLayerSpec
    | MLPSpec
    | LayerNormSpec,
    Field(discriminator="kind"),
    kinds(*(one.model_fields["kind"].default for one in _KINDS)),
]
"""A layer, told apart by `kind`."""
