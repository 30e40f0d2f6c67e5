"""What losses and flows have in common: data, task and normalizer."""

from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Self, TypeAlias

from pydantic import BeforeValidator, Field, PlainSerializer, PlainValidator, model_validator

from ._base import Number, Spec, as_list, kinds, nonnegative, placed, written
from ._engines import EngineSpec, ExactMomentsSpec
from ._errors import at, show, wrong
from ._laws import LawSpec

if TYPE_CHECKING:
    from mesascope.models import LinearAttention
    from mesascope.objectives import Engine
    from mesascope.processes import DiagonalUnitary, Law, NextToken

MOST_DIM = 1024
MOST_HORIZON = 10**12


class DiagonalUnitarySpec(Spec):
    """Sequences x_{t+1} = W x_t with a random diagonal unitary W; the default."""

    kind: Literal["diagonal-unitary"] = "diagonal-unitary"

    def build(self, law: "Law", dim: int) -> "DiagonalUnitary":
        """Return the process with this law of the initial token in this dimension."""
        from mesascope.processes import DiagonalUnitary

        return DiagonalUnitary(law, dim)


ProcessSpec: TypeAlias = Annotated[DiagonalUnitarySpec, kinds("diagonal-unitary")]


def _weights(value: Any) -> dict[int, Number] | tuple[Number, ...] | None:
    """Weights by context length, from a table with the lengths as keys or a list for t = 2 … T − 1."""
    given = as_list(value)
    if given is None:
        return None
    if isinstance(given, list | tuple):
        return tuple(placed(nonnegative, one, i) for i, one in enumerate(given))
    if not isinstance(given, dict):
        raise wrong(f"must be a table from context lengths to weights, or their list, got {show(given)}")
    table: dict[int, Number] = {}
    for key, one in given.items():
        text = str(key)
        if isinstance(key, bool) or not (text.isascii() and text.isdigit() and len(text) <= 15):
            raise wrong(f"{show(key)} is no context length; write an integer t = 2 … horizon − 1")
        if int(text) in table:
            raise wrong(f"context length {int(text)} is given twice; keep one")
        table[int(text)] = placed(nonnegative, one, text)
    return table


Weights: TypeAlias = Annotated[
    dict[int, Number] | tuple[Number, ...] | None, PlainValidator(_weights), PlainSerializer(written)
]


class Problem(NamedTuple):
    """The Python objects of a specification: `population_loss(*problem)`, `gradient_flow(*problem[:3])`."""

    model: "LinearAttention"
    process: "DiagonalUnitary"
    task: "NextToken"
    engine: "Engine"


class ProblemSpec(Spec):
    """Data, task and normalizer of a population loss.

    Attributes:
        process: what generates the sequences.
        law: the law of the initial token.
        dim: token dimension d.
        horizon: tokens per sequence T ≥ 3.
        weights: weight of every context length, those not named 0; all 1 when left out.
        rho: the normalizer ρ_t: "t-1", "t" or "1".
        engine: how the expectation is computed.
    """

    process: ProcessSpec = DiagonalUnitarySpec()
    law: LawSpec
    dim: Annotated[int, Field(strict=True, ge=1, le=MOST_DIM)]
    horizon: Annotated[int, Field(strict=True, ge=3, le=MOST_HORIZON)]
    weights: Weights = None
    rho: Annotated[
        Literal["t-1", "t", "1"], BeforeValidator(lambda rho: "1" if type(rho) is int and rho == 1 else rho)
    ] = "t-1"
    engine: EngineSpec = ExactMomentsSpec()

    @model_validator(mode="after")
    def _weights_fit(self) -> Self:
        if isinstance(self.weights, tuple) and len(self.weights) != self.horizon - 2:
            raise wrong(
                f"has {len(self.weights)} numbers, expected {self.horizon - 2}, one for each context length "
                f"2 … {self.horizon - 1}",
                "weights",
            )
        if isinstance(self.weights, dict):
            for t in self.weights:
                if not 2 <= t < self.horizon:
                    raise wrong(
                        f"context lengths are 2 … {self.horizon - 1} for horizon {self.horizon}",
                        "weights",
                        str(t),
                    )
        given = self.weights.values() if isinstance(self.weights, dict) else self.weights
        if given is not None and not any(given):
            raise wrong(
                "all weights are zero, so that nothing is to be learned; make one positive", "weights"
            )
        self.engine.check(self.dim, self.horizon)
        return self

    def data(self) -> tuple["DiagonalUnitary", "NextToken"]:
        """Return the process and the task.

        Raises:
            SpecError: the law is impossible, has no token of this dimension, or lacks moments of order ≤ 6.
        """
        from mesascope.processes import NextToken

        with at("law"):
            law = self.law.build()
        with at("dim"):
            process = self.process.build(law, self.dim)
        with at("law"):
            _require_moments(law, self.dim)
        with at("weights"):
            return process, NextToken(self.horizon, self.weights)


def _require_moments(law: "Law", dim: int) -> None:
    """Refuse a law without moments of order up to 6, for sampling too: the expected loss is infinite then."""
    if law.exchangeable:
        sixth = [law.joint_moment((6,), dim)]
    else:
        sixth = [moments[6] for term in law.product_terms(dim) for moments in term.moments]
    try:
        list(map(float, sixth))
    except OverflowError:
        raise ValueError(f"E x^6 of {law.describe()} exceeds double precision; choose other units") from None
