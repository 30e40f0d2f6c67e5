"""The file of a checkpoint: a checksum, a header, and arrays as bytes, written as a whole or not at all.

The first line is JSON with the format, and size and SHA-256 of all that follows; the second is JSON that says what the file
holds; the rest are the arrays, which only `dynamics` can read.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

from ._files import atomic_path

_FORMAT = "mesascope checkpoint 1"


class CheckpointError(ValueError):
    """A checkpoint is absent, torn, or of something else; the message names the field that differs and the fix."""


def write_checkpoint(path: Path, header: dict[str, Any], payload: bytes) -> None:
    """Write a header and the arrays behind it, atomically.

    Raises:
        RecordError: it cannot be written.
    """
    sealed = _line(header) + payload
    seal = {"format": _FORMAT, "bytes": len(sealed), "sha256": hashlib.sha256(sealed).hexdigest()}
    with atomic_path(path) as temporary:
        temporary.write_bytes(_line(seal) + sealed)


def _line(content: dict[str, Any]) -> bytes:
    return json.dumps(content, ensure_ascii=False, sort_keys=True).encode() + b"\n"


def read_checkpoint(path: str | Path) -> tuple[dict[str, Any], bytes]:
    """The header of the file, and its arrays as bytes.

    Raises:
        CheckpointError: no such file, not a checkpoint, or a truncated or damaged one.
    """
    try:
        first, _, sealed = Path(path).read_bytes().partition(b"\n")
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read ({error.strerror}); name a checkpoint file") from None
    seal = _seal(first)
    if seal is None:
        raise CheckpointError(
            f"{path}: is not a checkpoint of this version ({_FORMAT}), or its first line is torn; use another one"
        )
    if len(sealed) < seal["bytes"]:
        raise CheckpointError(
            f"{path}: is truncated, {len(sealed)} of {seal['bytes']} bytes are there; remove it to go on from the one before"
        )
    if (len(sealed), hashlib.sha256(sealed).hexdigest()) != (seal["bytes"], seal["sha256"]):
        raise CheckpointError(f"{path}: is damaged, its content does not match its checksum; use another one")
    header, _, payload = sealed.partition(b"\n")
    return dict(json.loads(header)), payload


def _seal(line: bytes) -> dict[str, Any] | None:
    """The first line of a checkpoint, None if it is something else."""
    try:
        seal = json.loads(line)
    except ValueError:
        return None
    kinds = {"format": str, "bytes": int, "sha256": str}
    known = isinstance(seal, dict) and {name: type(value) for name, value in seal.items()} == kinds
    return seal if known and seal["format"] == _FORMAT else None
