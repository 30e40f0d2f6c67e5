"""Specifications of processes that generate sequences; their fields are the arguments of the processes."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeAlias

from pydantic import Field, PlainSerializer, PlainValidator, StrictBool, ValidationError, model_validator

from mesascope.specs import (
    Dim,
    Nonnegative,
    Number,
    Positive,
    Real,
    Seed,
    Size,
    Spec,
    as_list,
    at,
    first_error,
    number,
    placed,
    show,
    table_or,
    written,
    wrong,
)

from ._laws import LawSpec, built_law

if TYPE_CHECKING:
    from mesascope.processes import DiagonalUnitary, Law, SequenceProcess

LONGEST_TREE = 2**16  # its graph is a list of that many positions, which are compiled one by one

Data: TypeAlias = Literal["complex tokens", "real tokens", "symbols", "prompts"]
"""What a process draws and a model reads."""


class DiagonalUnitarySpec(Spec):
    """Sequences x_{t+1} = W x_t with a random diagonal unitary W; the default.

    Its law and dim stand at the top level of a specification.
    """

    data: ClassVar[Data] = "complex tokens"
    kind: Literal["diagonal-unitary"] = "diagonal-unitary"

    @model_validator(mode="before")
    @classmethod
    def _parameters_stand_outside(cls, data: Any) -> Any:
        for name in ("law", "dim"):
            if isinstance(data, Mapping) and name in data:
                raise wrong(
                    "of 'diagonal-unitary' stands at the top level of the specification; move it there", name
                )
        return data

    def build(self, law: "Law", dim: int) -> "DiagonalUnitary":
        """Return the process with this law of the initial token in this dimension."""
        from mesascope.processes import DiagonalUnitary

        return DiagonalUnitary(law, dim)


class OrthogonalARSpec(Spec):
    """Sequences x_{t+1} = W x_t + noise with a random orthogonal W.

    Attributes:
        law: the law of the initial token.
        dim: token dimension.
        noise: standard deviation ≥ 0.
        basis: the seed of a basis in which all transitions turn planes; without it W is Haar distributed.
    """

    data: ClassVar[Data] = "real tokens"
    kind: Literal["orthogonal-ar"] = "orthogonal-ar"
    law: LawSpec
    dim: Dim
    noise: Nonnegative = 0.0
    basis: Seed | None = None

    @property
    def width(self) -> int:
        """Token dimension."""
        return self.dim

    def build(self, length: int) -> "SequenceProcess":
        """Return the process."""
        from mesascope.processes import OrthogonalAR

        return OrthogonalAR(built_law(self.law), self.dim, self.noise, self.basis)


class RotationARSpec(Spec):
    """Sequences x_{t+1} = W x_t of real tokens whose planes turn at random speeds.

    Attributes:
        law: the law of the initial token.
        dim: token dimension, even.
        start: "plane": the law gives all coordinates; "axis": the first of each plane, the second is 0.
    """

    data: ClassVar[Data] = "real tokens"
    kind: Literal["rotation-ar"] = "rotation-ar"
    law: LawSpec
    dim: Dim
    start: Literal["plane", "axis"] = "plane"

    @property
    def width(self) -> int:
        """Token dimension."""
        return self.dim

    def build(self, length: int) -> "SequenceProcess":
        """Return the process."""
        from mesascope.processes import RotationAR

        return RotationAR(built_law(self.law), self.dim, self.start)


class SpectrumRange(Spec):
    """Eigenvalues that are all uniform on one interval.

    Attributes:
        low, high: its ends.
    """

    low: Real
    high: Real


class ComplexEigenvalue(Spec):
    """One complex eigenvalue; its conjugate is another entry of the list.

    Attributes:
        re, im: its real and imaginary part.
    """

    re: Real
    im: Real


def _eigenvalues(value: Any) -> tuple[Any, ...]:
    given = as_list(value)
    if not isinstance(given, list | tuple) or not given:
        raise wrong(
            "must list eigenvalues, pairs [low, high] and tables with re and im, or be a table with low and high for all, "
            f"got {show(given)}"
        )
    return tuple(_eigenvalue(one, j) for j, one in enumerate(given))


def _eigenvalue(value: Any, place: int) -> Number | tuple[Number, ...] | ComplexEigenvalue:
    if isinstance(value, Mapping | ComplexEigenvalue):
        try:
            return ComplexEigenvalue.model_validate(value)
        except ValidationError as error:
            first = first_error(error, value)
            raise wrong(first.what, place, *first.path) from None
    if isinstance(value, list | tuple):
        return tuple(placed(number, bound, place, end) for end, bound in enumerate(value))
    return placed(number, value, place)


class LinearARSpec(Spec):
    """Sequences of hidden states h_{t+1} = W h_t + noise with given eigenvalues, seen as tokens x_t = C h_t.

    Attributes:
        law: the law of the initial state.
        state_dim: dimension of the states.
        spectrum: a list of state_dim entries, each an eigenvalue, a pair [low, high] between which it is uniform, or a
            table with re and im of a complex one, listed with its conjugate; or a table with low and high for all of them.
        noise: standard deviation ≥ 0.
        observed: token dimension of random mixtures of the states; without it tokens are the states.
        unstable: must be true if an eigenvalue may exceed 1 in size.
    """

    data: ClassVar[Data] = "real tokens"
    kind: Literal["linear-ar"] = "linear-ar"
    law: LawSpec
    state_dim: Dim
    spectrum: Annotated[
        SpectrumRange | tuple[Any, ...], table_or(SpectrumRange, _eigenvalues), PlainSerializer(written)
    ]
    noise: Nonnegative = 0.0
    observed: Dim | None = None
    unstable: StrictBool = False

    @property
    def width(self) -> int:
        """Token dimension."""
        return self.observed or self.state_dim

    def build(self, length: int) -> "SequenceProcess":
        """Return the process."""
        from mesascope.processes import LinearAR

        given = self.spectrum
        if isinstance(given, SpectrumRange):
            given = ((given.low, given.high),) * self.state_dim
        spectrum = [
            complex(float(e.re), float(e.im)) if isinstance(e, ComplexEigenvalue) else e for e in given
        ]
        return LinearAR(
            built_law(self.law), self.state_dim, spectrum, self.noise, self.observed, self.unstable
        )


class NonlinearARSpec(Spec):
    """Sequences x_{t+1} = A tanh(B x_t) + noise with random A and B.

    Attributes:
        law: the law of the initial token.
        dim: token dimension.
        hidden: number of hidden units.
        gain: scale > 0 of A and B.
        noise: standard deviation ≥ 0.
    """

    data: ClassVar[Data] = "real tokens"
    kind: Literal["nonlinear-ar"] = "nonlinear-ar"
    law: LawSpec
    dim: Dim
    hidden: Size
    gain: Positive = 1.0
    noise: Nonnegative = 0.0

    @property
    def width(self) -> int:
        """Token dimension."""
        return self.dim

    def build(self, length: int) -> "SequenceProcess":
        """Return the process."""
        from mesascope.processes import NonlinearAR

        return NonlinearAR(built_law(self.law), self.dim, self.hidden, self.gain, self.noise)


def _parents(value: Any) -> str | tuple[int | None, ...]:
    given = as_list(value)
    if isinstance(given, str) and given in ("chain", "random"):
        return given
    if not isinstance(given, list | tuple):
        raise wrong(f"must be 'chain', 'random', or a list of positions and 'root', got {show(given)}")
    return tuple(placed(_parent, one, i) for i, one in enumerate(given))


def _parent(value: Any) -> int | None:
    if value is None or value == "root":
        return None
    if type(value) is not int or value < 0:
        raise wrong(f"must be an earlier position, counted from 0, or 'root', got {show(value)}")
    return value


class MarkovTreeSpec(Spec):
    """Sequences of symbols with a latent graph: horizon − 1 positions of the context, and the target.

    Attributes:
        states: number of symbols, at least 2.
        alpha: parameter > 0 of the Dirichlet prior.
        parents: "chain", "random", or for each position of the context the index of its parent, or "root".
        seed: of a random graph.
    """

    data: ClassVar[Data] = "symbols"
    kind: Literal["markov-tree"] = "markov-tree"
    states: Annotated[int, Field(strict=True, ge=2, le=2**16)]
    alpha: Positive
    parents: Annotated[str | tuple[int | None, ...], PlainValidator(_parents), PlainSerializer(written)]
    seed: Seed | None = None

    @model_validator(mode="after")
    def _seed_of_a_random_graph(self) -> Self:
        if self.seed is not None and self.parents != "random":
            raise wrong("belongs to parents = 'random'; drop it or change parents", "seed")
        return self

    @property
    def width(self) -> int:
        """Number of symbols."""
        return self.states

    def build(self, length: int) -> "SequenceProcess":
        """Return the process whose sequences have this many symbols."""
        from mesascope.processes import MarkovTree

        if self.parents == "chain":
            return MarkovTree.chain(length - 1, self.states, self.alpha)
        if self.parents == "random":
            return MarkovTree.random(length - 1, self.states, self.alpha, self.seed or 0)
        with at("parents"):
            if len(self.parents) != length - 1:
                raise ValueError(
                    f"lists {len(self.parents)} positions, expected horizon − 1 = {length - 1}; change one of them"
                )
            return MarkovTree([*self.parents], self.states, self.alpha)
