"""The parts of all specifications: tables without unknown fields, numbers, arrays, tables with a kind."""

import math
import operator
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from ._errors import SpecError, SpecTypeError, first_error, show, unknown

Number: TypeAlias = int | float | Fraction
"""A real number; a float is taken as the exact rational number that it represents."""
_T = TypeVar("_T")
_S = TypeVar("_S", bound="Spec")

MAX_DIM = 1024
"""The largest token dimension."""
SMALLEST = 1e-50
"""Sixth powers of smaller numbers are not normal double-precision numbers."""
LARGEST = 1e50
"""Sixth powers of larger numbers exceed double precision."""
# Decimals and ratios of integers. Exponents are short: an exact 1e999999999 would fill the memory.
_RATIONAL = re.compile(
    r"[+-]?\d{1,50}(\.\d{1,50}([eE][+-]?\d{1,2})?|[eE][+-]?\d{1,2}|/0*[1-9]\d{0,49})?", re.ASCII
)


class _OneLineErrors(type(BaseModel)):  # type: ignore[misc]
    """Constructors called in Python raise what reading a file raises: one line instead of pydantic's report."""

    def __call__(cls, *args: Any, **fields: Any) -> Any:
        try:
            return super().__call__(*args, **fields)
        except ValidationError as error:
            raise first_error(error).within(cls.__name__) from None


if TYPE_CHECKING:  # type checkers know the metaclass of pydantic by a private name
    _Model = BaseModel
else:

    class _Model(BaseModel, metaclass=_OneLineErrors):
        pass


class Spec(_Model):
    """A part of a specification: its fields cannot be changed, and unknown fields are refused.

    Raises:
        SpecError: a field is missing, unknown, or wrong; one line with class, field, what is wrong, and the fix.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    @model_validator(mode="before")
    @classmethod
    def _known_fields(cls, data: Any) -> Any:
        if isinstance(data, cls):
            return data
        fields = list(cls.model_fields)
        if not isinstance(data, Mapping):
            raise SpecError(f"must be a table with the fields {', '.join(fields)}, got {show(data)}")
        for name in data:
            if name not in fields:
                raise SpecError(unknown("field", name, fields))
        return data


def number(value: Any) -> Number:
    """Return a finite number as given; `"1/3"` and `"0.25"` are exact rationals."""
    if isinstance(value, str):
        text = re.sub(" ?/ ?", "/", value)  # "1 / 3", but not "1 3", which might be two numbers
        if not _RATIONAL.fullmatch(text):
            raise SpecError(f"{show(value)} is not a rational number; write e.g. '1/3' or '0.25'")
        return Fraction(text)
    kind = getattr(getattr(value, "dtype", None), "kind", None)  # random keys have none
    if kind is not None and value.shape == ():
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction):
        raise SpecTypeError(f"must be a number, got {show(value)}")
    try:
        finite = math.isfinite(value)
    except OverflowError:  # an integer that no double can hold
        finite = False
    if not finite:
        raise SpecError(f"must be finite and fit double precision, got {show(value)}")
    return value


def integer(value: Any) -> int:
    """Return an integer as Python's `int`; truth values and floats are refused."""
    if not (isinstance(value, bool) or type(value).__name__ == "bool_"):
        try:
            return operator.index(value)
        except TypeError:
            pass
    raise SpecTypeError(f"must be an integer, got {show(value)}")


def positive(value: Any) -> Number:
    """Return a finite number greater than 0."""
    given = number(value)
    if given <= 0:
        raise SpecError(f"must be greater than 0, got {show(value)}")
    return given


def nonnegative(value: Any) -> Number:
    """Return a finite number not below 0."""
    given = number(value)
    if given < 0:
        raise SpecError(f"must not be negative, got {show(value)}")
    return given


def open_unit(value: Any) -> Number:
    """Return a number greater than 0 and less than 1."""
    given = number(value)
    if not 0 < given < 1:
        raise SpecError(f"must be greater than 0 and less than 1, got {show(value)}")
    return given


def sixth_power_fits(value: Any) -> Number:
    """Return a number whose sixth power fits double precision: 0, or of size between 1e-50 and 1e50."""
    given = number(value)
    if given and not SMALLEST <= abs(float(given)) <= LARGEST:
        raise SpecError(
            f"must lie between {SMALLEST:g} and {LARGEST:g} in size, got {show(value)}: the loss contains "
            "sixth powers; choose other units"
        )
    return given


def weight(value: Any) -> Number:
    """Return a number that is 0, or between 1e-50 and 1e50: losses and their curvature keep within double precision."""
    given = nonnegative(value)
    if given and not SMALLEST <= float(given) <= LARGEST:
        raise SpecError(
            f"must be 0, or lie between {SMALLEST:g} and {LARGEST:g}, got {show(value)}: where training ends depends on ratios "
            "of weights alone; divide all by one of them"
        )
    return given


def scale(value: Any) -> Number:
    """Return a number greater than 0 whose sixth power fits double precision."""
    positive(value)
    return sixth_power_fits(value)


def checked_at(check: Callable[[Any], _T], value: Any, *place: int | str) -> _T:
    """Return `check(value)` for an entry of an array; errors give its position `place`."""
    try:
        return check(value)
    except SpecError as error:
        raise error.within(*place) from None


def read_table(kind: type[_S], value: Any, info: ValidationInfo) -> _S:
    """Return a table as a specification of this kind; errors give the place in the table."""
    try:
        return kind.model_validate(value, context=info.context)
    except ValidationError as error:
        raise first_error(error) from None


def as_list(value: Any) -> Any:
    """Return arrays as lists, which is what files contain."""
    return value.tolist() if hasattr(value, "tolist") else value


