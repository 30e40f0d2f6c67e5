"""Weights that make layers of linear attention run an algorithm."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from pydantic import Field, PlainSerializer, PlainValidator

from ..core import finite_number
from ..specs import Built, Matrix, Number, entries, in_file_form, kind_of_function, number, show

_F = TypeVar("_F", bound=Callable[..., Any])


class Construction(NamedTuple):
    r"""Merged weights of one layer of linear attention, or of several.

    With the residual connection a layer is $z_t \leftarrow z_t + \frac1\rho \sum_h W^{PV}_h \bigl(\sum_i z_i
    z_i^\top\bigr) W^{KQ}_h z_t$; the docstring of every construction gives the range of the sum over $i$ and $\rho$.
    `zip(*construction)` iterates over the layers of a construction of several layers.

    Attributes:
        w_kq: $W^{KQ}$, shape `(heads, w, w)`, or `(layers, heads, w, w)` for several layers.
        w_pv: $W^{PV}$, of the same shape.
    """

    w_kq: np.ndarray
    w_pv: np.ndarray


def stack_layers(layers: Iterable[Construction]) -> Construction:
    """Return layers of one width as one construction of several layers."""
    w_kq, w_pv = zip(*layers, strict=True)
    return Construction(np.stack(w_kq), np.stack(w_pv))


def one_per_layer(name: str, values: Any) -> list[float]:
    """Return a sequence of finite numbers, one for each layer, as a list.

    Raises:
        TypeError: `values` is not a sequence, or an entry is not a real number.
        ValueError: the sequence is empty, or an entry is not finite.
    """
    if np.ndim(values) != 1:
        raise TypeError(
            f"{name} must be a sequence of one number per layer such as [0.1, 0.1], got {show(values)}"
        )
    numbers = [float(finite_number(f"{name}[{layer}]", value)) for layer, value in enumerate(values)]
    if not numbers:
        raise ValueError(f"{name} must have at least one entry, got none")
    return numbers


class ConstructionKind(Built, family="construction"):
    """A specification of constructed weights of a model."""

    def build(self, dim: int) -> Construction:
        """Return the weights of all layers for inputs of this dimension.

        Raises:
            ValueError: the construction is for inputs of another dimension.
        """
        made: Construction = self.call(dim=dim)
        inputs = made.w_kq.shape[-1] - 1
        if inputs != dim:
            raise ValueError(f"is for inputs of dimension {inputs}, but the process draws dimension {dim}")
        return made


def construction(name: str, /, **example: Any) -> Callable[[_F], _F]:
    """Declare a function that constructs weights as a kind whose fields are its parameters except `dim`.

    Args:
        name: the name in specifications.
        **example: the fields of an example that have no default.
    """

    def declare(function: _F) -> _F:
        kind_of_function(name, function, ConstructionKind, ("dim",), **example)
        return function

    return declare


PerLayer: TypeAlias = Annotated[
    Sequence[Number], PlainValidator(lambda value: entries(value, number)), PlainSerializer(in_file_form)
]
"""One number for each layer."""
if TYPE_CHECKING:  # any array will do
    Matrices: TypeAlias = Any
else:
    Matrices = Annotated[tuple[Matrix, ...], Field(min_length=1)]
