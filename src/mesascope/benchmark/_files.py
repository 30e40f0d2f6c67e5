"""The files of a benchmark: what a method is shown, the key, and the answers of a method."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, Self, TypeVar

import numpy as np
from pydantic import BaseModel, Field, FiniteFloat, ValidationError, model_validator

from mesascope.records import (
    PlainMapping,
    Provenance,
    RepeatedKeyError,
    canonical_json,
    parse_json,
    read_bytes,
    read_json_text,
    without_repetition,
    write_text,
)
from mesascope.specs import SpecError, first_error, one_line, show

from ._cases import Group, Truth
from ._data import USUAL, Setting
from ._models import AnyModel

MANIFEST = "manifest.json"
KEY = "key.json"
PURPOSE = "benchmark"  # of the lock of its folder

Verdict = Literal["identified", "mixture", "ambiguous", "none"]
"""What a method says of a model: one learner, one mixture, several that it cannot tell apart, or none."""
_NAMED: dict[Verdict, tuple[range, str]] = {
    "identified": (range(1, 2), "one learner"),
    "mixture": (range(2, 4), "two or three different learners"),
    "ambiguous": (range(1, sys.maxsize), "one or more different learners"),
    "none": (range(1), "no learner"),
}
"""How many learners an answer of each verdict names, and the words for it."""


class DataFile(BaseModel, frozen=True, extra="forbid"):
    """The contexts of one process: arrays `SETTING/x`, `SETTING/y`, `SETTING/tokens` or `SETTING/symbols`.

    Attributes:
        file: their file, from the folder of the benchmark.
        sha256: its digest.
        settings: the process and the task of every setting.
    """

    file: str
    sha256: str
    settings: dict[str, Setting]


class ModelFile(BaseModel, frozen=True, extra="forbid"):
    """The predictions of one model: arrays `SETTING/predictions`, and the weights of a network.

    Attributes:
        file: their file, from the folder of the benchmark.
        sha256: its digest.
        data: the name of its data.
    """

    file: str
    sha256: str
    data: str


class Manifest(BaseModel, frozen=True, extra="forbid"):
    """What a method is shown.

    Attributes:
        format: of this file.
        seed: the seed of models and data.
        draws: how often each learner with hyperparameters, and each mixture, was drawn.
        data: the contexts, by name.
        models: the models, by number.
        key: digest of the file with the right answers.
        provenance: the versions that wrote it.
    """

    format: Literal["mesascope.benchmark/1"] = "mesascope.benchmark/1"
    seed: int
    draws: int
    data: dict[str, DataFile]
    models: Annotated[dict[str, ModelFile], Field(min_length=1)]
    key: str
    provenance: Provenance

    def digest(self) -> str:
        """Return the SHA-256 of all but the provenance, as canonical JSON."""
        content = canonical_json(self.model_dump(mode="json", exclude={"provenance"}))
        return hashlib.sha256(content.encode()).hexdigest()

    @model_validator(mode="after")
    def _every_model_has_usual_data(self) -> Self:
        for name, one in self.models.items():
            if one.data not in self.data or USUAL not in self.data[one.data].settings:
                raise SpecError(
                    f"must name data with the setting {USUAL!r}, got {show(one.data)}", "models", name, "data"
                )
        return self


class KeyEntry(BaseModel, frozen=True, extra="forbid"):
    """What a method is not shown of a model.

    Attributes:
        group: where it comes from.
        model: its description.
        noise: relative size of what is added to its predictions.
        truth: the right answer.
    """

    group: Group
    model: AnyModel
    noise: float
    truth: Truth


class Key(BaseModel, frozen=True, extra="forbid"):
    """The right answers.

    Attributes:
        models: by number.
    """

    models: dict[str, KeyEntry]


class Answer(BaseModel, frozen=True, extra="forbid"):
    """What a method says of a model.

    Attributes:
        verdict: whether it names one learner, one mixture, several learners or none.
        learners: ids of learners: one, the parts of a mixture, those that cannot be told apart, or none.
        hyperparameters: by id, as far as the method finds them.
        weights: of a mixture: by id the weight and the ends of its 95 % interval.
        seconds: how long it took.
    """

    verdict: Verdict
    learners: tuple[str, ...] = ()
    hyperparameters: dict[str, PlainMapping] = {}
    weights: dict[str, tuple[FiniteFloat, FiniteFloat, FiniteFloat]] = {}
    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0

    @model_validator(mode="after")
    def _has_intervals(self) -> Self:
        for learner, (weight, low, high) in self.weights.items():
            if not low <= weight <= high:
                raise ValueError(f"the weight {weight} of {learner} is not in its interval [{low}, {high}]")
        return self

    @model_validator(mode="after")
    def _names_as_many_as_it_says(self) -> Self:
        numbers, wanted = _NAMED[self.verdict]
        if len(set(self.learners)) < len(self.learners) or len(self.learners) not in numbers:
            raise ValueError(f"the verdict {self.verdict!r} needs {wanted}, got {show(list(self.learners))}")
        return self


class Answers(BaseModel, frozen=True, extra="forbid"):
    """The answers of a method.

    Attributes:
        method: its name.
        benchmark: `id` of the benchmark.
        answers: by the number of the model.
        provenance: the versions, for methods of this package.
    """

    method: str
    benchmark: str
    answers: Mapping[str, Answer]
    provenance: Provenance | None = None


_Read = TypeVar("_Read", bound=BaseModel)


def require_finished(folder: Path) -> None:
    """Refuse a folder that was being written when its writer ended: the manifest comes last."""
    held = {path.name for path in folder.iterdir()} - {f".{PURPOSE}.lock"} if folder.is_dir() else set()
    if held and held <= {"data", "models", KEY}:
        raise ValueError(f"{folder} holds a benchmark that was not finished; remove it, or name a new folder")


def read_json(
    path: Path, kind: type[_Read], fix: str = "`mesascope benchmark write DIR` makes a benchmark"
) -> _Read:
    """Read a JSON file of the benchmark.

    Raises:
        ValueError: there is no such file, it is no JSON, or does not have these fields.
    """
    try:
        content = parse_json(read_json_text(path), object_pairs_hook=without_repetition)
    except OSError as error:
        what = "it is a folder" if path.is_dir() else error.strerror
        raise ValueError(f"cannot read {path}: {what}; {fix}") from error
    except RepeatedKeyError as error:
        raise ValueError(f"{path}: {error} occurs twice in one object; keep one of the two") from None
    except ValueError as error:
        raise ValueError(f"{path} is no JSON ({error}); get the file again") from error
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        raise first_error(error).within(file=str(path)) from error


def write_json(path: Path, content: BaseModel) -> None:
    """Write a JSON file, atomically.

    Raises:
        RecordError: it cannot be written.
    """
    write_text(path, json.dumps(content.model_dump(mode="json"), indent=1, allow_nan=False) + "\n")


def read_arrays(path: Path, sha256: str) -> dict[str, np.ndarray]:
    """Read a file of arrays.

    Raises:
        ValueError: it cannot be read, does not have this digest, or holds no arrays.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        content = read_bytes(path)
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror}; get the benchmark again") from error
    if hashlib.sha256(content).hexdigest() != sha256:
        raise ValueError(f"{path} was changed after it was written; get the benchmark again")
    try:
        return load(content)
    except (
        SafetensorError,
        KeyError,
        ValueError,
    ) as error:  # the last two: of a type or a shape that numpy does not have
        raise ValueError(
            f"{path} holds no arrays ({one_line(str(error))}); get the benchmark again"
        ) from error


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(read_bytes(path)).hexdigest()


def inside(folder: Path, file: str) -> Path:
    """Return a file of the benchmark.

    Raises:
        ValueError: it is not in the folder.
    """
    path = Path(os.path.realpath(folder / file))  # `Path.resolve` refuses links in a circle
    if not path.is_relative_to(os.path.realpath(folder)):
        raise ValueError(
            f"{folder / MANIFEST}: names {file!r}, which is outside its folder; get the benchmark again"
        )
    return path
