"""Models as sealed JSON files: each names its format and holds a digest of its content."""

import errno
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from ._files import AbsentError, RecordError, UnreadableError, read_json_text, unreadable, write_text
from ._plain import canonical_json, parse_json

_Model = TypeVar("_Model", bound=BaseModel)
_Found = TypeVar("_Found")
_NO_FILE = (errno.EISDIR, errno.ENOTDIR, errno.EINVAL, errno.ENXIO, errno.ELOOP)


def _seal(content: object) -> str:
    return hashlib.sha256(canonical_json(content).encode()).hexdigest()


def write_sealed(path: Path, kind: str, model: BaseModel) -> None:
    """Write `model` to `path` as `{"format": kind, "sha256": …, "content": …}`, atomically.

    Raises:
        UnreadableError: the file that is there is of a newer version; it stays.
        RecordError: it cannot be written, or holds a text that cannot be written as UTF-8.
    """
    refuse_newer(path, kind)
    content = model.model_dump(mode="json", by_alias=True)
    document = {"format": kind, "sha256": _seal(content), "content": content}
    try:
        write_text(path, json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    except UnicodeEncodeError as error:
        half = error.object[error.start : error.end]
        raise RecordError(
            f"cannot write {path}: {half!a} is half a character; give texts and names of files in UTF-8"
        ) from error


def read_sealed(path: Path, kind: str, model: type[_Model]) -> _Model:
    """Read what `write_sealed` wrote.

    Raises:
        AbsentError: there is no file.
        UnreadableError: the file cannot be read: no permission, a newer version, or a disk error.
        RecordError: it is torn, of another kind or origin, or was changed after it was written.
    """
    again = "remove it and run again"
    document = _read_document(path, kind)
    if document["format"] != kind:
        raise RecordError(f"{path} has format {document['format']!r}, expected {kind!r}; {again}")
    if document["sha256"] != _seal(document["content"]):
        raise RecordError(f"{path} was changed after it was written (its digest differs); {again}")
    try:
        return model.model_validate_json(json.dumps(document["content"]))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "content"
        raise RecordError(f"{path} does not fit {kind!r} ({where}: {first['msg']}); {again}") from error


def refuse_newer(path: Path, kind: str) -> None:
    """Refuse to replace a file that a newer version of mesascope wrote.

    Raises:
        UnreadableError: it is such a file.
    """
    none_if_damaged(lambda: _read_document(path, kind))


def _read_document(path: Path, kind: str) -> dict[str, Any]:
    """The fields of a sealed file of this kind or an older one, with a digest that nobody has checked."""
    again = "remove it and run again"
    try:
        document = parse_json(read_json_text(path))
    except FileNotFoundError:
        raise AbsentError(f"no record at {path}; run what writes it first") from None
    except OSError as error:
        if error.errno in _NO_FILE:
            raise RecordError(f"cannot read {path}: {error.strerror}; {again}") from error
        raise unreadable(path, error) from error
    except ValueError as error:  # too large, no UTF-8, no JSON, too deep, numbers without end
        raise RecordError(f"{path} is torn or no JSON ({error}); {again}") from error
    if not isinstance(document, dict) or set(document) != {"format", "sha256", "content"}:
        raise RecordError(f"{path} is not a file of mesascope; {again}")
    if _is_newer(document["format"], kind):
        raise UnreadableError(
            f"{path} has format {document['format']!r}, expected {kind!r}: it is of a newer version of mesascope; upgrade"
        )
    return document


def none_if_damaged(read: Callable[[], _Found]) -> _Found | None:
    """What `read` gives; None where the record is absent or damaged, but an error where it cannot be read."""
    try:
        return read()
    except UnreadableError:
        raise
    except RecordError:
        return None


def _is_newer(found: object, kind: str) -> bool:
    """Whether this is the same format with a higher number."""
    name, _, number = str(found).rpartition("/")
    ours, _, our_number = kind.rpartition("/")
    return name == ours and number.isdecimal() and (len(number), number) > (len(our_number), our_number)
