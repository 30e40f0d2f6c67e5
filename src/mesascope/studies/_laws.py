"""Specifications of laws of the initial token; their fields are the arguments of the laws."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeAlias

from pydantic import (
    Field,
    PlainSerializer,
    PlainValidator,
    StrictBool,
    ValidationInfo,
    field_validator,
    model_validator,
)

from mesascope.specs import (
    LARGEST,
    Nonnegative,
    Number,
    Numbers,
    Positive,
    Scale,
    Spec,
    Token,
    as_list,
    at,
    entries,
    kinds,
    moderate,
    rows,
    show,
    wrong,
)

from ._samples import MOST_SAMPLES, read_samples

if TYPE_CHECKING:
    from mesascope.processes import Law


class GaussianSpec(Spec):
    """Independent normal coordinates.

    Attributes:
        scale: standard deviation > 0.
    """

    kind: Literal["gaussian"] = "gaussian"
    scale: Scale = 1.0

    def build(self) -> "Law":
        """Return the law."""
        from mesascope.processes import Gaussian

        return Gaussian(self.scale)


class SparseSpec(Spec):
    """One coordinate, uniformly chosen, is ±scale; the others are 0.

    Attributes:
        scale: absolute value > 0 of that coordinate.
    """

    kind: Literal["sparse"] = "sparse"
    scale: Scale = 1.0

    def build(self) -> "Law":
        """Return the law."""
        from mesascope.processes import Sparse

        return Sparse(self.scale)


class ConstantSpec(Spec):
    """A token that is always the same.

    Attributes:
        value: one number for all coordinates, or the list of the coordinates.
    """

    kind: Literal["constant"] = "constant"
    value: Token

    def build(self) -> "Law":
        """Return the law."""
        from mesascope.processes import Constant

        return Constant(self.value)


class RademacherSpec(Spec):
    """Independent fair signs ±scale.

    Attributes:
        scale: absolute value > 0 of every coordinate.
    """

    kind: Literal["rademacher"] = "rademacher"
    scale: Scale = 1.0

    def build(self) -> "Law":
        """Return the law."""
        from mesascope.processes import Rademacher

        return Rademacher(self.scale)


class UniformSpec(Spec):
    """Independent coordinates, uniform on [−scale, scale].

    Attributes:
        scale: half-width > 0.
    """

    kind: Literal["uniform"] = "uniform"
    scale: Scale = 1.0

    def build(self) -> "Law":
        """Return the law."""
        from mesascope.processes import Uniform

        return Uniform(self.scale)


class StudentTSpec(Spec):
    """Independent Student-t coordinates times scale.

    Attributes:
        df: degrees of freedom > 0; the loss exists for df > 6.
        scale: factor > 0.
    """

    kind: Literal["studentt"] = "studentt"
    df: Positive
    scale: Scale = 1.0

    def build(self) -> "Law":
        """Return the law."""
        from mesascope.processes import StudentT

        return StudentT(self.df, self.scale)


class MixturePart(Spec):
    """One part of a mixture.

    Attributes:
        probability: at least 0; the probabilities of all parts sum to 1.
        law: the law that the whole token is drawn from with that probability.
    """

    probability: Nonnegative
    law: "LawSpec"


class MixtureSpec(Spec):
    """Laws mixed with given probabilities.

    Attributes:
        parts: the laws and their probabilities.
    """

    kind: Literal["mixture"] = "mixture"
    parts: tuple[MixturePart, ...] = Field(min_length=1)

    def build(self) -> "Law":
        """Return the law."""
        from mesascope.processes import Mixture

        pairs = []
        for k, part in enumerate(self.parts):
            with at("parts", k, "law"):
                pairs.append((part.probability, part.law.build()))
        with at("parts"):
            return Mixture(pairs)


def _samples(value: Any) -> tuple[Any, ...] | None:
    given = as_list(value)
    if given is None:
        return None
    nested = isinstance(given, list | tuple) and any(isinstance(row, list | tuple) for row in given)
    table = rows(given, moderate) if nested else entries(given, moderate)
    size = len(table) * (len(table[0]) if isinstance(table[0], tuple) else 1)
    if size > MOST_SAMPLES:
        raise wrong(f"holds {size} numbers, at most {MOST_SAMPLES} are taken; thin them out, or give moments")
    return table


def _as_floats(table: Any) -> Any:
    if isinstance(table, tuple):
        return [_as_floats(row) for row in table]
    return None if table is None else float(table)


class EmpiricalSpec(Spec):
    """The law of given samples: either `samples` or `file`.

    Attributes:
        samples: n numbers, a pool for every coordinate, or n tokens of d numbers.
        file: a .npy or .csv file of them; a relative path starts at the folder of the specification.
        joint: whether whole tokens are drawn, instead of every coordinate independently.
    """

    kind: Literal["empirical"] = "empirical"
    samples: Annotated[
        tuple[Number, ...] | tuple[tuple[Number, ...], ...] | None,
        PlainValidator(_samples),
        PlainSerializer(_as_floats),
    ] = None
    # written with its whole path: a specification may be read again from another folder
    file: Annotated[Path | None, PlainSerializer(lambda file: file and os.path.abspath(file))] = None
    joint: StrictBool = False

    @field_validator("file", mode="plain")
    @classmethod
    def _below_the_specification(cls, value: Any, info: ValidationInfo) -> Path | None:
        if value is None:
            return None
        if not isinstance(value, str | Path) or not str(value).strip() or "\0" in str(value):
            raise wrong(f"must be the path of a .npy or .csv file, got {show(value)}")
        return Path((info.context or {}).get("folder", ".")) / value

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.samples is None) == (self.file is None):
            raise wrong("needs either samples or file" + ("" if self.file is None else ", not both"))
        return self

    def build(self) -> "Law":
        """Return the law; reads the file, if one was given."""
        from mesascope.processes import Empirical

        if self.file is None:
            with at("samples"):
                return Empirical(_as_floats(self.samples), joint=self.joint)
        with at("file"):
            return Empirical(read_samples(self.file), joint=self.joint)


class MomentsSpec(Spec):
    """Independent equal coordinates with given moments.

    Attributes:
        moments: the seven numbers E x⁰ = 1, E x¹, …, E x⁶ of one coordinate.
    """

    kind: Literal["moments"] = "moments"
    moments: Numbers

    @model_validator(mode="after")
    def _fit_double_precision(self) -> Self:
        for order, moment in enumerate(self.moments[:7]):
            if abs(float(moment)) > LARGEST**order:
                raise wrong(
                    f"must be at most {LARGEST**order:g} in size; choose other units", "moments", order
                )
        return self

    def build(self) -> "Law":
        """Return the law."""
        from mesascope.processes import Moments

        with at("moments"):
            return Moments(self.moments)


LawSpec: TypeAlias = Annotated[
    GaussianSpec
    | SparseSpec
    | ConstantSpec
    | RademacherSpec
    | UniformSpec
    | StudentTSpec
    | MixtureSpec
    | EmpiricalSpec
    | MomentsSpec,
    Field(discriminator="kind"),
    kinds(
        "gaussian",
        "sparse",
        "constant",
        "rademacher",
        "uniform",
        "studentt",
        "mixture",
        "empirical",
        "moments",
    ),
]
"""A law, told apart by `kind`."""

MixturePart.model_rebuild()
MixtureSpec.model_rebuild()


def built_law(spec: LawSpec) -> "Law":
    """Return the law; an error lies in the field `law`."""
    with at("law"):
        return spec.build()
