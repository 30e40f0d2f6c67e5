"""Specifications of models composed of any embedding, layers and read-out."""

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from mesascope.specs import Size, at, inside, wrong

from ._embeddings import EmbeddingSpec, StackedPromptSpec
from ._layers import ContextSpec, LayerSpec
from ._model import PROMPTS, SYMBOLS, TOKENS, DrawnSpec, Shape
from ._readouts import ReadoutSpec

if TYPE_CHECKING:
    from jax import Array

    from mesascope.models import Context, Layer, PromptModel, SequenceModel


class ComposedSpec(DrawnSpec):
    """An embedding, layers one after the other, and a read-out.

    Complex tokens enter as (Re; Im), and predictions are complex again, where a part takes real streams only. Softmax attention
    and MLPs with residual connections are divided by the root of their number, as in `mesascope.models.transformer`.

    Attributes:
        embedding: of the data; it decides how wide the streams are.
        layers: one table for each.
        loops: how often all of them are applied.
        readout: what the predictions are.
    """

    reads: ClassVar = (*TOKENS, *SYMBOLS, *PROMPTS)
    kind: Literal["composed"] = "composed"
    embedding: EmbeddingSpec
    layers: Annotated[tuple[LayerSpec, ...], Field(min_length=1)]
    loops: Size = 1
    readout: ReadoutSpec

    def check(self, shape: Shape) -> None:
        """Refuse parts that do not fit the data."""
        with inside("embedding"):
            self.embedding.check(shape)
        with inside("readout"):
            self.readout.check(shape)
        for i, layer in enumerate(self.layers):
            if not isinstance(layer, ContextSpec) or shape.data in PROMPTS:
                continue
            if layer.context not in (None, "causal"):
                what = f"'{layer.context}' shows a query of sequences the tokens to predict; use 'causal'"
                raise wrong(what, "layers", i, "context")

    def build(self, shape: Shape, seed: int) -> "SequenceModel | PromptModel":
        """Return the model."""
        import jax

        from mesascope.models import ComplexPairs, PromptModel, RealForm, SequenceModel

        paired = shape.data == "complex tokens" and self._needs_real
        inner = shape._replace(width=2 * shape.width) if paired else shape
        embedding_key, layers_key, readout_key = jax.random.split(self.key(seed), 3)
        embedding = self.embedding.build(inner, embedding_key)
        network = self._network(embedding.width, layers_key)
        outputs = 1 if shape.data in PROMPTS else inner.width
        readout = self.readout.build(embedding.width, outputs, readout_key)
        with at("readout"):
            readout.check_width(network.output_width)
        if shape.data in PROMPTS:
            return PromptModel(embedding, network, readout)
        if paired:
            return SequenceModel(RealForm(embedding), network, ComplexPairs(readout))
        return SequenceModel(embedding, network, readout)

    @property
    def _needs_real(self) -> bool:
        return self.readout.needs_real or any(layer.needs_real for layer in self.layers)

    def _network(self, width: int, key: "Array") -> "Layer":
        """All layers, as fast as they can be, and as often as asked for."""
        import jax

        from mesascope.models import LinearAttentionStack, Looped, Stack

        context: Context = "examples" if isinstance(self.embedding, StackedPromptSpec) else "causal"
        summed = sum(layer.small and layer.residual for layer in self.layers)
        built = []
        for i, (layer, one) in enumerate(
            zip(self.layers, jax.random.split(key, len(self.layers)), strict=True)
        ):
            gain = summed**-0.5 if layer.small and layer.residual else 1.0
            with at("layers", i):
                built.append(layer.build(width, context, gain, one))
        if all(layer.batch_last and layer.residual and not layer.norm for layer in self.layers):
            network: Layer = LinearAttentionStack(built)
        else:
            network = Stack(layer.wrapped(one) for layer, one in zip(self.layers, built, strict=True))
        return network if self.loops == 1 else Looped(network, self.loops)
