"""The record of a certificate: a statement about a critical point, and what is needed to prove it again."""

import json
import os
import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, Field, ValidationError
from pydantic_core import ErrorDetails

from ._files import RecordError, read_json_text, write_text
from ._plain import PlainMapping, RepeatedKeyError, parse_json, without_repetition
from ._provenance import Provenance

CERTIFICATE_FORMAT: Literal["mesascope.certificate/2"] = "mesascope.certificate/2"
"""The format that the file of a certificate names."""
Rational = Annotated[str, Field(pattern=r"^-?[0-9]+(\.[0-9]+|/[1-9][0-9]*)?$", max_length=4000)]
"""A rational number: an integer, a decimal, or a quotient; as long as Python reads and writes them."""
Row = Annotated[tuple[Rational, ...], Field(min_length=1)]
Count = Annotated[int, Field(strict=True, ge=0)]


class CertificateRecord(BaseModel, frozen=True, extra="forbid"):
    """A critical point of a population loss and what is proved about it; not sealed, for every line is proved again.

    Attributes:
        format: what this file is.
        statement: what is proved, in sentences.
        spec: the loss: law, dim, horizon, weights, rho, mask; or process, task, and the model whose shapes the weights have.
        weights: the centre, rational weights: every array of the layer as rows along its last axis.
        radius: exactly one critical point with the conserved quantities of the centre lies within it, entry by entry; 0 if
            the centre itself is one.
        unique_within: and no other within this radius; None if nothing is proved about others.
        positive, negative, zero: how many eigenvalues of the Hessian are so, over the weights that the loss depends on and
            no mask holds.
        loss: numbers below and above the loss there.
        products: the same for a_j b_j, for every coordinate; none on prompts.
        theorem: what every a_j b_j is exactly, if it is the limit of diagonal flows (Theorem 4.1 of zheng2024 or its
            generalization, as the statement says); else None.
        provenance: versions, commit, platform and time.
    """

    format: Literal["mesascope.certificate/2"] = CERTIFICATE_FORMAT
    statement: tuple[str, ...]
    spec: PlainMapping
    weights: dict[str, tuple[Row, ...]]
    radius: Rational
    unique_within: Rational | None
    positive: Count
    negative: Count
    zero: Count
    loss: tuple[Rational, Rational]
    products: tuple[tuple[Rational, Rational], ...]
    theorem: Rational | None
    provenance: Provenance


def write_certificate(path: str | os.PathLike[str], record: CertificateRecord) -> None:
    """Write a certificate as JSON, atomically.

    Raises:
        RecordError: it cannot be written.
    """
    write_text(Path(path), json.dumps(record.model_dump(mode="json"), indent=1, ensure_ascii=False) + "\n")


class CertificateFile:
    """A certificate in a file, for messages that name its lines.

    Attributes:
        path: the file.
        record: what it holds.

    Raises:
        RecordError: it is absent, no JSON, or no certificate; the message names the line.
    """

    path: Path
    record: CertificateRecord

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        try:
            text = read_json_text(self.path)
            content = parse_json(text, object_pairs_hook=without_repetition)
        except OSError as error:
            raise RecordError(f"cannot read {self.path}: {error.strerror}; name a certificate") from error
        except json.JSONDecodeError as error:
            raise RecordError(
                f"{self.path}:{error.lineno}: no JSON here ({error.msg}); certify again"
            ) from error
        except RepeatedKeyError as error:
            line = max(n for path, n in json_lines(text).items() if path[-1:] == error.args)
            raise RecordError(f"{self.path}:{line}: {error}: occurs twice; certify again") from None
        except ValueError as error:  # no text, too deep, or an integer of thousands of digits
            raise RecordError(f"{self.path}: is no JSON that can be read ({error}); certify again") from error
        self._lines = json_lines(text)
        try:
            self.record = CertificateRecord.model_validate(content)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            raise self.error([str(part) for part in first["loc"]], _message(first)) from None

    def error(self, field: list[str], what: str) -> RecordError:
        """The error of a field, with file and line."""
        name = ".".join(field) or "the file"
        return RecordError(f"{self.path}:{self._line(tuple(field))}: {name}: {what}; certify again")

    def _line(self, field: tuple[str, ...]) -> int:
        """The line of a field, or of the object that lacks it, counted from 1."""
        while field not in self._lines:
            field = field[:-1]
        return self._lines[field]


def _message(error: ErrorDetails) -> str:
    if error["type"] == "string_pattern_mismatch":
        return "must be a number in quotes such as 12, 0.001 or 1/3"
    if error["type"] == "model_type":
        return "must be a JSON object as `mesascope certify --out` writes it"
    return error["msg"]


_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')


def json_lines(text: str) -> dict[tuple[str, ...], int]:
    """The line of every value of a valid JSON text, counted from 1, by its path: names and indices as strings.

    The line of a value is that of its name; if a name occurs twice, that of the second.
    """
    lines: dict[tuple[str, ...], int] = {(): 1}
    path: list[str] = []
    names: list[bool] = []  # of the objects and lists that are open: whether an object
    awaited = False  # a value follows, its path and line being known
    line, counted = 1, 0
    for token in _TOKEN.finditer(text):
        word = token.group()
        line, counted = line + text.count("\n", counted, token.start()), token.start()
        if word in "}]":
            names.pop()
            path.pop()
            awaited = False
        elif word == ",":
            path[-1] = path[-1] if names[-1] else str(int(path[-1]) + 1)
            awaited = False
        elif word == ":":
            awaited = True
        elif names and names[-1] and not awaited:
            path[-1] = word[1:-1]
            lines[tuple(path)] = line
        else:
            lines.setdefault(tuple(path), line)
            awaited = False
            if word in "{[":
                names.append(word == "{")
                path.append("" if word == "{" else "0")
    return lines
