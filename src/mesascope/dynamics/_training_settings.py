"""How to train, declared once: the keywords of `train` and `train_many`, and fields of a specification."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from itertools import count
from textwrap import indent
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, TypedDict, TypeVar

from pydantic import BeforeValidator, Field, PlainValidator, ValidationError

from mesascope.specs import (
    Count,
    Number,
    OpenUnit,
    Positive,
    Spec,
    SpecTypeError,
    field_help,
    first_error,
    integer,
    show,
)

from ._optimizer import Optimizer

if TYPE_CHECKING:
    import optax

F = TypeVar("F", bound=Callable[..., Any])


def _optimizer(value: Any) -> Any:
    if not isinstance(value, Optimizer) and not (hasattr(value, "init") and hasattr(value, "update")):
        raise SpecTypeError(
            f"must be Optimizer(…) or an optax optimizer such as optax.adam(1e-3), got {show(value)}"
        )
    return value


AnyOptimizer: TypeAlias = Annotated[Any, PlainValidator(_optimizer)]


class TrainingSettings(Spec):
    """How to train.

    Attributes:
        optimizer: `Optimizer(…)`, or in Python any optax transformation on one real vector of weights (complex weights are
            their real and imaginary parts); in a specification its name, or a table of its fields.
        steps: number of steps.
        batch: samples per step.
        precision: "float32", "float64" (needs 64-bit mode), or "bfloat16" for samples and activations with weights in
            float32.
        average: decay of a moving average of the weights, such as 0.999; without it none is computed.
        held_out: samples for evaluations, at least 2; the same ones at every evaluation.
        record_every: steps between records of the loss; a last record closes the run.
        evaluate_every: steps between evaluations on held-out samples; without it only at the end.
        checkpoint_every: steps between checkpoints that stay. Without it and without `checkpoints_per_decade`, checkpoints
            are those of `checkpoint_minutes`, and one at the end.
        checkpoints_per_decade: checkpoints that stay for every factor of ten in the number of steps, after 0 and
            round(10^(k/n)) steps, k = 0, 1, 2, …; for `identify_along`, which follows fast beginnings and slow ends. A run
            that is resumed with it has those after its last checkpoint only.
        checkpoint_minutes: minutes after which the state is saved if no checkpoint is newer: a killed run loses at most this
            much. The next checkpoint replaces this one. A large number, such as 1e9, switches it off.
    """

    optimizer: AnyOptimizer = Optimizer()
    steps: Count = 1000
    batch: Count = 256
    precision: Literal["float32", "float64", "bfloat16"] = "float32"
    average: OpenUnit | None = None
    held_out: Annotated[int, BeforeValidator(integer), Field(ge=2, le=10**8)] = 4096
    record_every: Count = 50
    evaluate_every: Count | None = None
    checkpoint_every: Count | None = None
    checkpoints_per_decade: Annotated[int, BeforeValidator(integer), Field(ge=1, le=100)] | None = None
    checkpoint_minutes: Positive = 5

    @classmethod
    def of(cls, **given: Any) -> TrainingSettings:
        """The settings with these fields; None stands for a default.

        Raises:
            SpecError: a `ValueError` that names the field.
        """
        try:
            return cls(**{name: value for name, value in given.items() if value is not None})
        except ValidationError as error:
            raise first_error(error) from None

    def transformation(self) -> optax.GradientTransformation:
        """The optax transformation."""
        return self.optimizer.build(self.steps) if isinstance(self.optimizer, Optimizer) else self.optimizer

    @property
    def decay(self) -> float | None:
        """`average` as a double."""
        return None if self.average is None else float(self.average)

    def next_stop(self, taken: int) -> int:
        """The next step with something to do: record, evaluate, save or end."""
        every = (self.record_every, self.evaluate_every, self.checkpoint_every)
        regular = (taken + n - taken % n for n in every if n is not None)
        return min(self.steps, *regular, self._next_of_decade(taken))

    def _next_of_decade(self, taken: int) -> int:
        """The next of the checkpoints per decade after `taken` steps; the end without them."""
        if self.checkpoints_per_decade is None:
            return self.steps
        return next(step for step in decade_steps(self.checkpoints_per_decade) if step > taken)

    def keeps(self, taken: int) -> bool:
        """Whether a checkpoint that stays is due after `taken` steps."""
        of_decade = self.checkpoints_per_decade is not None and self._next_of_decade(taken - 1) == taken
        return of_decade or (taken > 0 and self.is_due(self.checkpoint_every, taken))

    def is_due(self, every: int | None, taken: int) -> bool:
        """Whether something that is done every `every` steps is due after `taken` steps."""
        return every is not None and taken % every == 0


class TrainingKeywords(TypedDict, total=False):
    """The fields of `TrainingSettings` as keywords of a function, for type checkers; None stands for a default."""

    optimizer: Optimizer | optax.GradientTransformation | None
    steps: int | None
    batch: int | None
    precision: Literal["float32", "float64", "bfloat16"] | None
    average: Number | str | None
    held_out: int | None
    record_every: int | None
    evaluate_every: int | None
    checkpoint_every: int | None
    checkpoints_per_decade: int | None
    checkpoint_minutes: Number | str | None


def decade_steps(per_decade: int) -> Iterator[int]:
    """Yield 0 and then round(10^(k/n)), k = 0, 1, 2, …, each once: n numbers of steps for every factor of ten."""
    before = 0
    yield before
    for k in count():
        step = round(10 ** (k / per_decade))
        if step > before:
            yield step
        before = step


def takes_settings(function: F) -> F:
    """Show the fields of `TrainingSettings` in signature and docstring of a function that takes them as `**settings`."""
    signature = inspect.signature(function)
    own = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
    fields = TrainingSettings.model_fields.items()
    shown = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=field.default)
        for name, field in fields
    ]
    function.__signature__ = signature.replace(parameters=[*own, *shown])  # type: ignore[attr-defined]
    lines = "\n".join(f"{field.name}: {field.text}" for field in field_help(TrainingSettings))
    text = inspect.getdoc(function) or ""
    function.__doc__ = text.replace("    **settings: fields of `TrainingSettings`.", indent(lines, "    "))
    return function