def real(value: Any) -> float:
    """Return a finite number as a float."""
    return value if type(value) is float and math.isfinite(value) else float(number(value))


def rows(value: Any, check: Callable[[Any], _T]) -> tuple[tuple[_T, ...], ...]:
    """Return a list of equally long lists as tuples, with every entry checked."""
    given = as_list(value)
    if not isinstance(given, list | tuple) or not given:
        refuse = SpecError if isinstance(given, list | tuple) else SpecTypeError
        raise refuse(f"must be a matrix, a list of rows, got {show(given)}")
    for i, row in enumerate(given):
        if not isinstance(row, list | tuple) or not row:
            raise SpecTypeError(f"must be a row of numbers, got {show(row)}", i)
        if len(row) != len(given[0]):
            raise SpecError(
                f"has {len(row)} numbers, but row 0 has {len(given[0])}; make rows equally long", i
            )
    return tuple(tuple(checked_at(check, x, i, j) for j, x in enumerate(row)) for i, row in enumerate(given))


def entries(value: Any, check: Callable[[Any], _T]) -> tuple[_T, ...]:
    """Return a list as a tuple, with every entry checked."""
    given = as_list(value)
    if not isinstance(given, list | tuple) or not given:
        refuse = SpecError if isinstance(given, list | tuple) else SpecTypeError
        raise refuse(f"must be a list of numbers, got {show(given)}; write e.g. [1, 0.5]")
    return tuple(checked_at(check, x, i) for i, x in enumerate(given))


def require_shape(given: tuple[Any, ...], expected: tuple[int, int], why: str, *path: str) -> None:
    """Refuse a matrix of another shape; `why` says where the expected shape comes from."""
    shape = (len(given), len(given[0]))
    if shape != expected:
        raise SpecError(f"has shape {shape}, expected {expected} = {why}", *path)


def as_tables(value: Any) -> Any:
    """Return a specification as dictionaries, with its numbers unchanged."""
    if isinstance(value, Spec):
        return {name: as_tables(one) for name, one in value}
    return [as_tables(one) for one in value] if isinstance(value, tuple) else value


def in_file_form(value: Any) -> Any:
    """Return numbers, and tuples and tables of them, in the form of a specification file."""
    if isinstance(value, Spec):
        return value.model_dump(mode="json")
    if isinstance(value, dict):
        return {str(key): in_file_form(one) for key, one in value.items()}
    if isinstance(value, tuple):
        return [in_file_form(one) for one in value]
    return str(value) if isinstance(value, Fraction) else value


Real: TypeAlias = Annotated[Number, PlainValidator(number), PlainSerializer(in_file_form)]
"""A finite number: integer, float, or an exact rational written as a string, such as "1/3"."""
Positive: TypeAlias = Annotated[Number, PlainValidator(positive), PlainSerializer(in_file_form)]
"""A number greater than 0."""
Nonnegative: TypeAlias = Annotated[Number, PlainValidator(nonnegative), PlainSerializer(in_file_form)]
"""A number that is at least 0."""
OpenUnit: TypeAlias = Annotated[Number, PlainValidator(open_unit), PlainSerializer(in_file_form)]
"""A number greater than 0 and less than 1."""
Scale: TypeAlias = Annotated[Number, PlainValidator(scale), PlainSerializer(in_file_form)]
"""A number greater than 0 whose sixth power fits double precision."""
Location: TypeAlias = Annotated[Number, PlainValidator(sixth_power_fits), PlainSerializer(in_file_form)]
"""A number whose sixth power fits double precision."""
Matrix: TypeAlias = Annotated[
    tuple[tuple[float, ...], ...],
    PlainValidator(lambda value: rows(value, real)),
    PlainSerializer(in_file_form),
]
"""A matrix of finite numbers: a list of equally long rows, or an array."""
Dim: TypeAlias = Annotated[int, BeforeValidator(integer), Field(ge=1, le=MAX_DIM)]
"""A token dimension, 1 to 1024."""
Size: TypeAlias = Annotated[int, BeforeValidator(integer), Field(ge=1, le=2**16)]
"""A number of layers, heads, hidden units and the like."""
Depth: TypeAlias = Annotated[int, BeforeValidator(integer), Field(ge=1, le=2**10)]
"""The number of layers of a network, which are compiled one by one."""
Count: TypeAlias = Annotated[int, BeforeValidator(integer), Field(ge=1, le=10**8)]
"""A number of steps or samples."""
Horizon: TypeAlias = Annotated[int, BeforeValidator(integer), Field(ge=3, le=10**15)]
"""Tokens per sequence T, 3 to 10¹⁵: sums over context lengths have closed forms."""
Examples: TypeAlias = Annotated[int, BeforeValidator(integer), Field(ge=1, le=10**15)]
"""Examples N before the query, 1 to 10¹⁵: expectations over them have closed forms."""
Rho: TypeAlias = Annotated[
    Literal["t-1", "t", "1"], BeforeValidator(lambda rho: "1" if type(rho) is int and rho == 1 else rho)
]
"""The normalizer ρ_t."""
Seed: TypeAlias = Annotated[int, BeforeValidator(integer), Field(ge=0, le=2**32 - 1)]
"""A seed of random numbers, 0 … 2³² − 1."""
Token: TypeAlias = Annotated[
    Number | tuple[Number, ...],
    PlainValidator(
        lambda value: (
            entries(value, sixth_power_fits)
            if isinstance(as_list(value), list | tuple)
            else sixth_power_fits(value)
        )
    ),
    PlainSerializer(in_file_form),
]
"""One number for all coordinates, or a list with one number per coordinate."""
Numbers: TypeAlias = Annotated[
    tuple[Number, ...], PlainValidator(lambda value: entries(value, number)), PlainSerializer(in_file_form)
]
"""A list of numbers, at least one."""
