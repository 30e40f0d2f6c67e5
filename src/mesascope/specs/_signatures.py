"""Kinds whose fields are the parameters of a function: a builder of models, or a constructor of layers."""

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any, ClassVar, TypeVar, cast

from pydantic import StrictBool, TypeAdapter, ValidationError

from ._errors import first_error
from ._fields import Rho
from ._kinds import Component, kind, known_kinds

_T = TypeVar("_T", bound="Built")

_FIELDS: dict[str, tuple[str, Any]] = {"normalizer": ("rho", Rho)}
"""Parameters with another name or type in specifications: parameter → field and its type."""


def _accept(spec: Any) -> None:
    """Accept all fields."""


class Built(Component):
    """A specification whose fields are parameters of the function that builds the object.

    Attributes:
        function: the function.
        parameters: field → parameter of the function.
        refuse: raises `SpecError(…)` for fields that do not fit together; by default accepts all.
    """

    function: ClassVar[Callable[..., Any]]
    parameters: ClassVar[Mapping[str, str]]
    refuse: ClassVar[Callable[[Any], None]] = _accept

    def __post_init__(self) -> None:
        """Refuse fields that do not fit together."""
        type(self).refuse(self)

    def __reduce__(self) -> Any:
        return _from_registry, (self.family, self.kind, dict(vars(self)))

    def call(self, **given: Any) -> Any:
        """Return `function(**fields, **given)`, without the arguments in `given` that the function does not take."""
        known = inspect.signature(type(self).function).parameters
        fields = {name: _plain(getattr(self, field)) for field, name in self.parameters.items()}
        return type(self).function(**fields, **{name: given[name] for name in given if name in known})


def _from_registry(family: str, name: str, fields: dict[str, Any]) -> Any:
    """Return an unpickled kind; its class is not an attribute of any module, so that pickle cannot find it."""
    return known_kinds(family)[name](**fields)


def _plain(value: Any) -> Any:
    return float(value) if isinstance(value, Fraction) else value


def kind_of_function(
    name: str,
    function: Callable[..., Any],
    base: type[_T],
    given: Iterable[str],
    more: Mapping[str, tuple[Any, Any]] | None = None,
    owner: type[Any] | None = None,
    /,
    **example: Any,
) -> type[_T]:
    """Declare the kind whose fields are the parameters of a function, with its types, defaults and section `Args`.

    Args:
        name: the name of the kind.
        function: the function; its parameters are annotated with types that pydantic reads.
        base: the base class of the family.
        given: parameters that are not fields, since the caller knows them: a random key, a dimension.
        more: name → (type, default) of fields that are not parameters of the function.
        owner: the class of the built object, if its docstring describes the kind best.
        **example: values of the fields that have no default.

    Raises:
        TypeError: a parameter has no type.
        ValueError: the family has another class of that name.
    """
    parameters, fields = {}, dict[str, tuple[Any, Any]]()
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name not in given:
            field, type_ = _FIELDS.get(parameter.name) or (parameter.name, _type_of(parameter, function))
            parameters[field] = parameter.name
            fields[field] = (type_, parameter.default)
    fields |= more or {}
    required = {field: pair for field, pair in fields.items() if pair[1] is inspect.Parameter.empty}
    optional = {field: pair for field, pair in fields.items() if field not in required}
    namespace = {
        "__doc__": _documentation(function, owner, parameters),
        "__module__": function.__module__,
        "__annotations__": {field: type_ for field, (type_, _) in (required | optional).items()},
        "function": staticmethod(function),
        "parameters": parameters,
        **{field: default for field, (_, default) in optional.items()},
    }
    title = "".join(part.capitalize() for part in name.replace("+", " plus").replace("-", " ").split())
    metaclass: Any = type(base)
    made = metaclass(title, (base,), namespace)
    return cast("type[_T]", kind(name, **example)(made))


def require_value(type_: Any, value: Any, name: str) -> None:
    """Refuse a value that is not of a type of fields; the error begins with `name`."""
    try:
        TypeAdapter(type_).validate_python(value)
    except ValidationError as error:
        first = first_error(error)
        raise (TypeError if isinstance(first, TypeError) else ValueError)(f"{name} {first.what}") from None


def _documentation(
    function: Callable[..., Any], owner: type[Any] | None, parameters: Mapping[str, str]
) -> str:
    """Return the docstring of a kind: the summary of its owner or function, and the fields as the function describes them."""
    text = inspect.getdoc(function) or ""
    for field, parameter in parameters.items():
        text = text.replace(f"    {parameter}: ", f"    {field}: ")
    about = (inspect.getdoc(owner) or "").partition("\n\n")[0] if owner else ""
    return f"{about}\n\n{text}" if about else text


def _type_of(parameter: inspect.Parameter, function: Callable[..., Any]) -> Any:
    written = parameter.annotation
    if written is inspect.Parameter.empty or parameter.kind in (
        parameter.VAR_POSITIONAL,
        parameter.VAR_KEYWORD,
    ):
        raise TypeError(
            f"{function.__qualname__}: parameter {parameter.name} has no type; write e.g. {parameter.name}: Size, "
            "with a type of mesascope.specs"
        )
    type_ = eval(written, vars(sys.modules[function.__module__])) if isinstance(written, str) else written
    return StrictBool if type_ is bool else type_
