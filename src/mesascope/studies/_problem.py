"""What losses and flows have in common: data, task and normalizer."""

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Self, TypeAlias

from pydantic import BeforeValidator, model_validator

from mesascope.specs import Dim, Rho, Spec, at, kinds, show, wrong

from ._any_process import OTHER_PROCESSES
from ._engines import EngineSpec, ExactMomentsSpec
from ._laws import LawSpec
from ._processes import DiagonalUnitarySpec
from ._task import Horizon, Weights

if TYPE_CHECKING:
    from mesascope.models import LinearAttention
    from mesascope.objectives import Engine
    from mesascope.processes import DiagonalUnitary, Law, NextToken


def _diagonal_unitary(value: Any) -> Any:
    """Send other processes to the command that treats them."""
    kind = value.get("kind") if isinstance(value, dict) else value
    if kind in OTHER_PROCESSES:
        raise wrong(
            f"{show(kind)} is not treated here, only 'diagonal-unitary' is; train a model on it (mesascope train)",
            "kind",
        )
    return value


ProcessSpec: TypeAlias = Annotated[
    DiagonalUnitarySpec, kinds("diagonal-unitary"), BeforeValidator(_diagonal_unitary)
]
"""The process of exact computations: diagonal unitary sequences, with or without their `kind`."""


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
    dim: Dim
    horizon: Horizon
    weights: Weights = None
    rho: Rho = "t-1"
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
            require_moments(law, self.dim)
        with at("weights"):
            return process, NextToken(self.horizon, self.weights)


def require_moments(law: "Law", dim: int) -> None:
    """Refuse a law without moments of order up to 6, for sampling too: the expected loss is infinite then."""
    if law.exchangeable:
        sixth = [law.joint_moment((6,), dim)]
    else:
        sixth = [moments[6] for term in law.product_terms(dim) for moments in term.moments]
    try:
        list(map(float, sixth))
    except OverflowError:
        raise ValueError(f"E x^6 of {law.describe()} exceeds double precision; choose other units") from None
