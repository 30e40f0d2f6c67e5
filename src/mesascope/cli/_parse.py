"""From the command line to a command: tyro's parser, with every error on one line."""

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import partial
from inspect import cleandoc
from io import StringIO
from shutil import get_terminal_size
from textwrap import fill
from typing import Annotated, Any, Protocol, TextIO, Union, get_type_hints

import tyro
from tyro.conf import Positional, subcommand
from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

from ._benchmark import PARTS, BenchmarkCommand
from ._certify import Certify
from ._cite import Cite
from ._claims import Claims
from ._counterexample import CounterexampleCommand
from ._flow import Flow
from ._formula import FormulaCommand
from ._identify import Identify
from ._kinds import Kinds
from ._lab import Lab
from ._loss import Loss
from ._output import InputError, printable, prints_to_stderr
from ._report import Report
from ._reproduce import Reproduce
from ._runs import RUNS, Runs
from ._sweep import Sweep
from ._train import Train

COMMANDS = {
    "reproduce": Reproduce,
    "claims": Claims,
    "loss": Loss,
    "flow": Flow,
    "formula": FormulaCommand,
    "train": Train,
    "identify": Identify,
    "certify": Certify,
    "counterexample": CounterexampleCommand,
    "sweep": Sweep,
    "runs": Runs,
    "report": Report,
    "kinds": Kinds,
    "benchmark": BenchmarkCommand,
    "lab": Lab,
    "cite": Cite,
}
_SPECS = {
    "loss": {"SPEC": "LossSpec", "SPEC with a model": "ModelLossSpec"},
    "flow": {"SPEC": "FlowSpec", "SPEC with a model": "ModelFlowSpec"},
    "formula": {"SPEC": "FormulaSpec"},
    "train": {"SPEC": "TrainSpec"},
    "identify": {"SPEC": "IdentifySpec"},
    "certify": {"SPEC": "CertifySpec", "SPEC with a model": "CertifyModelSpec"},
    "sweep": {"SPEC": "StudySpec"},
}
"""Commands that read a SPEC → what it may be, and the class whose fields help lists."""
_PARTS: dict[str, dict[str, type[Any]]] = {"runs": RUNS, "benchmark": PARTS}
"""Commands that have subcommands → these."""


class AnyCommand(Protocol):
    """A command with its options and arguments."""

    def run(self) -> int:
        """Run it; return the exit status."""


def _union(commands: Mapping[str, type[Any]]) -> Any:
    """The type from which the parser chooses a command, by name; the list of all shows the first lines of their help."""
    named = (
        Annotated[kind, subcommand(name, description=(kind.__doc__ or "").partition("\n")[0])]
        for name, kind in commands.items()
    )
    return Union[tuple(named)]  # noqa: UP007 — made of a tuple


_ABOUT = """\
Laboratory for mesa-optimization: exact training dynamics of in-context learners.

Exit status: 0 done and nothing contradicted, 1 a claim contradicted or a run failed,
2 bad input. `mesascope --version` prints the version."""

_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
_RULE = re.compile(r"[ ╰╯]*[─-][ ─╰╯-]*")
_HELP = " " * 10  # before the help text of an option
_LONGEST = 2000  # characters of an error
_WIDEST = 100  # characters of a line of help
_BOX = ("╭", "│", "╰", " ", "-", "\x1b")  # how lines begin that are laid out already


_INTEGERS = ConstructorRegistry()


