"""Models as sealed JSON files: each names its format and holds a digest of its content."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from ._files import RecordError, UnreadableError, unreadable, write_text
from ._plain import canonical_json

_Model = TypeVar("_Model", bound=BaseModel)
_Found = TypeVar("_Found")


def _seal(content: object) -> str:
    return hashlib.sha256(canonical_json(content).encode()).hexdigest()


def write_sealed(path: Path, kind: str, model: BaseModel) -> None:
    """Write `model` to `path` as `{"format": kind, "sha256": …, "content": …}`, atomically.

    Raises:
        RecordError: it cannot be written, or holds a text that cannot be written as UTF-8.
    """
    content = model.model_dump(mode="json")
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
        UnreadableError: the file cannot be read: no permission, a newer version, or a disk error.
        RecordError: it is absent, torn, of another kind or origin, or was changed after it was written.
    """
    again = "remove it and run again"
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RecordError(f"no record at {path}; run what writes it first") from None
    except (IsADirectoryError, NotADirectoryError) as error:
        raise RecordError(f"cannot read {path}: {error.strerror}; {again}") from error
    except OSError as error:
        raise unreadable(path, error) from error
    except (ValueError, RecursionError) as error:  # no UTF-8, no JSON, numbers without end
        raise RecordError(f"{path} is torn or no JSON ({error}); {again}") from error
    if not isinstance(document, dict) or set(document) != {"format", "sha256", "content"}:
        raise RecordError(f"{path} is not a file of mesascope; {again}")
    if _is_newer(document["format"], kind):
        raise UnreadableError(
            f"{path} has format {document['format']!r}, expected {kind!r}: it is of a newer version of mesascope; upgrade"
        )
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
