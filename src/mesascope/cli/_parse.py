"""From the command line to a command: tyro's parser, with every complaint on one line."""

import re
from collections.abc import Sequence
from contextlib import redirect_stderr
from dataclasses import fields
from difflib import get_close_matches
from io import StringIO
from typing import Annotated, Any, TypeAlias

import tyro
from tyro.conf import subcommand

from ._cite import Cite
from ._claims import Claims
from ._flow import Flow
from ._loss import Loss
from ._output import InputError
from ._reproduce import Reproduce

Command: TypeAlias = (
    Annotated[Reproduce, subcommand("reproduce")]
    | Annotated[Claims, subcommand("claims")]
    | Annotated[Loss, subcommand("loss")]
    | Annotated[Flow, subcommand("flow")]
    | Annotated[Cite, subcommand("cite")]
)
COMMANDS = {"reproduce": Reproduce, "claims": Claims, "loss": Loss, "flow": Flow, "cite": Cite}

_ABOUT = """\
Laboratory for mesa-optimization: exact training dynamics of in-context learners.

Exit status: 0 done and nothing refuted, 1 a claim refuted or a run failed,
2 bad input. `mesascope --version` prints the version."""

_OPTIONS = {"preset", "out", "rerun", "json"}
_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
_BOX = re.compile(r"[─│╭╮╰╯┌┐└┘═║]+")


def parse(arguments: Sequence[str]) -> Reproduce | Claims | Loss | Flow | Cite:
    """Return the command that the arguments spell.

    Raises:
        InputError: they spell none.
        SystemExit: help or a shell completion was asked for, and printed.
    """
    if not arguments:
        raise InputError(f"give a command: {', '.join(COMMANDS)}; mesascope --help explains them")
    name, *rest = arguments
    if name.startswith("-"):
        if name in ("-h", "--help") or name.startswith("--tyro-"):
            tyro.cli(Command, prog="mesascope", description=_ABOUT, args=list(arguments))
        raise InputError(
            f"unknown option {name!r}; options come after the command, mesascope --help lists them"
        )
    if name not in COMMANDS:
        raise InputError(f"unknown command {name!r}; {_nearest(name, list(COMMANDS))}")
    kind = COMMANDS[name]
    complaint = StringIO()
    try:
        with redirect_stderr(complaint):
            command: Any
            command, left = tyro.cli(kind, prog=f"mesascope {name}", args=rest, return_unknown_args=True)
    except SystemExit as stop:
        if stop.code in (None, 0):
            raise
        raise InputError(f"{_condense(complaint.getvalue())}; see mesascope {name} --help") from None
    if left:
        if not left[0].startswith("-"):
            raise InputError(f"unknown argument {left[0]!r}; give it before the options, or drop it")
        options = [f"--{field.name}" for field in fields(kind) if field.name in _OPTIONS]
        raise InputError(f"unknown option {left[0]!r}; {_nearest(left[0], options)}")
    return command


def _nearest(given: str, known: list[str]) -> str:
    near = get_close_matches(given, known, n=1, cutoff=0.5)
    return f"did you mean {near[0]}?" if near else f"use one of {', '.join(known)}"


def _condense(box: str) -> str:
    """Return the first part of tyro's boxed complaint as one line."""
    told: list[str] = []
    for line in _ESCAPES.sub("", box).splitlines():
        text = _BOX.sub("", line)
        if not text.strip() and told:
            break  # a rule: hints and the pointer to --help follow
        if text.strip() and line[:1] in "│|" and not text.startswith(" " * 9):  # so far right stands help
            told.append(text.strip())
    return " ".join(told).rstrip(".:")
