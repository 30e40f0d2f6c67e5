"""Specifications of layers, embeddings and read-outs: kinds made from the signatures of their constructors."""

from __future__ import annotations

from collections.abc import Callable, Collection
from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from pydantic import StrictBool

from mesascope.specs import PROMPTS, Built, Data, Shape, Size, SpecError, kind_of_function, known_kinds

if TYPE_CHECKING:
    from jax import Array

_T = TypeVar("_T")

Context = Literal["causal", "all", "examples"]
"""The tokens i that query t attends to: `"causal"` i ≤ t, `"all"` all, `"examples"` all but the last."""
Keys = Literal["unit", "free"]
"""Whether keys and queries of a memory are divided by their length."""
FeatureMap = Literal["identity", "elu", "relu", "silu"]
"""What keys and queries of a memory go through first."""


class LayerKind(Built, family="layer"):
    """A layer of a composed model.

    Attributes:
        real: whether a layer of this specification takes real streams only.
        context: the tokens that a query attends to: "causal", "all", or "examples"; by default "examples" for stacked prompts,
            else "causal".
        residual: whether the layer has a residual connection.
        norm: whether layer normalization is applied before the layer.
    """

    real: ClassVar[Callable[[Any], bool]]
    residual: bool
    norm: bool

    @property
    def needs_real(self) -> bool:
        """Whether its streams must be real, because of the layer or of normalization before it."""
        return self.norm or type(self).real(self)

    @property
    def scaled_by_depth(self) -> bool:
        """Whether the scale of its output weights decreases with the depth, since a residual connection adds its output."""
        return "output_gain" in signature(self.function).parameters and self.residual

    def check(self, shape: Shape) -> None:
        """Refuse a layer in which queries of sequences attend to the tokens to predict."""
        context = getattr(self, "context", None)
        if shape.data not in PROMPTS and context not in (None, "causal"):
            raise SpecError(
                f"'{context}' shows a query of sequences the tokens to predict; use 'causal'", "context"
            )

    def build(self, width: int, context: Context, gain: float, key: Array) -> Any:
        """Return the bare layer of this width, without normalization and residual connection.

        Args:
            width: entries of a token of the stream.
            context: the tokens that a query attends to, if the specification does not give them.
            gain: factor of the output weights of a layer that is `scaled_by_depth`.
            key: random key.
        """
        given = {"width": width, "output_gain": gain, "key": key}
        own = getattr(self, "context", None)
        return self.call(**given, context=own or context)


def _accepts_complex(spec: Any) -> bool:
    return False


def only_real(spec: Any) -> bool:
    """True: the value of `real` for layers that take real streams only."""
    return True


def layer(
    name: str,
    /,
    *,
    make: str = "gaussian",
    real: Callable[[Any], bool] = _accepts_complex,
    residual: bool = True,
    **example: Any,
) -> Callable[[type[_T]], type[_T]]:
    """Declare a class of layers as a kind whose fields are the parameters of one of its class methods.

    The method is called with `width`, the entries of a token, and, if it has these parameters, with `key`, a random key;
    `context`, the tokens that a query attends to; `output_gain`, a factor of what is added to a residual stream. All other
    parameters are fields of specifications, with `residual` and `norm`.

    Args:
        name: the name in specifications.
        make: name of the class method.
        real: whether a layer of a specification takes real streams only; by default none does.
        residual: whether the layer has a residual connection by default.
        **example: the fields of an example that have no default.
    """

    def declare(cls: type[_T]) -> type[_T]:
        function = getattr(cls, make)
        given = ("width", "output_width", "key", "context", "output_gain")
        more: dict[str, tuple[Any, Any]] = {"residual": (StrictBool, residual), "norm": (StrictBool, False)}
        if "context" in signature(function).parameters:
            more["context"] = (Context | None, None)
        made = kind_of_function(name, function, LayerKind, given, more, cls, **example)
        made.real = real
        return cls

    return declare