@_INTEGERS.primitive_rule
def _integer_rule(about: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[int] | None:
    """How integers are read: `int` alone also takes digits of other scripts, spaces and underscores."""
    if about.type is not int:
        return None
    return PrimitiveConstructorSpec(
        nargs=1,
        metavar="INT",
        instance_from_str=_integer,
        is_instance=lambda value: isinstance(value, int) and not isinstance(value, bool),
        str_from_instance=lambda value: [str(value)],
    )


def _integer(given: list[str]) -> int:
    if not re.fullmatch("[+-]?[0-9]+", given[0]):
        raise ValueError(f"{given[0]!r} is not an integer")
    return int(given[0])


class _Filled(StringIO):
    """Standard output for help: lines outside boxes that are wider than the terminal are broken between words."""

    def __init__(self, output: TextIO) -> None:
        super().__init__()
        self._output = output

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._output.encoding

    def isatty(self) -> bool:
        return self._output.isatty()

    def write(self, text: str) -> int:
        width = min(get_terminal_size().columns, _WIDEST)
        whole = partial(fill, width=width, break_long_words=False, break_on_hyphens=False)
        lines = (line if line.startswith(_BOX) else whole(line) for line in text.split("\n"))
        return self._output.write("\n".join(lines))

    def flush(self) -> None:
        self._output.flush()


_NARROWEST = 20  # columns: tyro does not end the help for a terminal of six or less


@contextmanager
def _filled_help(arguments: Sequence[str]) -> Iterator[None]:
    """Break wide lines of help, if that is what these arguments ask for; scripts of shells stay as they are."""
    if {"-h", "--help"}.isdisjoint(arguments) or not sys.stdout:
        yield
        return
    before = os.environ.get("COLUMNS")
    if get_terminal_size().columns < _NARROWEST:
        os.environ["COLUMNS"] = str(_NARROWEST)
    try:
        with redirect_stdout(_Filled(sys.stdout)):
            yield
    finally:
        os.environ.pop("COLUMNS", None)
        if before is not None:
            os.environ["COLUMNS"] = before


def parse(arguments: Sequence[str]) -> AnyCommand:
    """Return the command of the arguments.

    Raises:
        InputError: there is no such command, or it does not take them.
        SystemExit: help or a shell completion was asked for, and printed.
    """
    name, rest = _chosen(arguments, COMMANDS, "mesascope", _ABOUT)
    if name not in _PARTS:
        asked = {"-h", "--help"} & set(rest) and name in _SPECS
        about = _with_fields(COMMANDS[name], _SPECS[name]) if asked else None
        return _read(COMMANDS[name], f"mesascope {name}", rest, about)
    program = f"mesascope {name}"
    part, rest = _chosen(rest, _PARTS[name], program, COMMANDS[name].__doc__ or "")
    return _read(_PARTS[name][part], f"{program} {part}", rest)


def _chosen(
    arguments: Sequence[str], commands: Mapping[str, type[Any]], program: str, about: str
) -> tuple[str, list[str]]:
    """The name of the command, and its own arguments."""
    if not arguments:
        raise InputError(f"give a command: {', '.join(commands)}; {program} --help explains them")
    name, *rest = arguments
    if name.startswith("-"):
        if name in ("-h", "--help") or name.startswith("--tyro-"):
            with _filled_help(arguments):
                tyro.cli(_union(commands), prog=program, description=about, args=list(arguments))
        raise InputError(
            f"unknown option {name!r}; options come after the command, {program} --help lists them"
        )
    if name not in commands:
        from mesascope.specs import unknown

        raise InputError(unknown("command", name, list(commands)))
    return name, rest


def _with_fields(command: type[Any], specs: Mapping[str, str]) -> str:
    """The help of a command, with the fields of its SPEC."""
    from mesascope import studies
    from mesascope.report import tex_to_text
    from mesascope.specs import REQUIRED, field_help

    lines: list[str] = []
    for heading, spec in specs.items():
        lines += ["", f"Fields of {heading}:", ""]
        for one in field_help(getattr(studies, spec)):
            optional = "" if one.default is REQUIRED else " (optional)"
            lines.append(fill(f"- {one.name}{optional}: {tex_to_text(one.text)}", 88, subsequent_indent="  "))
    kinds = "`mesascope kinds` lists the kinds that fields can name."
    return "\n".join([cleandoc(command.__doc__ or ""), *lines, "", kinds])


def _read(kind: type[Any], program: str, arguments: list[str], about: str | None = None) -> AnyCommand:
    """One command with its arguments; its plugins are loaded."""
    errors = StringIO()
    try:
        with redirect_stderr(errors), _filled_help(arguments), _INTEGERS:
            command: Any
            command, left = tyro.cli(
                kind, prog=program, description=about, args=arguments, return_unknown_args=True
            )
    except SystemExit as stop:
        if stop.code in (None, 0):
            raise
        raise InputError(f"{_condense(errors.getvalue())}; see {program} --help") from None
    if left:
        if not left[0].startswith("-"):
            raise InputError(f"unknown argument {left[0]!r}; give it before the options, or leave it out")
        from mesascope.specs import unknown

        raise InputError(unknown("option", left[0], _options(kind)))
    if plugins := getattr(command, "plugin", ()):
        from mesascope.specs import error_path, set_default_plugins

        with prints_to_stderr(), error_path("--plugin"):
            set_default_plugins(plugins)
    return command


def _options(kind: type[Any]) -> list[str]:
    """The options of a command: its fields that are not positional."""
    types = get_type_hints(kind, include_extras=True)
    named = [name for name, one in types.items() if Positional not in getattr(one, "__metadata__", ())]
    return [f"--{name.replace('_', '-')}" for name in named]


def _condense(box: str) -> str:
    """Return the error of tyro as one line, without box, title, help texts and hints."""
    plain = _ESCAPES.sub("", box)
    sections: list[list[str]] = [[]]
    for line in plain.splitlines():
        text = line.replace("│", " ")
        if line.startswith("╭") or _RULE.fullmatch(text):
            sections.append([])
        elif text.strip() and not text.startswith(_HELP):
            sections[-1].append(text.strip())
    filled = [section for section in sections if section]
    # without boxes, the title is a section of its own
    message = filled[: 1 if plain.startswith("╭") else 2][-1:]
    line = " ".join(*message or [["arguments not understood"]]).rstrip(" .:")
    return printable(line, _LONGEST)  # a long word stands there in pieces
