"""Specifications from files: TOML or JSON, or standard input."""

import json
import os
import re
import stat
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from pydantic import ValidationError

from mesascope.records import is_too_deep
from mesascope.specs import TOO_DEEP, Spec, error_path, first_error, printable
from mesascope.specs import SpecError as SpecError

_Spec = TypeVar("_Spec", bound=Spec)
Kind: TypeAlias = type[_Spec] | Callable[[Any], type[_Spec]]
"""The class of a specification, or a function that chooses it from the fields of a file."""
_MAX_BYTES = 2**28
# Names that are joined by 64 dots: tomllib takes the square of their number, and no specification is nested so deeply.
_LONG_KEY = re.compile(r"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){64}""", re.ASCII)


def read_spec(
    path: str | os.PathLike[str], kind: Kind[_Spec], *, given: Mapping[str, Any] | None = None
) -> _Spec:
    """Read a specification from a file.

    Args:
        path: a .toml or .json file; with another ending, text that begins with `{` is JSON, other text TOML. `-`
            reads standard input.
        kind: what it specifies, e.g. `TrainSpec`, or a function that chooses it from the fields, e.g. `loss_spec`.
        given: fields that are not in the file.

    Raises:
        SpecError: the file cannot be read, is neither TOML nor JSON, or a field is wrong; one line with file, field, what
            is wrong, and the fix.
    """
    name, folder = ("standard input", Path()) if str(path) == "-" else (str(path), Path(path).parent)
    with error_path(file=name):
        data = parse_file(_content(path), Path(path).suffix.lower())
        return parse_spec(_filled_in(data, given) if given else data, kind, folder=folder)


def parse_spec(data: Any, kind: Kind[_Spec], *, folder: str | os.PathLike[str] = ".") -> _Spec:
    """Read a specification from a mapping, as TOML and JSON files give them.

    Args:
        data: the mapping.
        kind: what it specifies, as for `read_spec`.
        folder: where relative paths of files of samples start.

    Raises:
        SpecError: a field is missing, unknown, or wrong; one line with field, what is wrong, and the fix.
    """
    try:
        chosen: type[_Spec] = kind if isinstance(kind, type) else kind(data)
        return chosen.model_validate(data, context={"folder": Path(folder)})
    except ValidationError as error:
        raise first_error(error) from None
    except RecursionError:
        raise SpecError(TOO_DEEP) from None


def parse_recorded(data: Any, kind: Kind[_Spec], *, folder: str | os.PathLike[str] = ".") -> _Spec:
    """Read a specification that was written beside results, which may come from others: its plugins are not executed.

    Kinds that they declare are known if the user has given the plugins, by `--plugin` or in a specification.

    Raises:
        SpecError: as for `parse_spec`.
    """
    plugins = data.get("plugins") if isinstance(data, Mapping) else None
    if not plugins:
        return parse_spec(data, kind, folder=folder)
    try:
        return parse_spec(
            {name: value for name, value in data.items() if name != "plugins"}, kind, folder=folder
        )
    except SpecError as error:
        files = " ".join(f"--plugin {printable(str(one))}" for one in plugins)
        advice = f"it was made with plugins, which are not executed unless you give them: {files}"
        raise type(error)(f"{error.what}; {advice}", *error.path) from None


def read_recorded(path: str | os.PathLike[str], kind: Kind[_Spec]) -> _Spec:
    """Read the file of a specification that was written beside results; its plugins are not executed.

    Raises:
        SpecError: as for `read_spec`.
    """
    with error_path(file=str(path)):
        data = parse_file(_content(path), Path(path).suffix.lower())
        return parse_recorded(data, kind, folder=Path(path).parent)


def _filled_in(data: Any, given: Mapping[str, Any]) -> Any:
    """The fields of the file, and those given in addition."""
    if not isinstance(data, Mapping):
        return data
    for name in given:
        if name in data:
            raise SpecError("is in the file and is given in addition; leave out one of the two", name)
    return {**data, **given}


def _content(path: str | os.PathLike[str]) -> bytes:
    try:
        if str(path) == "-":
            raw = sys.stdin.buffer.read(_MAX_BYTES + 1)
        else:
            if stat.S_ISFIFO(os.stat(path).st_mode) and not str(path).startswith(
                "/dev/"
            ):  # as of `<(command)`
                raise SpecError("is a named pipe, which may stay empty; give a file, or - for standard input")
            with open(path, "rb") as file:
                raw = file.read(_MAX_BYTES + 1)
    except FileNotFoundError:
        raise SpecError("no such file; check the path") from None
    except SpecError:
        raise
    except IsADirectoryError:
        raise SpecError("is a folder; name a TOML or JSON file in it") from None
    except (OSError, ValueError) as error:  # ValueError: a null character in the path
        reason = getattr(error, "strerror", None) or error
        raise SpecError(f"cannot be read ({reason}); check path and permissions") from None
    if len(raw) > _MAX_BYTES:
        raise SpecError(f"is larger than {_MAX_BYTES // 2**20} MiB; give the file of a specification")
    return raw


def parse_file(content: bytes, suffix: str = "") -> Any:
    """Return the table in a TOML or JSON file.

    Args:
        content: of the file.
        suffix: ".toml" or ".json"; with another one, text that begins with `{` is JSON, other text TOML.

    Raises:
        SpecError: it is neither.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SpecError("is not a text in UTF-8; give a TOML or JSON file") from None
    is_json = suffix == ".json" or (suffix != ".toml" and text.lstrip().startswith("{"))
    name = "JSON" if is_json else "TOML"
    if not text.strip():
        raise SpecError("is empty; write the fields of the specification")
    if not is_json and _LONG_KEY.search(text):
        raise SpecError(TOO_DEEP)
    try:
        data = json.loads(text, object_pairs_hook=_refuse_repeated) if is_json else tomllib.loads(text)
    except SpecError:
        raise
    except ValueError as error:
        if "integer string conversion" in str(error):
            raise SpecError("holds an integer of thousands of digits; write a shorter number") from None
        raise SpecError(f"is not valid {name}: {error}; fix it there") from None
    except RecursionError:
        raise SpecError(TOO_DEEP) from None
    if is_too_deep(data):
        raise SpecError(TOO_DEEP)
    return data


def _refuse_repeated(pairs: list[tuple[str, Any]]) -> Mapping[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        repeated, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise SpecError("is given twice; keep one", repeated)
    return table
