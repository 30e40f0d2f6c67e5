"""`mesascope benchmark write|answer|score`."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from tyro.conf import FlagCreatePairsOff, Positional, arg

from ._interrupt import stopped_by_interrupts
from ._output import DONE, InputError, compute_in_64_bits, print_json, progress, progress_bar, results

if TYPE_CHECKING:
    from mesascope.benchmark import Score

_MAX_NAME = 200  # letters of a method in a table
_Group = Literal["planted", "construction", "trained", "mixture", "decoy"]
Folder = Annotated[Positional[str], arg(metavar="DIR")]


@dataclass(frozen=True)
class BenchmarkCommand:
    """Write models with known algorithms, let a method name them, and count how often it is right."""

    def run(self) -> int:
        """Refuse `mesascope benchmark` without a subcommand."""
        raise InputError(f"give one of {', '.join(PARTS)}; mesascope benchmark --help explains them")


@dataclass(frozen=True)
class Write:
    """Write models with known algorithms, their data and predictions, and the key.

    Exit status: 0 done, 1 the disk is full, 2 bad input, or a folder without permission.
    """

    folder: Folder
    """A new or empty folder."""
    seed: int = 0
    """Seed of models and data."""
    draws: int = 1
    """How often each learner with hyperparameters, and each mixture, is drawn."""
    groups: tuple[_Group, ...] = get_args(_Group)
    """Which models."""

    def run(self) -> int:
        """Write; return the exit status."""
        compute_in_64_bits()
        from mesascope.benchmark import write_benchmark

        with stopped_by_interrupts(), progress_bar(progress()) as show:
            manifest = write_benchmark(
                self.folder, seed=self.seed, draws=self.draws, groups=self.groups, progress=show
            )
        print(f"{len(manifest.models)} models in {self.folder}")
        return DONE


@dataclass(frozen=True)
class AnswerModels:
    """Let a method of this package name the algorithm of every model of a benchmark.

    Answers are written after each model: the same command resumes.

    Exit status: 0 done, 1 the disk is full, 2 bad input, or a file without permission.
    """

    folder: Folder
    """The folder of the benchmark."""
    out: Annotated[str, arg(metavar="FILE")]
    """The file of the answers."""
    method: Literal["identify", "nearest"] = "identify"
    """identify, or nearest: the nearest of the same learners, without intervals and other data."""

    def run(self) -> int:
        """Answer; return the exit status."""
        compute_in_64_bits()
        from mesascope.benchmark import METHODS, Benchmark

        benchmark = Benchmark(self.folder)
        with stopped_by_interrupts(), progress_bar(progress()) as show:
            benchmark.answer(METHODS[self.method], self.method, self.out, show)
        print(self.out)
        return DONE


@dataclass(frozen=True)
class ScoreAnswers:
    """Count right and wrong answers of methods, one row each.

    right: names the learner, or all learners of a mixture, or none where none is run.
    open: names several, the right one among them. missed: names none though one is run, or several without the right one.
    wrong: names one learner, or one mixture, that is not right.

    Exit status: 0 whatever the score, 2 bad input.
    """

    folder: Folder
    """The folder of the benchmark."""
    answers: Annotated[Positional[tuple[str, ...]], arg(metavar="FILE [FILE ...]", help_behavior_hint="")]
    """Files of answers."""
    json: FlagCreatePairsOff[bool] = False
    """Print one JSON object: scores, a list of method, counts (by group and mark), hyperparameters, within, largest_error,
    intervals, covered, coverage, seconds, wrong."""

    def run(self) -> int:
        """Print; return the exit status."""
        if not self.answers:
            raise InputError("give a file of answers; mesascope benchmark answer makes one")
        from pathlib import Path

        from mesascope.benchmark import Answers, Benchmark, read_json, score
        from mesascope.specs import error_path

        benchmark = Benchmark(self.folder)
        found = []
        for file in self.answers:
            with error_path(file=file):
                found.append(
                    score(
                        benchmark,
                        read_json(Path(file), Answers, "`mesascope benchmark answer` makes answers"),
                    )
                )
        if self.json:
            print_json({"scores": [one.model_dump() for one in found]})
        else:
            _print(found)
        return DONE


def _print(scores: "list[Score]") -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from mesascope.benchmark import MARKS
    from mesascope.specs import printable

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 2, 0, 0), pad_edge=False, show_edge=False)
    table.add_column("method")
    table.add_column("models")
    for name in (*MARKS, "accuracy"):
        table.add_column(name, justify="right")
    for one in scores:
        for group, counts in one.counts.items():
            if total := sum(counts.values()):
                shares = [str(counts[mark]) for mark in MARKS] + [f"{100 * counts['right'] / total:.1f} %"]
                table.add_row(Text(printable(one.method, _MAX_NAME)), f"{total} {group}", *shares)
    console = results()
    console.print(table)
    for one in scores:
        console.print(f"\n{printable(one.method, _MAX_NAME)}: {one.describe()}", markup=False)


PARTS: dict[str, type[Any]] = {"write": Write, "answer": AnswerModels, "score": ScoreAnswers}
"""The subcommands by name."""
