"""Kinds: frozen objects whose fields are their specification, declared once and found by name."""

from __future__ import annotations

import abc
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache, wraps
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, cast

from pydantic import ConfigDict, PlainSerializer, PlainValidator, TypeAdapter, ValidationError, ValidationInfo
from pydantic.dataclasses import dataclass, rebuild_dataclass
from pydantic.errors import PydanticUndefinedAnnotation
from pydantic_core import ArgsKwargs

from ._errors import SpecError, SpecTypeError, first_error, show, show_number, unknown
from ._fields import in_file_form
from ._plugins import load_installed
from ._registry import FAMILIES, LOCK, register

_T = TypeVar("_T", bound="Component")

_ROOMS = {
    "processes": ("law", "process", "task", "noise", "covariance", "target"),
    "objectives._engines": ("engine",),
    "models.builders": ("model", "init"),
    "models": ("layer", "embedding", "readout"),
    "models.rules": ("rule",),
    "theory": ("construction",),
    "learners": ("learner",),
    "studies._identify_models": ("given-model",),
    "studies.sweeps._subset": ("subset",),
}
"""Package → families of the kinds in it: all modules of the package are imported before these families are listed."""


class Component(abc.ABC):
    """A frozen object that is defined by its fields: two are equal, with equal hashes, if class and fields are equal.

    A base class declares a family. A subclass with the decorator `kind` is a kind of that family, specified by its fields.
    JAX takes it as a constant: equal components share compiled programs.

    Attributes:
        family: its family: "law", "process", ….
        kind: its name in specifications.
        example_fields: the fields of an example.
        array_fields: names of the fields that may be arrays, which JAX traces.
    """

    family: ClassVar[str]
    kind: ClassVar[str]
    example_fields: ClassVar[Mapping[str, Any]] = {}
    array_fields: ClassVar[tuple[str, ...]] = ()

    if TYPE_CHECKING:  # numbers may be strings, matrices arrays: fields convert what is given

        def __init__(self, *args: Any, **fields: Any) -> None: ...

    def __new__(cls, *args: Any, **fields: Any) -> Self:
        """Refuse arguments of a class that was not declared."""
        if (args or fields) and not is_dataclass(cls):
            name = cls.__name__
            raise TypeError(f"{name} has no fields yet; write @component, or @kind(…), above class {name}")
        return super().__new__(cls)

    @classmethod
    def example(cls) -> Self:
        """Return the object of this kind that tests, forms and pages show; checks the defaults of its fields."""
        declared = {one.name: one.default for one in fields(cls) if one.init and one.default is not MISSING}  # type: ignore[arg-type]
        return construct(cls, declared | dict(cls.example_fields))

    def describe(self) -> str:
        """Return a short text for titles and messages, e.g. `Gaussian(scale=1)`."""
        values = (f"{field.name}={show_number(getattr(self, field.name))}" for field in fields(self))  # type: ignore[arg-type]
        return f"{type(self).__name__}({', '.join(values)})"

    def specification(self) -> dict[str, Any]:
        """Return its specification as a table: its kind, and the fields that are given and are not None."""
        fields = _adapter(type(self)).dump_python(self, mode="json", include=set(_names(type(self))))
        kind = {"kind": self.kind} if hasattr(self, "kind") else {}
        return kind | {name: value for name, value in fields.items() if value is not None}

    def __init_subclass__(cls, family: str | None = None, **more: Any) -> None:
        super().__init_subclass__(**more)
        if family is not None:
            cls.family = family
        _UNREGISTERED.append(cls)
        if "jax" in sys.modules:
            register_with_jax()


_NAME = re.compile(r"[a-z0-9+]+(-[a-z0-9+]+)*")
_UNREGISTERED: list[type[Component]] = []
"""Classes that are not registered with JAX yet, since JAX was not imported."""


def register_with_jax() -> None:
    """Register all classes of components with JAX, which this imports."""
    import jax

    with LOCK:
        unregistered = [_UNREGISTERED.pop() for _ in range(len(_UNREGISTERED))]
    for cls in unregistered:
        if not any(base.__module__.startswith("equinox.") for base in cls.__mro__):  # equinox registers those
            jax.tree_util.register_pytree_node(cls, _flatten, _unflatten)


def _flatten(component: Component) -> tuple[tuple[Any, ...], tuple[type[Component], tuple[Any, ...]]]:
    static = {field.name: getattr(component, field.name) for field in fields(component)}  # type: ignore[arg-type]
    arrays = tuple(static.pop(name) for name in component.array_fields)
    return arrays, (type(component), tuple(static.items()))


