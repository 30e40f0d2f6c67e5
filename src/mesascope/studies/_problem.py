"""Data, task, normalizer and initial weights: the parts that losses, flows and certificates share."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Self

from pydantic import Field, PlainSerializer, PlainValidator, model_validator

from mesascope.models import InitField
from mesascope.objectives import EngineField, ExactMoments
from mesascope.processes import DiagonalUnitary, Law, LawField, NextToken, require_possible_moments
from mesascope.specs import (
    Dim,
    Horizon,
    Plugins,
    Rho,
    Spec,
    SpecError,
    construct,
    default_plugins,
    error_path,
    known_kinds,
    show,
    unknown,
)

from ._data import Weights

if TYPE_CHECKING:
    from mesascope.models import LinearAttention
    from mesascope.objectives import Engine


def _diagonal_unitary(value: Any) -> Any:
    """Refuse other processes, with the command that takes them."""
    kind = value.get("kind") if isinstance(value, Mapping) else value
    if isinstance(kind, str) and kind in known_kinds("process") and kind != DiagonalUnitary.kind:
        raise SpecError(
            f"{show(kind)} needs a model here; give one, or take '{DiagonalUnitary.kind}'",
            "kind",
        )
    if kind != DiagonalUnitary.kind:
        raise SpecError(unknown("kind", kind, [DiagonalUnitary.kind]), "kind")
    if isinstance(value, Mapping) and len(value) > 1:
        name = next(name for name in value if name != "kind")
        raise SpecError("is a field of the top level of the specification; move it there", name)
    return kind


class Problem(NamedTuple):
    """The Python objects of a specification: `population_loss(*problem)`, `gradient_flow(*problem[:3])`."""

    model: "LinearAttention"
    process: "DiagonalUnitary"
    task: "NextToken"
    engine: "Engine"


class ProblemSpec(Spec):
    """Data, task and normalizer of a population loss.

    Attributes:
        plugins: Python files that declare your own kinds of laws, processes and others; files of --plugin are added.
        process: the process that generates the sequences.
        law: the law of the initial token.
        dim: token dimension d.
        horizon: tokens per sequence T ≥ 3.
        weights: weight of every context length, 0 for those not named; all 1 when left out.
        rho: the normalizer ρ_t: "t-1", "t" or "1".
        engine: how the expectation is computed.
    """

    plugins: Plugins = Field(default_factory=default_plugins)
    process: Annotated[
        str, PlainValidator(_diagonal_unitary), PlainSerializer(lambda kind: {"kind": kind})
    ] = DiagonalUnitary.kind
    law: LawField
    dim: Dim
    horizon: Horizon
    weights: Weights = None
    rho: Rho = "t-1"
    engine: EngineField = ExactMoments()

    @model_validator(mode="after")
    def _problem_fits(self) -> Self:
        construct(DiagonalUnitary, {"law": self.law, "dim": self.dim})
        self.build_task()  # refuses weights that do not fit
        self.engine.check(self.dim, self.horizon)
        return self

    def data(self) -> tuple[DiagonalUnitary, NextToken]:
        """Return the process and the task.

        Raises:
            SpecError: the law lacks moments of order ≤ 6.
        """
        with error_path("law"):
            require_moments(self.law, self.dim)
        return DiagonalUnitary(self.law, self.dim), self.build_task()

    def build_task(self) -> NextToken:
        """Return which predictions count in the loss."""
        return construct(NextToken, {"horizon": self.horizon, "weights": self.weights})


class StartSpec(ProblemSpec):
    """A problem with the weights that training of one layer of linear attention begins at.

    Attributes:
        init: initial weights.
    """

    init: InitField

    @model_validator(mode="after")
    def _init_fits(self) -> Self:
        self.init.check(self.dim)
        return self


def require_moments(law: "Law", dim: int) -> None:
    """Refuse a law without moments of order up to 6, for sampling too: its expected loss is infinite."""
    if law.exchangeable:
        sixth = [law.joint_moment((6,), dim)]
    else:
        sixth = [moments[6] for term in law.product_terms(dim) for moments in term.moments]
    try:
        list(map(float, sixth))
    except OverflowError:
        raise ValueError(f"E x^6 of {law.describe()} exceeds double precision; choose other units") from None
    require_possible_moments(law, dim)
