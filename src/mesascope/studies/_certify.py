"""Specifications of certificates, and certificates that are checked from scratch."""

import abc
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from mesascope.core import Progress
from mesascope.models import ModelKind
from mesascope.records import CertificateFile, CertificateRecord, provenance
from mesascope.specs import Spec, SpecError, error_path, integer, one_of

from ._flow_settings import MaskName
from ._model_problem import ModelProblem, ModelProblemSpec, names_any_model
from ._problem import ProblemSpec, StartSpec
from ._read import parse_recorded

if TYPE_CHECKING:
    from mesascope.dynamics.certificates import Certificate, Proved, Question, SequenceQuestion

_DECIMALS = 5  # of bounds, in addition to those of the radius


class CertifiedLossSpec(ProblemSpec):
    """The loss of a certificate; all its numbers are rational.

    Attributes:
        mask: "off-diagonal" if all weights off the diagonals of the blocks are 0 and stay 0.
        engine: to be left out: certificates compute the loss exactly.
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


class CertifiedModelSpec(ModelProblemSpec):
    """The loss of a certificate on regression prompts; all its numbers are rational.

    Attributes:
        model: the model with its initial weights, those of the flow; no checkpoint, which a certificate does not hold.
        engine: to be left out: certificates compute the loss exactly.
        test_process: to be left out: a certificate is about one loss.
    """

    model: Annotated[ModelKind, *one_of("model")]

    @model_validator(mode="after")
    def _exact_engine(self) -> Self:
        if self.engine is not None:
            raise SpecError("certificates compute the loss exactly; leave it out", "engine")
        if self.test_process is not None:
            raise SpecError("certificates are about one loss; leave it out", "test_process")
        return self

    def question(self) -> "Question":
        """Return the loss.

        Raises:
            SpecError: a number is not rational, or the layer or the process is not one whose loss is.
        """
        return _question_of(self.build())


def _question_of(problem: ModelProblem) -> "Question":
    from mesascope.dynamics.certificates import question_of

    model, process, task, *_ = problem
    with error_path():
        return question_of(model, process, task)


class _CertifySpec(Spec):
    """A proof about the critical point that gradient flow ends at.

    Attributes:
        digits: decimal places of the radius, 10 … 1000; default 40.
    """

    digits: Annotated[int, BeforeValidator(integer), Field(ge=10, le=1000)] = 40

    @abc.abstractmethod
    def certified(self, progress: Callable[[Progress], None] | None) -> "Certificate":
        """Follow the flow, polish its end, and prove what can be proved about it."""

    @abc.abstractmethod
    def loss_fields(self) -> dict[str, Any]:
        """The fields of a file that specify the loss, without what is only about the flow."""

    def run(self, progress: Callable[[Progress], None] | None = None) -> CertificateRecord:
        """Follow the flow, polish its end, and prove what can be proved about it.

        Raises:
            SpecError: as for `question`.
            NotProvedError: a test fails; nothing is proved then.
            ValueError: 64-bit mode is off.
        """
        with _writable_numbers():
            found = self.certified(progress)
            return _record(found.question, found.centre, found.proved, self.loss_fields())


class CertifySpec(_CertifySpec, StartSpec, CertifiedLossSpec):
    """A proof about the critical point that gradient flow of one layer on sequences ends at."""

    def certified(self, progress: Callable[[Progress], None] | None) -> "Certificate":
        """Follow the flow, polish its end, and prove what can be proved about it."""
        from mesascope.dynamics.certificates import certify

        question = self.question()
        with error_path("init"):
            model = self.init.build(self.dim, self.rho)
        return certify(
            model, question.process, question.task, mask=self.mask, digits=self.digits, progress=progress
        )

    def loss_fields(self) -> dict[str, Any]:
        """The fields of a file that specify the loss."""
        return self.model_dump(mode="json", exclude={"init", "digits", "engine", "process"})


class CertifyModelSpec(_CertifySpec, CertifiedModelSpec):
    """A proof about the critical point that gradient flow of one layer on regression prompts ends at."""

    def certified(self, progress: Callable[[Progress], None] | None) -> "Certificate":
        """Follow the flow, polish its end, and prove what can be proved about it."""
        from mesascope.dynamics.certificates import certify

        problem = self.build()
        _question_of(problem)  # refuses what is not rational, with its field
        model, process, task, *_ = problem
        return certify(model, process, task, digits=self.digits, progress=progress)

    def loss_fields(self) -> dict[str, Any]:
        """The fields of a file that specify the loss, and the model whose shapes the weights have."""
        return self.model_dump(mode="json", exclude={"digits", "engine"}, exclude_none=True)


def certify_spec(data: Any) -> type[CertifySpec] | type[CertifyModelSpec]:
    """The class of the specification of a certificate in a file: of a model if it names one."""
    return CertifyModelSpec if names_any_model(data) else CertifySpec


def _loss_spec(data: Any) -> type[CertifiedLossSpec] | type[CertifiedModelSpec]:
    return CertifiedModelSpec if names_any_model(data) else CertifiedLossSpec


def check_certificate(path: str | os.PathLike[str]) -> CertificateRecord:
    """Prove everything that a certificate states again, from the loss alone, and return it.

    Plugins that it names are not executed: their kinds must be known, e.g. by `mesascope certify --plugin`.

    Raises:
        RecordError: it is not a certificate, or one of its lines is not proved; the message names the line.
    """
    from mesascope.dynamics.certificates import NotProvedError, prove_exactly, prove_isolated

    file = CertificateFile(path)
    record = file.record
    try:
        with _writable_numbers():
            question = parse_recorded(dict(record.spec), _loss_spec).question()
    except ValueError as error:
        raise file.error(["spec"], str(error)) from None
    centre = _centre(file, question)
    radius = Fraction(record.radius)
    if not 0 <= radius < 1:
        raise file.error(["radius"], "must lie in 0 … 1")
    try:
        with _writable_numbers():
            proved = prove_isolated(question, centre, radius) if radius else prove_exactly(question, centre)
            again = _record(question, centre, proved, dict(record.spec))
    except NotProvedError as error:
        what = f"{error}; spec, weights and radius do not belong together"
        field = error.field or "radius"
        raise file.error(["weights", field] if field in record.weights else [field], what) from None
    except ValueError as error:
        raise file.error(["spec"], str(error)) from None
    _compare(file, again)
    return record


@contextmanager
def _writable_numbers() -> Iterator[None]:
    """Refuse rational numbers that are longer than a certificate holds, or Python writes."""
    try:
        yield
    except ValueError as error:
        too_long = isinstance(error, ValidationError) and error.errors()[0]["type"] == "string_too_long"
        if not too_long and "integer string conversion" not in str(
            error
        ):  # the error of Python has no type of its own
            raise
        raise SpecError(
            "its exact numbers have thousands of digits; give weights and moments with fewer digits, or a shorter horizon"
        ) from None


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


def _centre(file: CertificateFile, question: "Question") -> tuple[Fraction, ...]:
    weights, places = file.record.weights, question.places()
    if set(weights) != set(places):
        raise file.error(["weights"], f"must have the arrays {', '.join(places)}")
    entries: list[Fraction] = []
    for name, of in places.items():  # in the order of θ
        rows, width = weights[name], of.shape[-1]
        if len(rows) != of.size // width or {len(row) for row in rows} != {width}:
            raise file.error(["weights", name], f"must have {of.size // width} rows of {width} numbers")
        entries += [Fraction(entry) for row in rows for entry in row]
    return tuple(entries)


def _record(
    question: "Question", centre: tuple[Fraction, ...], proved: "Proved", spec: dict[str, Any]
) -> CertificateRecord:
    from mesascope.dynamics.certificates import statement

    weights = {
        name: tuple(tuple(_written(centre[place]) for place in row) for row in of.reshape(-1, of.shape[-1]))
        for name, of in question.places().items()
    }
    places = len(str(proved.radius.denominator)) + _DECIMALS
    return CertificateRecord(
        statement=statement(question, proved),
        spec=spec,
        weights=weights,
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