def _unflatten(static: tuple[type[Component], tuple[Any, ...]], arrays: Any) -> Component:
    cls, static_fields = static
    component = object.__new__(cls)
    vars(component).update(static_fields, **dict(zip(cls.array_fields, arrays, strict=True)))
    return component


def component(cls: type[_T]) -> type[_T]:
    """Make a class a frozen dataclass that checks its fields, without a name in specifications.

    Fields are annotated with types that pydantic reads, which check and convert what is given; the section `Args` of the
    docstring describes them. Conditions on several fields are checked in `__post_init__`, which raises `SpecError(…)`.

    Raises:
        TypeError: not a class.
        NameError: the type of a field is not known in its module.
    """
    if not isinstance(cls, type):
        raise TypeError(f"component: decorates classes, got {show(cls)}")
    made: Any = dataclass(frozen=True, repr="__repr__" not in vars(cls), config=_CONFIG)(cls)
    if not made.__pydantic_complete__:
        try:
            rebuild_dataclass(made)
        except PydanticUndefinedAnnotation as error:
            raise NameError(
                f"a field of {cls.__name__} has the unknown type {error.name}; import it"
            ) from None
    made.__init__ = _plain_init(made)
    return cast("type[_T]", made)


def kind(name: str, /, **example: Any) -> Callable[[type[_T]], type[_T]]:
    """Declare a class as a kind of its family, with a name in specifications; `component` describes the resulting class.

    Args:
        name: lower case, words joined by `-`.
        **example: values of the fields that have no default, for the example that tests, forms and pages show.

    Raises:
        TypeError: it is not a class of a family, lacks a method, or `name` is not a string.
        NameError: as for `component`.
        ValueError: the name has other characters, or the family has another class of that name.
    """
    if not isinstance(name, str):
        raise TypeError(
            f'{getattr(name, "__name__", show(name))} is not a name of a kind; write @kind("name") above the class'
        )
    if not _NAME.fullmatch(name):
        raise ValueError(f"{show(name)} is not a name of a kind; use lower-case words joined by -")

    def declare(cls: type[_T]) -> type[_T]:
        given: Any = cls
        if not (isinstance(given, type) and issubclass(given, Component) and hasattr(given, "family")):
            given = getattr(cls, "__name__", show(cls))
            raise TypeError(
                f"{given} is not a class derived from Law, SequenceProcess or another base class of a family"
            )
        cls.kind, cls.example_fields = name, example
        made = component(cls)
        if lacking := sorted(getattr(made, "__abstractmethods__", ())):
            raise TypeError(f"{cls.__name__} lacks {', '.join(lacking)}; write it in the class")
        register(cls.family, name, made)
        return made

    return declare


_CONFIG = ConfigDict(extra="forbid", arbitrary_types_allowed=True)


def _plain_init(cls: type[Any]) -> Any:
    """Return the constructor, with one-line errors that give the field."""
    names = _names(cls)

    @wraps(cls.__init__)
    def construct(self: Any, *args: Any, **given: Any) -> None:
        if len(args) > len(names):
            raise TypeError(
                f"{cls.__name__} takes {len(names)} arguments ({', '.join(names)}), got {len(args)}"
            )
        positional = dict(zip(names, args, strict=False))
        for name in given:
            if name in positional:
                raise TypeError(f"{cls.__name__} {name} is given twice")
            if name not in names:
                raise TypeError(f"{cls.__name__}: {unknown('argument', name, names)}")
        everything = _without_defaults(cls, {**positional, **given})
        try:
            cls.__pydantic_validator__.validate_python(ArgsKwargs((), everything), self_instance=self)
        except ValidationError as error:
            first = first_error(error)
            where = f"{cls.__name__} {first.place}".rstrip()
            raise (TypeError if isinstance(first, TypeError) else ValueError)(
                f"{where} {first.what}"
            ) from None

    return construct


