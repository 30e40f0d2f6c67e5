"""`mesascope train`."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Annotated, Any

from tyro.conf import FlagCreatePairsOff, Positional, arg

from ._interrupt import was_interrupted
from ._output import (
    DONE,
    FAILED,
    INTERRUPTED,
    InputError,
    compute_in_64_bits,
    compute_on_every_core,
    in_file,
    print_headline,
    print_json,
    prints_to_stderr,
    progress,
    progress_bar,
    results,
    say,
)
from ._plugin import PluginOption

if TYPE_CHECKING:
    from mesascope.core import Progress
    from mesascope.processes import Task
    from mesascope.studies import TrainingRun, TrainingRuns, TrainManyResult, TrainResult, TrainSpec


@dataclass(frozen=True)
class Train(PluginOption):
    """Train a model on freshly drawn sequences or prompts."""

    spec: Annotated[Positional[str], arg(metavar="SPEC")]
    """TOML or JSON file with process, horizon or examples, model; - reads standard input."""
    out: Annotated[str | None, arg(metavar="DIR", help_behavior_hint="")] = None
    """Folder of the checkpoints, by default runs/NAME for NAME.toml; the same command resumes."""
    export: Annotated[str | None, arg(metavar="FILE", help_behavior_hint="")] = None
    """Also write the trained weights as safetensors."""
    export_average: Annotated[str | None, arg(metavar="FILE", help_behavior_hint="")] = None
    """Also write the moving average of the weights as safetensors."""
    json: FlagCreatePairsOff[bool] = False
    """Print one JSON object: loss, loss_standard_error, average_loss, average_loss_standard_error, steps,
    checkpoint, result, message, losses, evaluations; of several seeds: mean and standard error over seeds, result,
    message, seeds, and runs, the list of these objects."""

    def run(self) -> int:
        """Check the input, then train; return the exit status."""
        from mesascope.records import InUseError, RecordError, prepare_output
        from mesascope.studies import TrainSpec, read_spec

        folder = self._folder()
        with in_file(self.spec):
            spec = read_spec(self.spec, TrainSpec)
            self._refuse_exports(spec, folder)
            compute_on_every_core()
            compute_in_64_bits()
            run: Any = spec.build() if spec.seeds is None else spec.build_many()
        prepare_output(folder)  # from here on, errors of files are a failed run, not bad input
        try:
            return self._run(run, folder)
        except InUseError:
            raise
        except RecordError as error:
            say(f"mesascope train: {error}; {_kept(folder)}")
            return FAILED
        except BaseException as error:
            if not was_interrupted(error):
                raise
            say(f"mesascope train: interrupted; {_kept(folder)}")
            return INTERRUPTED

    def _run(self, run: Any, folder: Path) -> int:
        """Train, print and export; return the exit status."""
        from mesascope.studies import TrainingRuns

        with prints_to_stderr():
            training = _train(run, folder)
            result = run.result(training)
        if self.json:
            print_json(result.model_dump())
        else:
            _print(result, run.task, folder)
        if result.succeeded:
            self._export(training)  # last: if it fails, the result is printed
            return DONE
        many = isinstance(run, TrainingRuns)
        last = folder if many else result.checkpoint
        if result.result == "interrupted":
            say(f"mesascope train: interrupted; {last} is kept, and the same command resumes")
            return INTERRUPTED
        where = f"the last good checkpoints are in {last}" if many else f"the last good checkpoint is {last}"
        say(f"mesascope train: {result.result}: {result.message}; {where}")
        return FAILED

    def _refuse_exports(self, spec: "TrainSpec", folder: Path) -> None:
        """Refuse exports that cannot be written, or would replace what is read or kept, before training."""
        from mesascope.records import prepare_file

        used = {Path(self.spec).resolve(): "the specification itself"}
        used[(folder / "spec.json").resolve()] = "the specification in the folder of the checkpoints"
        for option, file in (("--export", self.export), ("--export-average", self.export_average)):
            if file is None:
                continue
            if not file.strip():
                raise InputError(f"{option} is empty; name a file such as model.safetensors")
            if (what := used.get(Path(file).resolve())) is not None:
                raise InputError(f"{option} {file!r} is {what}; name another file")
            used[Path(file).resolve()] = "that of --export"
            if spec.seeds is not None:
                raise InputError(
                    f"{option} writes the weights of one run, but seeds asks for several; "
                    "train without it, then export the run of a spec.json in DIR/seed-…, with --out that folder"
                )
        if self.export_average and spec.average is None:
            raise InputError(
                "--export-average needs a moving average of the weights; add average = 0.999, say"
            )
        for file in filter(None, (self.export, self.export_average)):
            prepare_file(file, "a safetensors file", _is_safetensors)  # before hours of training, not after

    def _export(self, training: Any) -> None:
        from mesascope.dynamics import export_safetensors

        if self.export:
            export_safetensors(self.export, training.model)
        if self.export_average:
            export_safetensors(self.export_average, training.average)

    def _folder(self) -> Path:
        if self.out is not None:
            if not self.out.strip():
                raise InputError("--out is empty; name a folder for the checkpoints")
            return Path(self.out)
        if self.spec == "-":
            raise InputError("standard input has no name for the folder of the checkpoints; give --out DIR")
        return Path("runs", Path(self.spec).stem)


def _kept(folder: Path) -> str:
    from mesascope.records import checkpoint_files

    if any(map(checkpoint_files, (folder, *folder.glob("seed-*")))):
        return "checkpoints are kept, and the same command resumes"
    return "there is no checkpoint yet, and the same command starts again"


def _train(run: "TrainingRun | TrainingRuns", folder: Path) -> Any:
    """Train, with progress."""
    from mesascope.studies import TrainingRun

    with progress_bar(progress()) as show:
        if isinstance(run, TrainingRun):
            return run.train(folder, show)
        return run.train(folder, _summed(show, len(run.runs)))


def _summed(show: "Callable[[Progress], None]", runs: int) -> "Callable[[int, Progress], None]":
    """Show the sum of the steps of all runs, and the mean of their losses."""
    from mesascope.core import Progress

    latest: dict[int, Progress] = {}
    lock = Lock()  # every run reports from its own thread

    def report(seed: int, now: Progress) -> None:
        with lock:
            latest[seed] = now
            known = list(latest.values())
            steps = now.total or 0
            done = sum(one.done for one in known)
            rate = sum(one.rate for one in known if one.done < steps or done == runs * steps)
            loss = sum(one.values["loss"] for one in known) / len(known)
            show(Progress(done, runs * steps, rate=rate, values={"loss": loss}))

    return report


def _print(result: "TrainResult | TrainManyResult", task: "Task", folder: Path) -> None:
    from mesascope.studies import TrainManyResult

    console = results()
    style = "bold green" if result.succeeded else "bold red"
    print_headline(console, result.result, style, f": {result.message}")
    lines = (
        {"seeds": ", ".join(map(str, result.seeds))}
        if isinstance(result, TrainManyResult)
        else {"steps": str(result.steps)}
    )
    lines["loss"] = task.loss_text(_with_error(result.loss, result.loss_standard_error))
    if result.average_loss is not None:
        lines["average loss"] = _with_error(result.average_loss, result.average_loss_standard_error)
    for name, value in lines.items():
        console.print(f"{name:14}{value}", markup=False)
    # not through rich: a path must stay on one line
    if isinstance(result, TrainManyResult):
        print(f"{'checkpoints':14}{folder.absolute()}")
    else:
        print(f"{'checkpoint':14}{result.checkpoint}")


def _with_error(value: float, error: float | None) -> str:
    return f"{value:.6g}" if error is None else f"{value:.6g} ± {error:.2g}"


def _is_safetensors(first: bytes) -> bool:
    """Whether a file begins with the length of a header, at most 100 MB, and the header."""
    return first[8:9] == b"{" and int.from_bytes(first[:8], "little") < 10**8
