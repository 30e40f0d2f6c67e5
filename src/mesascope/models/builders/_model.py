"""Specifications of models: kinds made from the signatures of their builders. JAX is imported when a model is built."""

from __future__ import annotations

import abc
import inspect
from collections.abc import Callable, Collection
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

from pydantic import StrictBool

from mesascope.specs import (
    Built,
    Component,
    Data,
    Dim,
    Seed,
    Shape,
    Size,
    SpecError,
    construct,
    kind_of_function,
    known_kinds,
    require_value,
)

if TYPE_CHECKING:
    from mesascope.models import PromptModel, SequenceModel

_F = TypeVar("_F", bound=Callable[..., Any])


class ModelKind(Component, family="model"):
    """A model of sequences or of prompts, built for the data that it reads.

    Attributes:
        reads: the data that it reads.
    """

    reads: ClassVar[tuple[Data, ...]]

    def check(self, shape: Shape) -> None:
        """Refuse data for which the model cannot be built, in a validator; by default accept all."""

    @abc.abstractmethod
    def build(self, shape: Shape, seed: int) -> Any:
        """Return the model.

        Args:
            shape: the shape of the data.
            seed: the seed of the weights, if the specification gives none.
        """


class BuiltModel(Built, ModelKind):
    """A model whose fields are parameters of its builder, and the seed of its weights.

    Attributes:
        seed: seed of the weights; by default that of the run.
    """

    seed: int | None

    def build(self, shape: Shape, seed: int) -> SequenceModel | PromptModel:
        """Return the model, drawn with `named_key(seed, "init")`."""
        from mesascope.core import named_key

        return self.call(
            dim=shape.width,
            vocabulary=shape.width,
            horizon=shape.length - 1,  # a sequence without its last token
            examples=shape.length,
            complex_tokens=shape.data == "complex tokens",
            key=named_key(seed if self.seed is None else self.seed, "init"),
        )


_GIVEN = {
    "dim": Dim,
    "vocabulary": Size,
    "horizon": Size,
    "examples": Size,
    "complex_tokens": StrictBool,
    "key": Any,
}
"""Arguments that the data and the seed give, with their types: positions are learned for at most 65 536 tokens."""
_LARGEST = 4 * 2**30  # as for trainings, which need several times as much


def model(
    name: str, /, reads: Collection[Data], *, refuse: Callable[[Any], None] = Built.refuse, **example: Any
) -> Callable[[_F], _F]:
    """Declare a builder of models as a kind whose fields are the parameters of the function.

    The function is called with those of these arguments that it has: `dim`, the dimension of tokens or inputs;
    `vocabulary`, the number of symbols; `horizon`, the longest context of a sequence; `examples`, the number of examples
    of a prompt; `complex_tokens`, whether tokens are complex; `key`, a random key. All other parameters are fields of
    specifications, with `seed`. In Python, too, the function refuses what a specification may not hold, and weights above
    4 GiB: it is first called for the shapes of the weights alone, by `jax.eval_shape`.

    Args:
        name: the name in specifications.
        reads: the data that the model reads: "complex tokens", "real tokens", "symbols", "prompts".
        refuse: raises `SpecError(…)` for fields that do not fit together.
        **example: the fields of an example that have no default.
    """

    def declare(function: _F) -> _F:
        made = kind_of_function(name, function, BuiltModel, _GIVEN, {"seed": (Seed | None, None)}, **example)
        made.reads = tuple(reads)
        made.refuse = refuse
        made.function = staticmethod(_checked(function, made))
        return cast("_F", made.function)

    return declare


def _checked(function: Callable[..., Any], made: type[BuiltModel]) -> Callable[..., Any]:
    """Return the builder, which refuses what a specification of its kind may not hold, and weights above 4 GiB."""
    signature = inspect.signature(function)
    # what has another name in specifications may have other values there: a normalizer may be a function here
    fields = [name for field, name in made.parameters.items() if field == name]

    @wraps(function)
    def build(*args: Any, **given: Any) -> Any:
        bound = signature.bind(*args, **given).arguments
        for name in set(_GIVEN) & set(bound):
            require_value(_GIVEN[name], bound[name], f"{function.__name__} {name}")
        try:
            construct(made, {name: bound[name] for name in fields if name in bound})
        except SpecError as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"{function.__name__} {error.place} {error.what}") from None
        _refuse_large_weights(lambda: function(*args, **given), function.__name__)
        return function(*args, **given)

    return build


def _refuse_large_weights(build: Callable[[], Any], name: str) -> None:
    """Refuse models of more than 4 GiB before anything is allocated: XLA ends the process where memory lacks."""
    import equinox as eqx
    import jax

    try:
        arrays = jax.tree.leaves(jax.eval_shape(lambda: eqx.filter(build(), eqx.is_array)))
    except (
        Exception
    ):  # the builder refuses its arguments, and does so again below, without the notes that JAX adds
        return
    size = sum(array.size * array.dtype.itemsize for array in arrays)
    if size > _LARGEST:
        raise ValueError(
            f"{name}: the weights take {size / 2**30:.3g} GiB, more than {_LARGEST // 2**30}; take smaller sizes, fewer "
            "layers or fewer heads"
        )


def require_readable(kind: str, reads: Collection[Data], data: Data, process: str, *more: str) -> None:
    """Refuse a model that does not read the data of a process; the error lists those that do, and `more`."""
    if data not in reads:
        fitting = [name for name, one in known_kinds("model").items() if data in getattr(one, "reads", ())]
        raise SpecError(
            f"'{kind}' does not read the {data} of process '{process}'; use one of {', '.join((*more, *fitting))}",
            "model",
            "kind",
        )
