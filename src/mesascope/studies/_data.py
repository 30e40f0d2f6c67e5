"""What is drawn, and which predictions count: the part that training and identification share."""

from typing import TYPE_CHECKING, Self

from pydantic import model_validator

from mesascope.specs import Dim, Spec, at, wrong

from ._any_process import AnyProcessSpec
from ._laws import LawSpec, built_law
from ._model import Shape
from ._processes import LONGEST_TREE, DiagonalUnitarySpec, MarkovTreeSpec
from ._task import Examples, Horizon, NamedWeights

if TYPE_CHECKING:
    from mesascope.objectives import Task
    from mesascope.processes import PromptProcess, SequenceProcess


class DataSpec(Spec):
    """A process of any kind, and a task on what it draws.

    Attributes:
        process: what generates the data; its parameters stand in its table, but those of "diagonal-unitary", the
            default, are `law` and `dim`.
        law, dim: for "diagonal-unitary": law of the initial token, and token dimension.
        horizon: for processes of sequences: tokens per sequence T ≥ 3.
        examples: for processes of prompts: examples N ≥ 1 before the query.
        weights: weight of every context length t = 2 … T − 1, or of every number of examples t = 0 … N: "every", "last",
            a table with those that are not 0, or a list of all; by default "every" for sequences, "last" for prompts.
    """

    process: AnyProcessSpec = DiagonalUnitarySpec()
    law: LawSpec | None = None
    dim: Dim | None = None
    horizon: Horizon | None = None
    examples: Examples | None = None
    weights: NamedWeights = None

    @model_validator(mode="after")
    def _graph_has_a_size(self) -> Self:
        if isinstance(self.process, MarkovTreeSpec) and (self.horizon or 0) > LONGEST_TREE:
            raise wrong(
                f"must be at most {LONGEST_TREE} for 'markov-tree', whose graph has a position for every symbol, "
                f"got {self.horizon}",
                "horizon",
            )
        return self

    @model_validator(mode="after")
    def _data_fit(self) -> Self:
        kind, diagonal = self.process.kind, isinstance(self.process, DiagonalUnitarySpec)
        for name in ("law", "dim"):
            given = getattr(self, name) is not None
            if diagonal and not given:
                raise wrong(f"missing; process '{kind}' needs law and dim", name)
            if given and not diagonal:
                raise wrong(f"of '{kind}' belongs into the table of process; move it there", name)
        prompts = self.process.data == "prompts"
        needed, other = ("examples", "horizon") if prompts else ("horizon", "examples")
        what = "prompts" if prompts else "sequences"
        if getattr(self, other) is not None:
            raise wrong(f"process '{kind}' draws {what}; give {needed} instead", other)
        if getattr(self, needed) is None:
            raise wrong(f"missing; process '{kind}' draws {what} and needs {needed}", needed)
        return self

    @property
    def shape(self) -> Shape:
        """What the model needs to know about the data."""
        width = self.dim if isinstance(self.process, DiagonalUnitarySpec) else self.process.width
        return Shape(self.process.data, width or 0, self.horizon or self.examples or 0)

    def build_data(self) -> "tuple[SequenceProcess | PromptProcess, Task]":
        """Return the process and the task.

        Raises:
            SpecError: what the library refuses, with its field.
        """
        return self._process(), self._task()

    def _process(self) -> "SequenceProcess | PromptProcess":
        if not isinstance(self.process, DiagonalUnitarySpec):
            with at("process"):
                return self.process.build(self.shape.length)
        assert self.law is not None and self.dim is not None  # _data_fit
        law = built_law(self.law)
        with at("dim"):
            return self.process.build(law, self.dim)

    def _task(self) -> "Task":
        from mesascope.processes import FewShot, NextToken

        with at("weights"):
            match self.shape.data, self.weights:
                case "prompts", "every":
                    return FewShot.every(self.shape.length)
                case "prompts", None | "last":
                    return FewShot(self.shape.length)
                case "prompts", weights:
                    return FewShot(self.shape.length, weights)
                case _, "last":
                    return NextToken.last(self.shape.length)
                case _, None | "every":
                    return NextToken(self.shape.length)
                case _, weights:
                    return NextToken(self.shape.length, weights)
