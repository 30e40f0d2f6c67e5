"""Specifications of all processes: what a model can be trained on."""

from typing import Annotated, TypeAlias

from pydantic import Field

from mesascope.specs import kinds

from ._processes import (
    DiagonalUnitarySpec,
    LinearARSpec,
    MarkovTreeSpec,
    NonlinearARSpec,
    OrthogonalARSpec,
    RotationARSpec,
)
from ._prompts import LinearRegressionSpec, NonlinearRegressionSpec, OrthonormalFeaturesSpec

OTHER_PROCESSES = (
    "orthogonal-ar",
    "rotation-ar",
    "linear-ar",
    "nonlinear-ar",
    "markov-tree",
    "linear-regression",
    "nonlinear-regression",
    "orthonormal-features",
)
"""The processes beside 'diagonal-unitary': no exact engine treats them."""

AnyProcessSpec: TypeAlias = Annotated[
    DiagonalUnitarySpec
    | OrthogonalARSpec
    | RotationARSpec
    | LinearARSpec
    | NonlinearARSpec
    | MarkovTreeSpec
    | LinearRegressionSpec
    | NonlinearRegressionSpec
    | OrthonormalFeaturesSpec,
    Field(discriminator="kind"),
    kinds("diagonal-unitary", *OTHER_PROCESSES),
]
"""A process, told apart by `kind`."""
