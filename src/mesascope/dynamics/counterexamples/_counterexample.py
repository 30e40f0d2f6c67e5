"""What a search for a counterexample found, and the check that needs no search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from mesascope.core import exact
from mesascope.processes import DiagonalUnitary, LawField, Moments, NextToken
from mesascope.records import Printed
from mesascope.specs import (
    Dim,
    Real,
    Rho,
    Spec,
    SpecError,
    error_path,
    first_error,
    in_file_form,
    specification,
    unknown,
)
from mesascope.theory import zheng2024

from ._properties import PROPERTIES
from ._setting import LARGEST_DIM, Setting, Witness

FORMAT = "mesascope.counterexample/1"
_SHORT = 40


@dataclass(frozen=True, repr=False)
class Counterexample(Printed):
    """A law that breaks a property, and what shows it.

    Attributes:
        broken: the name of the property.
        setting: law, dimension, horizon and normalizer.
        witness: what breaks the property, rational numbers.
        quantity: the quantity of the property, negative.
        seed: of the search.
        start: the number of the start that led to it.
    """

    broken: str
    setting: Setting
    witness: Witness
    quantity: Fraction
    seed: int
    start: int

    @property
    def process(self) -> DiagonalUnitary:
        """The sequences, as `ms.gradient_flow` and the other verbs take them."""
        return self.setting.process

    @property
    def task(self) -> NextToken:
        """The predictions."""
        return self.setting.task

    @property
    def moments(self) -> zheng2024.TokenMoments:
        """E x², κ1, κ2, κ3, rational numbers, averaged over the coordinates."""
        return zheng2024.token_moments(self.setting.law, self.setting.dim)

    def check(self) -> Fraction:
        """Compute the quantity again, in rational numbers and without the search.

        Raises:
            ValueError: no distribution has the moments of the law, the witness is none of the setting, or the quantity is not
                negative or not what is stated.
        """
        require_feasible(self.setting)
        found = PROPERTIES[self.broken].decide(self.setting, self.witness)
        if found >= 0 or found != self.quantity:
            raise ValueError(
                f"quantity: it is {_shown(found)}, not {_shown(self.quantity)}; this is no proof that {self.broken} is broken"
            )
        return found

    def specification(self) -> dict[str, Any]:
        """The setting as the fields of a SPEC file."""
        setting = self.setting
        return {
            "law": specification(setting.law),
            "dim": setting.dim,
            "horizon": setting.horizon,
            "rho": setting.normalizer,
        }

    def record(self) -> dict[str, Any]:
        """All that `check_counterexample` reads, for a JSON file."""
        return {
            "format": FORMAT,
            "property": self.broken,
            "statement": PROPERTIES[self.broken].statement,
            "spec": self.specification(),
            "witness": list(map(str, self.witness)),
            "quantity": str(self.quantity),
            "seed": self.seed,
            "start": self.start,
        }

    def _printed(self) -> tuple[str, dict[str, str]]:
        stated, moments = PROPERTIES[self.broken], self.moments
        return f"Counterexample to {self.broken}", {
            "property": stated.statement,
            "law": f"{self.setting.law.describe()}: {_tokens(self.specification()['law'])}",
            "setting": f"d = {self.setting.dim}, T = {self.setting.horizon}, ρ_t = {self.setting.normalizer}",
            "moments": ", ".join(f"{name} = {value}" for name, value in asdict(moments).items()),
            "quantity": f"{stated.quantity} = {_shown(self.quantity)}",
            "found": f"from start {self.start} of seed {self.seed}",
        }


@dataclass(frozen=True, repr=False)
class Searched(Printed):
    """The end of a search; that nothing was found says nothing about laws that were not tried.

    Attributes:
        property: the name of the property.
        found: the counterexample, or None.
        families: the families of laws that were searched, or the law that was given.
        dims, horizons, normalizers: what was searched.
        starts: random starts that were made.
        seed: start n drew from `numpy.random.default_rng((seed, n))`.
        tried: settings whose quantity was computed.
        nearest: the smallest score among them: how near a violation was, in units of the property's own.
    """

    property: str
    found: Counterexample | None
    families: tuple[str, ...]
    dims: tuple[int, ...]
    horizons: tuple[int, ...]
    normalizers: tuple[str, ...]
    starts: int
    seed: int
    tried: int
    nearest: float

    def _printed(self) -> tuple[str, dict[str, str]]:
        lists = {
            "laws": self.families,
            "dims": self.dims,
            "horizons": self.horizons,
            "normalizers": self.normalizers,
        }
        values = {name: ", ".join(map(str, one)) for name, one in lists.items()}
        values["searched"] = f"{self.tried} settings from {self.starts} starts of seed {self.seed}"
        if self.found is None:
            values["result"] = "none of these breaks the property; that is no proof of it"
        else:
            values["result"] = f"{_shown(self.found.quantity)} < 0 for {self.found.setting.law.describe()}"
        return f"Search for a counterexample to {self.property}", values


class _SettingSpec(Spec):
    """The setting of a counterexample, as fields of a SPEC."""

    law: LawField
    dim: Annotated[Dim, Field(le=LARGEST_DIM)]
    horizon: Annotated[int, Field(strict=True, ge=3, le=100_000)]
    rho: Rho


class _Record(Spec):
    """What a file of a counterexample holds."""

    format: Literal["mesascope.counterexample/1"]
    property: str
    statement: str
    spec: _SettingSpec
    witness: tuple[Real, ...]
    quantity: Real
    seed: int
    start: int


def check_counterexample(record: Mapping[str, Any]) -> Counterexample:
    """Return the counterexample of a record after its check.

    Raises:
        ValueError: the record lacks a field or has another form, its law is refused, or the check fails.
    """
    try:
        read = _Record.model_validate(record)
    except ValidationError as error:
        raise first_error(error) from None
    if read.property not in PROPERTIES:
        raise SpecError(unknown("property", read.property, list(PROPERTIES)), "property")
    if read.statement != PROPERTIES[read.property].statement:
        raise SpecError(
            f"is not that of {read.property}: {PROPERTIES[read.property].statement!r}", "statement"
        )
    with error_path("spec"):
        read.spec.law.check_dim(read.spec.dim)
    found = Counterexample(
        read.property,
        Setting(read.spec.law, read.spec.dim, read.spec.horizon, read.spec.rho),
        tuple(map(exact, read.witness)),
        exact(read.quantity),
        read.seed,
        read.start,
    )
    found.check()
    return found


def require_feasible(setting: Setting) -> None:
    """Refuse moments of a coordinate, averaged over the coordinates, that no distribution has.

    Raises:
        ValueError: a Hankel matrix of the moments is not positive semidefinite.
    """
    mean = [Fraction(0)] * 7
    for term in setting.law.product_terms(setting.dim):
        for line in term.moments:
            for order, moment in enumerate(line):
                mean[order] += exact(term.probability) * exact(moment) / setting.dim
    Moments([in_file_form(one) for one in mean])


def _shown(value: Fraction) -> str:
    text = str(value)
    return text if len(text) <= _SHORT else f"{float(value):.6g}"


def _tokens(law: Mapping[str, Any]) -> str:
    """The samples of a law, those of a law inside it too."""
    inner = law.get("law")
    samples = law.get("samples", inner.get("samples") if isinstance(inner, Mapping) else None)
    return "given" if samples is None else str(samples).replace(".0", "")
