"""Specifications of the read-outs of composed models."""

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import Field, PlainValidator, StrictBool

from mesascope.processes import Data
from mesascope.specs import Spec, kinds, show, wrong

from ._model import PROMPTS, SYMBOLS, TOKENS, Shape

if TYPE_CHECKING:
    from jax import Array

    from mesascope.models import Readout


class _ReadoutSpec(Spec):
    """What read-outs have in common.

    Attributes:
        predicts: the data of which it gives predictions.
    """

    predicts: ClassVar[tuple[Data, ...]]
    kind: str

    def check(self, shape: Shape) -> None:
        """Refuse data that it does not predict."""
        if shape.data not in self.predicts:
            known = (FirstBlockSpec, LastEntrySpec, DenseSpec)
            fitting = [one.model_fields["kind"].default for one in known if shape.data in one.predicts]
            raise wrong(
                f"'{self.kind}' does not predict {shape.data}; use one of {', '.join(fitting)}", "kind"
            )

    @property
    def needs_real(self) -> bool:
        """Whether it reads real streams only."""
        return False

    def build(self, width: int, outputs: int, key: "Array") -> "Readout":
        """Return the read-out of so many entries from streams of this width."""
        raise NotImplementedError


class FirstBlockSpec(_ReadoutSpec):
    """The first entries of the last stream."""

    predicts: ClassVar = (*TOKENS, *SYMBOLS)
    kind: Literal["first-block"] = "first-block"

    def build(self, width: int, outputs: int, key: "Array") -> "Readout":
        """Return the read-out."""
        from mesascope.models import FirstBlock

        return FirstBlock(outputs)


def _sign(value: Any) -> int:
    if isinstance(value, bool) or value not in (-1, 1):
        raise wrong(f"must be -1 or 1, got {show(value)}")
    return int(value)


class LastEntrySpec(_ReadoutSpec):
    """The last entry of the query, with a sign.

    Attributes:
        sign: −1 or 1.
    """

    predicts: ClassVar = PROMPTS
    kind: Literal["last-entry"] = "last-entry"
    sign: Annotated[int, PlainValidator(_sign)] = -1

    def build(self, width: int, outputs: int, key: "Array") -> "Readout":
        """Return the read-out."""
        from mesascope.models import LastEntry

        return LastEntry(self.sign)


class DenseSpec(_ReadoutSpec):
    """An affine map of the last stream.

    Attributes:
        norm: whether layer normalization comes before it.
    """

    predicts: ClassVar = (*TOKENS, *SYMBOLS, *PROMPTS)
    kind: Literal["dense"] = "dense"
    norm: StrictBool = False

    @property
    def needs_real(self) -> bool:
        """Whether it normalizes."""
        return self.norm

    def build(self, width: int, outputs: int, key: "Array") -> "Readout":
        """Return the read-out."""
        from mesascope.models import Dense, NormedDense

        dense = Dense.gaussian(width, outputs, key=key)
        return NormedDense(dense) if self.norm else dense


ReadoutSpec: TypeAlias = Annotated[
    FirstBlockSpec | LastEntrySpec | DenseSpec,
    Field(discriminator="kind"),
    kinds("first-block", "last-entry", "dense"),
]
"""A read-out, told apart by `kind`."""
