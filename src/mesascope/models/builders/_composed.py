"""Models composed of any embedding, layers and read-out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from mesascope.specs import PROMPTS, SYMBOLS, TOKENS, Seed, Shape, Size, error_path, kind, one_of

from .._specified import EmbeddingKind, LayerKind, ReadoutKind
from ._model import ModelKind

if TYPE_CHECKING:
    from jax import Array

    from mesascope.models import Context, Embedding, Layer, PromptModel, SequenceModel

_POSITION_SCALE = 0.1  # as in `mesascope.models.transformer`: small compared to the tokens


@kind("composed", embedding="paired-tokens", layers=[{"kind": "linear-attention"}], readout="first-block")
class Composed(ModelKind):
    """An embedding, layers one after the other, and a read-out.

    If a part takes real streams only, complex tokens are given as (Re; Im) and predictions are converted back. The output
    weights of softmax attention and MLPs with residual connections are divided by the square root of the number of these
    layers, as in `mesascope.models.transformer`.

    Args:
        embedding: the embedding of the data; it determines the width of the streams.
        layers: the layers, one table for each.
        readout: the read-out that gives the predictions.
        loops: how many times all layers are applied.
        seed: seed of the weights; by default that of the run.
    """

    reads = (*TOKENS, *SYMBOLS, *PROMPTS)
    embedding: Annotated[EmbeddingKind, *one_of("embedding")]
    layers: Annotated[tuple[Annotated[LayerKind, *one_of("layer")], ...], Field(min_length=1)]
    readout: Annotated[ReadoutKind, *one_of("readout")]
    loops: Size = 1
    seed: Seed | None = None

    def check(self, shape: Shape) -> None:
        """Refuse parts that do not fit the data."""
        with error_path("embedding"):
            self.embedding.check(shape)
        with error_path("readout"):
            self.readout.check(shape)
        for i, layer in enumerate(self.layers):
            with error_path("layers", i):
                layer.check(shape)

    def build(self, shape: Shape, seed: int) -> SequenceModel | PromptModel:
        """Return the model."""
        import jax

        from mesascope.core import named_key
        from mesascope.models import ComplexPairs, PromptModel, RealForm, SequenceModel

        key = named_key(seed if self.seed is None else self.seed, "init")
        paired = shape.data == "complex tokens" and self._needs_real
        inner = shape._replace(width=2 * shape.width) if paired else shape
        embedding_key, layers_key, readout_key = jax.random.split(key, 3)
        embedding = _embedding(self.embedding, inner, embedding_key)
        network = self._network(embedding.width, embedding.layout, layers_key)
        outputs = 1 if shape.data in PROMPTS else inner.width
        readout = self.readout.build(embedding.width, outputs, readout_key)
        with error_path("readout"):
            readout.check_width(network.output_width)
        if shape.data in PROMPTS:
            return PromptModel(embedding, network, readout)
        if paired:
            return SequenceModel(RealForm(embedding), network, ComplexPairs(readout))
        return SequenceModel(embedding, network, readout)

    @property
    def _needs_real(self) -> bool:
        return self.readout.needs_real or any(layer.needs_real for layer in self.layers)

    def _network(self, width: int, layout: str, key: Array) -> Layer:
        """Return all layers, as a `LinearAttentionStack` if possible, in a `Looped` if there are several loops."""
        import jax

        from mesascope.models import BatchLastLayer, LinearAttentionStack, Looped, Stack

        context: Context = "examples" if layout == "stacked" else "causal"
        scaled = sum(layer.scaled_by_depth for layer in self.layers)
        built = []
        for i, (layer, one) in enumerate(
            zip(self.layers, jax.random.split(key, len(self.layers)), strict=True)
        ):
            gain = scaled**-0.5 if layer.scaled_by_depth else 1.0
            with error_path("layers", i):
                built.append(layer.build(width, context, gain, one))
        stackable = [one for one in built if isinstance(one, BatchLastLayer)]
        if len(stackable) == len(built) and all(layer.residual and not layer.norm for layer in self.layers):
            network: Layer = LinearAttentionStack(stackable)
        else:
            network = Stack(_wrapped(one, layer) for layer, one in zip(self.layers, built, strict=True))
        return network if self.loops == 1 else Looped(network, self.loops)


def _embedding(spec: EmbeddingKind, shape: Shape, key: Array) -> Embedding:
    """Return the embedding with its projection and its positions."""
    import jax

    from mesascope.models import LearnedPositions, Projected, SinusoidalPositions, WithPositions

    weights_key, positions_key = jax.random.split(key)
    embedding: Embedding = spec.build(shape.width, weights_key)
    if spec.projection is not None:
        embedding = Projected.gaussian(embedding, spec.projection, key=weights_key)
    if spec.positions is None:
        return embedding
    if spec.positions == "sinusoidal":
        return WithPositions(embedding, SinusoidalPositions(embedding.width))
    tokens = {"tokens": shape.length - 1, "stacked": shape.length + 1, "interleaved": 2 * shape.length + 1}
    sizes = (tokens[embedding.layout], embedding.width, _POSITION_SCALE)
    return WithPositions(embedding, LearnedPositions.gaussian(*sizes, key=positions_key))


def _wrapped(layer: Layer, spec: LayerKind) -> Layer:
    """Return the layer with its normalization and its residual connection."""
    from mesascope.models import PreNorm, Residual

    normed = PreNorm(layer) if spec.norm else layer
    return Residual(normed) if spec.residual else normed
