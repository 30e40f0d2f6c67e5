"""Specifications of processes that generate regression prompts; their fields are the arguments of the processes."""

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import Field, PlainSerializer, PlainValidator

from mesascope.specs import (
    Dim,
    Matrix,
    Number,
    Positive,
    Seed,
    Size,
    Spec,
    at,
    entries,
    kinds,
    nonnegative,
    real,
    rows,
    table_or,
    unknown,
    written,
    wrong,
)

from ._laws import GaussianSpec, LawSpec, built_law
from ._processes import Data

if TYPE_CHECKING:
    from mesascope.processes import NoiseRange, PromptProcess, RandomDiagonal, Target


class RandomDiagonalSpec(Spec):
    """A diagonal covariance drawn for every prompt.

    Attributes:
        law: the law of the standard deviations.
    """

    law: LawSpec

    def build(self) -> "RandomDiagonal":
        """Return the distribution of covariances."""
        from mesascope.processes import RandomDiagonal

        return RandomDiagonal(built_law(self.law))


class NoiseRangeSpec(Spec):
    """A noise level drawn for every prompt, uniform on [0, largest].

    Attributes:
        largest: its upper end > 0.
    """

    largest: Positive


Noise: TypeAlias = Annotated[
    Number | NoiseRangeSpec, table_or(NoiseRangeSpec, nonnegative), PlainSerializer(written)
]
"""A standard deviation ≥ 0, or a table with the largest one."""


def _noise(given: Number | NoiseRangeSpec) -> "Number | NoiseRange":
    from mesascope.processes import NoiseRange

    return NoiseRange(given.largest) if isinstance(given, NoiseRangeSpec) else given


def _matrix(value: Any) -> Any:
    return rows(value, real)


def _prior(value: Any) -> Any:
    if not isinstance(value, str):
        return _matrix(value)
    if value not in ("identity", "inverse"):
        raise wrong(unknown("value", value, ("identity", "inverse")))
    return value


class LinearRegressionSpec(Spec):
    """Prompts with labels y = wᵀx + noise, w drawn for every prompt.

    Attributes:
        dim: dimension of the inputs.
        law: the law of the inputs before the covariance shapes them.
        covariance: a matrix, or a table with the law of random standard deviations; without it the identity.
        prior: covariance of w: "identity", "inverse" (of the covariance), or a matrix.
        noise: standard deviation ≥ 0 of the labels' noise, or a table with the largest one.
        sparsity: number of coordinates of w that are not 0; without it all.
    """

    data: ClassVar[Data] = "prompts"
    kind: Literal["linear-regression"] = "linear-regression"
    dim: Dim
    law: LawSpec = GaussianSpec()
    covariance: (
        Annotated[
            Matrix | RandomDiagonalSpec, table_or(RandomDiagonalSpec, _matrix), PlainSerializer(written)
        ]
        | None
    ) = None
    prior: Annotated[str | Matrix, PlainValidator(_prior), PlainSerializer(written)] = "identity"
    noise: Noise = 0.0
    sparsity: Dim | None = None

    @property
    def width(self) -> int:
        """Dimension of the inputs."""
        return self.dim

    def build(self, length: int) -> "PromptProcess":
        """Return the process."""
        from mesascope.processes import LinearRegression

        covariance: Any = self.covariance
        if isinstance(covariance, RandomDiagonalSpec):
            with at("covariance"):
                covariance = covariance.build()
        return LinearRegression(
            self.dim, built_law(self.law), covariance, self.prior, _noise(self.noise), self.sparsity
        )


class TwoLayerReLUSpec(Spec):
    """A network of one hidden layer, drawn for every prompt.

    Attributes:
        hidden: number of hidden units.
    """

    kind: Literal["two-layer-relu"] = "two-layer-relu"
    hidden: Size

    def build(self) -> "Target":
        """Return the target."""
        from mesascope.processes import TwoLayerReLU

        return TwoLayerReLU(self.hidden)


class RandomFeaturesSpec(Spec):
    """A random combination of features that all prompts share.

    Attributes:
        features: number of features.
        seed: of the features.
    """

    kind: Literal["random-features"] = "random-features"
    features: Size
    seed: Seed = 0

    def build(self) -> "Target":
        """Return the target."""
        from mesascope.processes import RandomFeatures

        return RandomFeatures(self.features, self.seed)


TargetSpec: TypeAlias = Annotated[
    TwoLayerReLUSpec | RandomFeaturesSpec,
    Field(discriminator="kind"),
    kinds("two-layer-relu", "random-features"),
]
"""A random function from inputs to labels, told apart by `kind`."""


class NonlinearRegressionSpec(Spec):
    """Prompts with labels y = f(x) + noise, f drawn for every prompt.

    Attributes:
        dim: dimension of the inputs.
        target: what f is.
        law: the law of the inputs.
        noise: standard deviation ≥ 0 of the labels' noise, or a table with the largest one.
    """

    data: ClassVar[Data] = "prompts"
    kind: Literal["nonlinear-regression"] = "nonlinear-regression"
    dim: Dim
    target: TargetSpec
    law: LawSpec = GaussianSpec()
    noise: Noise = 0.0

    @property
    def width(self) -> int:
        """Dimension of the inputs."""
        return self.dim

    def build(self, length: int) -> "PromptProcess":
        """Return the process."""
        from mesascope.processes import NonlinearRegression

        return NonlinearRegression(self.dim, self.target.build(), built_law(self.law), _noise(self.noise))


class OrthonormalFeaturesSpec(Spec):
    """Prompts whose inputs are a few orthonormal vectors.

    Attributes:
        features: number of vectors.
        dim: dimension of the inputs, at least features; equal to it when left out.
        probabilities: how often each vector is drawn, with sum 1; all equal when left out.
        law: the law of the weights w.
    """

    data: ClassVar[Data] = "prompts"
    kind: Literal["orthonormal-features"] = "orthonormal-features"
    features: Dim
    dim: Dim | None = None
    probabilities: (
        Annotated[
            tuple[Number, ...],
            PlainValidator(lambda value: entries(value, nonnegative)),
            PlainSerializer(written),
        ]
        | None
    ) = None
    law: LawSpec = GaussianSpec()

    @property
    def width(self) -> int:
        """Dimension of the inputs."""
        return self.dim or self.features

    def build(self, length: int) -> "PromptProcess":
        """Return the process."""
        from mesascope.processes import OrthonormalFeatures

        return OrthonormalFeatures(self.features, self.dim, self.probabilities, built_law(self.law))
