"""The file of a checkpoint: a checksum, a header, and arrays as bytes, written as a whole or not at all.

The first line is JSON with the format, and size and SHA-256 of all that follows; the second is JSON that says what the file
holds; the rest are the arrays, which only `dynamics` can read.
"""

import hashlib
import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, Field, ValidationError, model_validator

from ._files import atomic_path, read_bytes
from ._plain import parse_json
from ._provenance import Provenance

_FORMAT = "mesascope checkpoint 1"
_NAME = re.compile(r"step-([0-9]{9,18})\.checkpoint")


class CheckpointError(ValueError):
    """A checkpoint is absent, torn, or of something else; the message names the field that differs and the fix."""


class _Log(BaseModel, extra="forbid", strict=True):
    """The losses of a training run: of the batches, and on held-out samples."""

    steps: list[int] = []
    losses: list[float] = []
    evaluated: list[int] = []
    values: list[float] = []
    errors: list[float] = []
    pending: float = 0.0
    pending_steps: Annotated[int, Field(ge=0)] = 0

    @model_validator(mode="after")
    def _columns(self) -> Self:
        if len(self.steps) != len(self.losses) or not len(self.evaluated) == len(self.values) == len(
            self.errors
        ):
            raise ValueError("has columns of different lengths")
        for steps in (self.steps, self.evaluated):
            if any(step < 0 for step in steps) or any(a >= b for a, b in pairwise(steps)):
                raise ValueError("has steps that do not increase")
        return self


class _Header(BaseModel, extra="allow", strict=True):
    """The fields of headers that somebody reads; which of them are there depends on what wrote the checkpoint."""

    weights: dict[str, str] | None = None
    precision: Literal["float32", "float64"] | None = None
    provenance: Provenance | None = None
    notes: dict[str, Any] | None = None
    step: Annotated[int, Field(ge=0)] | None = None
    run: dict[str, str] | None = None
    start: Annotated[list[float], Field(min_length=2, max_length=2)] | None = None
    state: dict[str, str] | None = None
    log: _Log | None = None

    @model_validator(mode="after")
    def _no_later_steps(self) -> Self:
        if self.log is not None and self.step is not None:
            counts = *self.log.steps, *self.log.evaluated, self.log.pending_steps
            if max(counts) > self.step:
                raise ValueError(f"log: is of more steps than {self.step}")
        return self


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


def read_checkpoint(path: str | Path, *needed: str) -> tuple[dict[str, Any], bytes]:
    """The header of the file, and its arrays as bytes.

    Args:
        path: the file.
        *needed: fields that the header must have.

    Raises:
        CheckpointError: no such file, not a checkpoint, a truncated or damaged one, one without a field that is needed, or one
            of another number of steps than its name says.
    """
    try:
        first, _, sealed = read_bytes(path).partition(b"\n")
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
    line, _, payload = sealed.partition(b"\n")
    header, steps = _header(path, line, needed), steps_of(path)
    if None not in (steps, header.get("step")) and steps != header["step"]:
        raise CheckpointError(
            f"{path}: was written after {header['step']} steps, and its name says {steps}; give it its name again"
        )
    return header, payload


def steps_of(path: str | Path) -> int | None:
    """The number of training steps in the name of a checkpoint of a run; None for other names."""
    name = _NAME.fullmatch(Path(path).name)
    return int(name[1]) if name else None


def checkpoint_name(steps: int) -> str:
    """The name of the checkpoint after so many training steps, in the folder of a run."""
    return f"step-{steps:09}.checkpoint"


def checkpoint_files(folder: Path) -> dict[int, Path]:
    """Return the checkpoints in the folder of a run by their number of steps, increasing."""
    files = ((steps_of(path), path) for path in folder.glob("step-*.checkpoint"))
    return dict(sorted((steps, path) for steps, path in files if steps is not None))


def _seal(line: bytes) -> dict[str, Any] | None:
    """The first line of a checkpoint, None if it is something else."""
    try:
        seal = parse_json(line)
    except ValueError:
        return None
    kinds = {"format": str, "bytes": int, "sha256": str}
    known = isinstance(seal, dict) and {name: type(value) for name, value in seal.items()} == kinds
    return seal if known and seal["format"] == _FORMAT else None


def _header(path: str | Path, line: bytes, needed: tuple[str, ...]) -> dict[str, Any]:
    """The header of a checkpoint; its checksum says that it is whole, not that mesascope wrote it."""
    try:
        header = parse_json(line)
        _Header.model_validate(header)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "it"
        raise CheckpointError(
            f"{path}: has another header ({where}: {first['msg']}); use another one"
        ) from None
    except ValueError as error:
        raise CheckpointError(f"{path}: has a header that is no JSON ({error}); use another one") from None
    for name in needed:
        if header.get(name) is None:
            raise CheckpointError(f"{path}: has no {name}, it is not of a training run; use another one")
    return dict(header)