def _without_defaults(cls: type[Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields without those given as None whose default is None or a component: None stands for it."""
    defaults = {one.name for one in fields(cls) if one.default is None or isinstance(one.default, Component)}
    return {name: value for name, value in given.items() if value is not None or name not in defaults}


def known_kinds(*families: str) -> dict[str, type[Any]]:
    """Return the classes of families by their names in specifications, in alphabetical order."""
    load_installed()
    for room, declared in _ROOMS.items():
        if set(families) & set(declared):
            _import_all(f"mesascope.{room}")
    found = {name: cls for family in families for name, cls in FAMILIES.get(family, {}).items()}
    return dict(sorted(found.items()))


def families() -> tuple[str, ...]:
    """Return the names of all families, those of this package first."""
    load_installed()
    built_in = [family for declared in _ROOMS.values() for family in declared]
    return (*built_in, *sorted(set(FAMILIES) - set(built_in)))


@cache
def _import_all(package: str) -> None:
    """Import a package and its modules, without sub-packages."""
    for module in iter_modules(getattr(import_module(package), "__path__", ())):
        if not module.ispkg:
            import_module(f"{package}.{module.name}")


def one_of(*families: str, default: str | None = None) -> tuple[PlainValidator, PlainSerializer]:
    """Return the annotation of a field of a family: `law: Annotated[Law, *one_of("law")]`.

    The field accepts an object of the family, a table with a `kind` and its fields, or the kind alone as a string.

    Args:
        *families: the families; error messages use the first.
        default: the kind of a table without `kind`.
    """
    return (
        PlainValidator(lambda value, info: _read(families, default, value, info)),
        PlainSerializer(specification),
    )


def of_family(family: str, value: Any) -> Any:
    """Return the component that is given: itself, a table with a `kind` and its fields, or the kind alone.

    Raises:
        TypeError, ValueError: with the place and what fits.
    """
    try:
        return _read((family,), None, value)
    except SpecError as error:
        where = f"{family}.{error.place}".rstrip(".")
        raise (TypeError if isinstance(error, TypeError) else ValueError)(f"{where} {error.what}") from None


def as_table(cls: type[Component], short: str | None = None) -> tuple[PlainValidator, PlainSerializer]:
    """Return the annotation of a field whose values are components of one class, without a `kind`.

    Args:
        cls: the class.
        short: the field that a string alone gives.
    """

    def read(value: Any, info: ValidationInfo) -> Component:
        if isinstance(value, cls):
            return value
        table = {short: value} if isinstance(value, str) and short else value
        if not isinstance(table, Mapping):
            raise SpecTypeError(
                f"must be a table with the fields {', '.join(_names(cls))}, got {show(value)}"
            )
        return _read_fields(cls, table, info, _names(cls))

    return PlainValidator(read), PlainSerializer(specification)


def one_of_or(
    family: str, check: Callable[[Any], Any], default: str | None = None
) -> tuple[PlainValidator, PlainSerializer]:
    """Return the annotation of `one_of` for a field that may also be what `check` accepts, such as a number or a matrix."""

    def read(value: Any, info: ValidationInfo) -> Any:
        is_kind = isinstance(value, Mapping | Component) or (
            isinstance(value, str) and value in known_kinds(family)
        )
        return _read((family,), default, value, info) if is_kind else check(value)

    return PlainValidator(read), PlainSerializer(specification)


def _read(
    families: tuple[str, ...], default: str | None, value: Any, info: ValidationInfo | None = None
) -> Component:
    if isinstance(value, Component) and getattr(value, "family", None) in families:
        return value
    known = known_kinds(*families)
    table = {"kind": value} if isinstance(value, str) else value
    if not isinstance(table, Mapping):
        named = f"{'an' if families[0][0] in 'aeiou' else 'a'} {families[0]}"
        raise SpecTypeError(
            f"must be {named} or a table with its kind ({', '.join(known)}), got {show(value)}"
        )
    name = table.get("kind", default)
    if name is None:
        raise SpecError(f"missing; use one of {', '.join(known)}", "kind")
    if not isinstance(name, str) or name not in known:
        raise SpecError(unknown("kind", name, list(known)), "kind")
    fields = {key: one for key, one in table.items() if key != "kind"}
    if fields and not _names(known[name]):
        raise SpecError(f"unknown field {show(next(iter(fields)))}; {name} has no fields")
    return _read_fields(known[name], fields, info, ["kind", *_names(known[name])])


def _read_fields(
    cls: type[Component], given: Mapping[str, Any], info: ValidationInfo | None, known: list[str]
) -> Component:
    for key in given:
        if key not in known:
            raise SpecError(unknown("field", key, known))
    return construct(cls, given, info.context if info else None)


def _names(cls: type[Any]) -> list[str]:
    return [field.name for field in fields(cls) if field.init]


def construct(cls: type[_T], given: Mapping[str, Any], context: Any = None) -> _T:
    """Return the object with these fields, for use inside a validator: errors give the field.

    Args:
        cls: a kind.
        given: fields, as in a specification or in Python.
        context: the context of the validation: a folder for relative paths.
    """
    given = _without_defaults(cls, given)
    try:
        made: _T = _adapter(cls).validate_python(given, context=context)
    except ValidationError as error:
        raise first_error(error) from None
    return made


@cache
def _adapter(cls: type[Component]) -> TypeAdapter[Any]:
    return TypeAdapter(cls)


def specification(value: Any) -> Any:
    """Return the specification of a component as a table, and other values as they are written in files."""
    return value.specification() if isinstance(value, Component) else in_file_form(value)