class EmbeddingKind(Built, family="embedding"):
    """An embedding of a composed model, with positions that are added to its streams.

    Attributes:
        reads: the data that it embeds.
        width: width of a learned projection of the streams; by default there is no projection.
        positions: "learned" or "sinusoidal"; by default no positions are added.
    """

    reads: ClassVar[tuple[Data, ...]]
    positions: Literal["learned", "sinusoidal"] | None

    def check(self, shape: Shape) -> None:
        """Refuse data that it does not embed."""
        _require("embed", self, self.reads, shape.data, "reads")

    @property
    def projection(self) -> int | None:
        """Width of a learned projection of the streams; an embedding with weights has the specified width itself."""
        return None if "width" in self.parameters else getattr(self, "width", None)

    def build(self, width: int, key: Array) -> Any:
        """Return the bare embedding of data of this width, without projection and positions."""
        return self.call(dim=width, vocabulary=width, key=key)


def embedding(name: str, /, reads: Collection[Data], **example: Any) -> Callable[[type[_T]], type[_T]]:
    """Declare a class of embeddings as a kind whose fields are the parameters of its constructor, or of `gaussian`.

    The function is called with `dim` or `vocabulary`, the width of the data, and, if it has this parameter, with `key`, a
    random key. All other parameters are fields of specifications, with `positions` and, if it has no parameter `width`, the
    `width` of a learned projection.

    Args:
        name: the name in specifications.
        reads: the data that it embeds.
        **example: the fields of an example that have no default.
    """

    def declare(cls: type[_T]) -> type[_T]:
        more: dict[str, tuple[Any, Any]] = {
            "width": (Size | None, None),
            "positions": (Literal["learned", "sinusoidal"] | None, None),
        }
        if hasattr(cls, "gaussian"):
            del more["width"]
        made = kind_of_function(
            name,
            getattr(cls, "gaussian", cls),
            EmbeddingKind,
            ("dim", "vocabulary", "key"),
            more,
            cls,
            **example,
        )
        made.reads = tuple(reads)
        return cls

    return declare


class ReadoutKind(Built, family="readout"):
    """A read-out of a composed model.

    Attributes:
        predicts: the data that it predicts.
    """

    predicts: ClassVar[tuple[Data, ...]]

    @property
    def needs_real(self) -> bool:
        """Whether it reads real streams only, since it normalizes."""
        return bool(getattr(self, "norm", False))

    def check(self, shape: Shape) -> None:
        """Refuse data that it does not predict."""
        _require("predict", self, self.predicts, shape.data, "predicts")

    def build(self, width: int, outputs: int, key: Array) -> Any:
        """Return the read-out with `outputs` entries from streams of this width."""
        return self.call(width=width, output_width=outputs, dim=outputs, key=key)


def readout(
    name: str, /, predicts: Collection[Data], *, make: str | None = None, **example: Any
) -> Callable[[type[_T]], type[_T]]:
    """Declare a class of read-outs as a kind whose fields are the parameters of its constructor, or of a class method.

    The function is called with `dim` or `output_width`, the entries of a prediction, and, if it has these parameters, with
    `width`, the entries of a token of the stream, and `key`, a random key. All other parameters are fields of
    specifications.

    Args:
        name: the name in specifications.
        predicts: the data that it predicts.
        make: name of the class method.
        **example: the fields of an example that have no default.
    """

    def declare(cls: type[_T]) -> type[_T]:
        function = getattr(cls, make) if make else cls
        given = ("dim", "width", "output_width", "key")
        made = kind_of_function(name, function, ReadoutKind, given, {}, cls, **example)
        made.predicts = tuple(predicts)
        return cls

    return declare


def _require(verb: str, part: Any, known: Collection[Data], data: Data, attribute: str) -> None:
    if data not in known:
        fitting = [name for name, cls in known_kinds(part.family).items() if data in getattr(cls, attribute)]
        raise SpecError(f"'{part.kind}' does not {verb} {data}; use one of {', '.join(fitting)}", "kind")
