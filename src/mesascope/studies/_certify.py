"""Specifications of certificates, and certificates that are checked from scratch."""

import os
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import BeforeValidator, Field, model_validator

from mesascope.core import Progress
from mesascope.records import CertificateFile, CertificateRecord, provenance
from mesascope.specs import SpecError, error_path, integer

from ._flow_settings import MaskName
from ._problem import ProblemSpec, StartSpec
from ._read import parse_spec

if TYPE_CHECKING:
    from mesascope.dynamics.certificates import Proved, SequenceQuestion

_DECIMALS = 5  # of bounds, in addition to those of the radius


class CertifiedLossSpec(ProblemSpec):
    """The loss of a certificate; all its numbers are rational.

    Attributes:
        mask: "off-diagonal" if all weights off the diagonals of the blocks are 0 and stay 0.
    """

    mask: MaskName = None

    @model_validator(mode="after")
    def _exact_engine(self) -> Self:
        if self.engine.kind != "exact-moments":
            raise SpecError("certificates compute the loss exactly; leave it out", "engine")
        return self

    def question(self) -> "SequenceQuestion":
        """Return the loss.

        Raises:
            SpecError: a number is not rational, or the law is impossible.
        """
        from mesascope.dynamics.certificates import SequenceQuestion, require_exact

        process, task = self.data()
        with error_path():
            require_exact(process, task)
        return SequenceQuestion(process, task, self.rho, self.mask)


class CertifySpec(StartSpec, CertifiedLossSpec):
    """A proof about the critical point that gradient flow ends at.

    Attributes:
        digits: decimal places of the radius, 10 … 1000; default 40.
    """

    digits: Annotated[int, BeforeValidator(integer), Field(ge=10, le=1000)] = 40

    def run(self, progress: Callable[[Progress], None] | None = None) -> CertificateRecord:
        """Follow the flow, polish its end, and prove what can be proved about it.

        Raises:
            SpecError: as for `question`.
            NotProvedError: a test fails; nothing is proved then.
            ValueError: 64-bit mode is off.
        """
        from mesascope.dynamics.certificates import certify

        question = self.question()
        with error_path("init"):
            model = self.init.build(self.dim, self.rho)
        found = certify(
            model,
            question.process,
            question.task,
            mask=self.mask,
            digits=self.digits,
            progress=progress,
        )
        written = self.model_dump(mode="json", exclude={"init", "digits", "engine", "process"})
        return _record(question, found.centre, found.proved, written)


def check_certificate(path: str | os.PathLike[str]) -> CertificateRecord:
    """Prove everything that a certificate states again, from the loss alone, and return it.

    Raises:
        RecordError: it is not a certificate, or one of its lines is not proved; the message names the line.
    """
    from mesascope.dynamics.certificates import NotProvedError, prove_exactly, prove_isolated

    file = CertificateFile(path)
    record = file.record
    try:
        spec = parse_spec(dict(record.spec), CertifiedLossSpec)
        question = spec.question()
    except SpecError as error:
        raise file.error(["spec"], str(error)) from None
    centre = _centre(file, spec.dim)
    radius = Fraction(record.radius)
    if not 0 <= radius < 1:
        raise file.error(["radius"], "must lie in 0 … 1")
    try:
        proved = prove_isolated(question, centre, radius) if radius else prove_exactly(question, centre)
    except NotProvedError as error:
        what = f"{error}; spec, w_kq, w_pv and radius do not belong together"
        raise file.error([error.field or "radius"], what) from None
    _compare(file, _record(question, centre, proved, dict(record.spec)))
    return record


def _compare(file: CertificateFile, again: CertificateRecord) -> None:
    """Refuse a certificate that differs from the new proof; its bounds may be wider."""
    stated = file.record
    for name in ("positive", "negative", "zero", "unique_within", "theorem"):
        given, proved = getattr(stated, name), getattr(again, name)
        if given != proved:
            raise file.error([name], f"states {given}, and {proved} is proved")
    pairs = [(["loss"], stated.loss, again.loss)]
    if len(stated.products) != len(again.products):
        raise file.error(["products"], f"states {len(stated.products)}, and there are {len(again.products)}")
    pairs += [
        (["products", str(j)], *pair)
        for j, pair in enumerate(zip(stated.products, again.products, strict=True))
    ]
    for field, given, proved in pairs:
        low, high = map(Fraction, given)
        if not low <= Fraction(proved[0]) <= Fraction(proved[1]) <= high:
            raise file.error(
                field, f"states {given[0]} … {given[1]}, and {proved[0]} … {proved[1]} is proved"
            )
    for number, (given_line, proved_line) in enumerate(zip(stated.statement, again.statement, strict=False)):
        if given_line != proved_line:
            raise file.error(["statement"], f"sentence {number + 1} is not what is proved: {proved_line!r}")
    if len(stated.statement) != len(again.statement):
        raise file.error(["statement"], f"must have {len(again.statement)} sentences")


def _centre(file: CertificateFile, dim: int) -> tuple[Fraction, ...]:
    entries: list[Fraction] = []
    for name, height in (("w_kq", 2 * dim), ("w_pv", dim)):
        rows = getattr(file.record, name)
        if len(rows) != height or {len(row) for row in rows} != {2 * dim}:
            raise file.error([name], f"must have {height} rows of {2 * dim} numbers for dim = {dim}")
        entries += [Fraction(entry) for row in rows for entry in row]
    return tuple(entries)


def _record(
    question: "SequenceQuestion", centre: tuple[Fraction, ...], proved: "Proved", spec: dict[str, Any]
) -> CertificateRecord:
    from mesascope.dynamics.certificates import statement

    width = 2 * question.process.dim
    rows = [tuple(map(_written, centre[at : at + width])) for at in range(0, len(centre), width)]
    places = len(str(proved.radius.denominator)) + _DECIMALS
    return CertificateRecord(
        statement=statement(question, proved),
        spec=spec,
        w_kq=tuple(rows[:width]),
        w_pv=tuple(rows[width:]),
        radius=_written(proved.radius),
        unique_within=None if proved.unique_within is None else _written(proved.unique_within),
        positive=proved.inertia.positive,
        negative=proved.inertia.negative,
        zero=proved.inertia.zero,
        loss=_outwards(*proved.loss, places),
        products=tuple(_outwards(*product, places) for product in proved.products),
        theorem=None if proved.theorem is None else _written(proved.theorem),
        provenance=provenance(),
    )


def _outwards(low: Fraction, high: Fraction, places: int) -> tuple[str, str]:
    """Decimals below and above; the number itself if the two are equal."""
    if low == high:
        return _written(low), _written(high)
    scale = 10**places
    return _written(Fraction(low * scale // 1, scale)), _written(Fraction(-(-high * scale // 1), scale))


def _written(value: Fraction) -> str:
    """A finite decimal if there is one, else a quotient."""
    from mesascope.dynamics.certificates import decimal_places

    places = decimal_places(value)
    if not places:
        return str(value)
    digits = str(abs(value.numerator) * 10**places // value.denominator).rjust(places + 1, "0")
    return f"{'-' if value < 0 else ''}{digits[:-places]}.{digits[-places:]}"
