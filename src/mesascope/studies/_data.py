"""Process and task of a specification: the part that training and identification share."""

from typing import TYPE_CHECKING, Annotated, Any, Self, TypeAlias

from pydantic import Field, PlainSerializer, PlainValidator, model_validator

from mesascope.models import require_readable
from mesascope.processes import (
    DiagonalUnitary,
    FewShot,
    LawField,
    NextToken,
    Pool,
    PromptProcess,
    SequenceProcess,
    TrainingSet,
    given_weights,
)
from mesascope.specs import (
    Dim,
    Examples,
    Horizon,
    Number,
    Plugins,
    Shape,
    Spec,
    SpecError,
    construct,
    default_plugins,
    error_path,
    in_file_form,
    one_of,
    unknown,
)

if TYPE_CHECKING:
    from mesascope.objectives import Task

_MAX_EXAMPLES = 10**6  # weights of "every" number are listed one by one
_NAMED = ("last", "every")


def _named_or_weights(value: Any) -> Any:
    """`"last"`, `"every"`, or weights."""
    if not isinstance(value, str):
        return given_weights(value)
    if value not in _NAMED:
        raise SpecError(unknown("value", value, _NAMED))
    return value


Weights: TypeAlias = Annotated[
    dict[int, Number] | tuple[Number, ...] | None,
    PlainValidator(given_weights),
    PlainSerializer(in_file_form),
]
NamedWeights: TypeAlias = Annotated[
    str | dict[int, Number] | tuple[Number, ...] | None,
    PlainValidator(_named_or_weights),
    PlainSerializer(in_file_form),
]
"""Weights by context length or example count, or the name of a choice: "last" or "every"."""
Process: TypeAlias = SequenceProcess | PromptProcess
_DEFAULT = DiagonalUnitary.kind


class DataSpec(Spec):
    """A process of any kind, and a task on what it draws.

    Attributes:
        plugins: Python files that declare your own kinds of laws, processes and others; files of --plugin are added.
        process: the process that generates the data. It may be left out, or named only, for "diagonal-unitary", whose
            parameters then are `law` and `dim`.
        law: for "diagonal-unitary": the law of the initial token.
        dim: for "diagonal-unitary": the token dimension.
        horizon: tokens per sequence T ≥ 3, for processes of sequences.
        examples: examples N ≥ 1 before the query, for processes of prompts.
        weights: weight of every context length t = 2 … T − 1, or of every number of examples t = 0 … N: "every", "last",
            a table of the non-zero weights, or a list of all; by default "every" for sequences, "last" for prompts.
        task: which predictions count, as a kind: "next-token", "few-shot", or a kind of your own derived from
            them. It gives length and weights, in place of `horizon`, `examples` and `weights`.
    """

    plugins: Plugins = Field(default_factory=default_plugins)
    process: Annotated[Process, *one_of("process")] | None = None
    law: LawField | None = None
    dim: Dim | None = None
    horizon: Horizon | None = None
    examples: Annotated[Examples, Field(le=_MAX_EXAMPLES)] | None = None
    weights: NamedWeights = None
    task: Annotated[NextToken | FewShot, *one_of("task")] | None = None

    @model_validator(mode="before")
    @classmethod
    def _default_process(cls, data: Any) -> Any:
        if isinstance(data, dict) and data.get("process") in (_DEFAULT, {"kind": _DEFAULT}):
            return {name: value for name, value in data.items() if name != "process"}
        return data

    @model_validator(mode="after")
    def _data_fit(self) -> Self:
        for name in ("law", "dim"):
            given = getattr(self, name) is not None
            if self.process is None and not given:
                raise SpecError(f"missing; process '{_DEFAULT}' needs law and dim", name)
            if self.process is not None and given:
                raise SpecError(
                    f"is a field of '{self.process.kind}'; move it into the table of process", name
                )
        self._refuse_length() if self.task is None else self._refuse_task(self.task)
        with error_path("process"):
            of_length(self.source, self.shape.length)
        self.build_task()  # refuses weights that do not fit
        return self

    def _refuse_length(self) -> None:
        """Refuse a length of other data."""
        kind, prompts = self.source.kind, self.source.data == "prompts"
        needed, other = ("examples", "horizon") if prompts else ("horizon", "examples")
        what = "prompts" if prompts else "sequences"
        if getattr(self, other) is not None:
            raise SpecError(f"process '{kind}' draws {what}; give {needed} instead", other)
        if getattr(self, needed) is None:
            raise SpecError(f"missing; process '{kind}' draws {what} and needs {needed}", needed)

    def _refuse_task(self, task: Any) -> None:
        """Refuse a task of other data, and fields beside it that say the same."""
        for name in ("horizon", "examples", "weights"):
            if getattr(self, name) is not None:
                raise SpecError("is given by task; leave out one of the two", name)
        prompts = self.source.data == "prompts"
        base, what = (FewShot, "prompts") if prompts else (NextToken, "sequences")
        if not isinstance(task, base):
            raise SpecError(
                f"process '{self.source.kind}' draws {what}; take '{base.kind}', or a kind derived from {base.__name__}",
                "task",
            )

    def check_model(self, model: Any, *others: str) -> None:
        """Refuse a model that does not read these data; the error names the kinds that do, and `others`."""
        require_readable(model.kind, model.reads, self.source.data, self.source.kind, *others)
        with error_path("model"):
            model.check(self.shape)

    @property
    def source(self) -> Process:
        """The process, for sequences of any length."""
        if self.process is not None:
            return self.process
        assert self.law is not None and self.dim is not None  # _data_fit
        return construct(DiagonalUnitary, {"law": self.law, "dim": self.dim})

    @property
    def shape(self) -> Shape:
        """The shape of the data, from which the model is built."""
        return Shape(self.source.data, self.source.dim, self._length)

    @property
    def _length(self) -> int:
        """T, or N."""
        if self.task is None:
            return self.horizon or self.examples or 0
        return self.task.horizon if isinstance(self.task, NextToken) else self.task.examples

    def build_data(self) -> "tuple[Process, Task]":
        """Return the process and the task.

        Raises:
            SpecError: what the process keeps takes more than 2 GiB.
        """
        source: object = self.source
        with error_path("process"):  # what it keeps is drawn here, so that an error names it
            if isinstance(source, TrainingSet):
                source.table(self.shape.length)
            if isinstance(source, Pool):
                source.table  # noqa: B018
        return of_length(self.source, self.shape.length), self.build_task()

    def build_task(self) -> "Task":
        """Return which predictions count in the loss."""
        if self.task is not None:
            return self.task
        length, weights = self.shape.length, self.weights
        if isinstance(self.source, PromptProcess):
            named: Any = {"every": (1,) * (length + 1), "last": None}
            weights = named[weights] if isinstance(weights, str) else weights
            return construct(FewShot, {"examples": length, "weights": weights})
        named = {"every": None, "last": {length - 1: 1}}
        weights = named[weights] if isinstance(weights, str) else weights
        return construct(NextToken, {"horizon": length, "weights": weights})


def of_length(process: Process, length: int) -> Process:
    """The process for sequences of this length, or prompts of any."""
    return process.of_horizon(length) if isinstance(process, SequenceProcess) else process
