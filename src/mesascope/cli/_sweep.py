"""`mesascope sweep`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from time import monotonic, sleep
from typing import TYPE_CHECKING, Annotated, Any

from tyro.conf import FlagCreatePairsOff, Positional, arg

from ._interrupt import delayed_interrupts, stopped_by_interrupts
from ._output import (
    DONE,
    FAILED,
    InputError,
    in_file,
    print_headline,
    print_json,
    printable,
    prints_to_stderr,
    progress,
    progress_bar,
    results,
    say,
)
from ._plugin import PluginOption

if TYPE_CHECKING:
    from mesascope.core import Progress
    from mesascope.studies import Failure, StudySpec, StudyStatus, SweepResult

_WATCH_EVERY = 2.0  # seconds
_WATCH_SHARE = 5  # a look at a large study takes long: the next one waits so many times as long
_MAX_FAILURES = 10


@dataclass(frozen=True)
class Sweep(PluginOption):
    """Compute a study: one run, and the axes along which its fields change.

    Runs that are in the store are not computed again: the same command resumes.

    Exit status: 0 every run is done, 1 a run failed, 2 bad input, or no answer of
    the scheduler or database. With --status: 0 no run has failed so far, 1 one has,
    or has a record that cannot be read.
    """

    spec: Annotated[Positional[str], arg(metavar="SPEC")]
    """TOML or JSON file with name, kind, base, axes; - reads standard input."""
    store: Annotated[str, arg(metavar="DIR|URL")]
    """Folder of the store, created if needed; or the URL of its index."""
    index: Annotated[str | None, arg(metavar="URL", help_behavior_hint="")] = None
    """URL of the index, such as postgresql://USER@HOST/DATABASE, if not a file in DIR; give the password in
    PGPASSWORD or ~/.pgpass."""
    scheduler: Annotated[str, arg(metavar="WHERE")] = "in-process"
    """in-process, local (processes of this machine), tcp://HOST:PORT (of a Dask scheduler), slurm, pbs or lsf
    (jobs, as ~/.config/dask/jobqueue.yaml describes them)."""
    workers: Annotated[int | None, arg(metavar="N", help_behavior_hint="")] = None
    """Processes to start; for local by default one for each GPU, or else for each core."""
    retries: Annotated[int, arg(metavar="N")] = 2
    """How often to try a run again if its worker was lost, or a file could not be read or written."""
    time_limit: Annotated[float | None, arg(metavar="SECONDS", help_behavior_hint="")] = None
    """End a run that takes longer, and count it as failed; the same command computes it again. In-process, compiled
    code is waited for."""
    batch: Annotated[int, arg(metavar="N")] = 1
    """How many flows to given times, equal except for start, time and numbers of the law, to solve together in one
    compiled call; docs/studies.md says when this is faster."""
    status: FlagCreatePairsOff[bool] = False
    """Compute nothing; show the progress of the study in all processes."""
    watch: FlagCreatePairsOff[bool] = False
    """As --status, repeated until all runs have ended."""
    json: FlagCreatePairsOff[bool] = False
    """Print one JSON object: study, total, done, failed, reused, failures, unbatched (why runs of a batch were computed one
    by one), ids, not_indexed (why the index lacks runs until the next command, or null); with --status: study, total,
    planned, running, done, failed, unreadable, per_minute, seconds_left, failures, drivers."""

    def run(self) -> int:
        """Check the input, then sweep or show the status; return the exit status."""
        from mesascope.studies import StudySpec, read_spec

        if self.watch and self.json:
            raise InputError("--json prints once and --watch repeatedly; use --status --json")
        with in_file(self.spec):
            study = read_spec(self.spec, StudySpec)
        if self.watch:
            return self._watch(study)
        return self._status(study) if self.status else self._sweep(study)

    def _sweep(self, study: "StudySpec") -> int:
        from mesascope.studies import SchedulerError, SpecError, SweepError, compute_alone, sweep

        if self.scheduler == "in-process":
            with delayed_interrupts():
                compute_alone()
        try:
            with (
                stopped_by_interrupts(),
                prints_to_stderr(),
                _shown_progress() as show,
            ):
                result = sweep(
                    study,
                    self.store,
                    self.scheduler,
                    self.workers,
                    self.retries,
                    show,
                    index=self.index,
                    batch=self.batch,
                    time_limit=self.time_limit,
                )
        except SpecError as error:
            raise error.within(file=self._file) from error
        except SchedulerError as error:
            raise InputError(str(error)) from error
        except SweepError as error:
            say(f"mesascope sweep: {error}")
            return FAILED
        if result.not_indexed is not None:
            say(
                f"mesascope sweep: runs are missing in the index; the next command enters them: {result.not_indexed}"
            )
        if self.json:
            print_json(result.model_dump())
        else:
            _print(result)
        return DONE if result.succeeded else FAILED

    @property
    def _file(self) -> str:
        return "standard input" if self.spec == "-" else self.spec

    def _status(self, study: "StudySpec") -> int:
        from mesascope.records import open_store
        from mesascope.studies import study_status

        with open_store(self.store, self.index) as store:
            found = study_status(store, study.name)
        if self.json:
            print_json(found.model_dump())
        else:
            results().print(_table(found))
        return FAILED if found.failed or found.unreadable else DONE

    def _watch(self, study: "StudySpec") -> int:
        from rich.live import Live

        from mesascope.records import open_store
        from mesascope.studies import study_status

        with open_store(self.store, self.index) as store:
            found = study_status(store, study.name)
            took = 0.0
            with Live(_table(found), console=results(), refresh_per_second=4) as live:
                while found.planned or found.running:
                    sleep(max(_WATCH_EVERY, _WATCH_SHARE * took))
                    begun = monotonic()
                    found = study_status(store, study.name)
                    took = monotonic() - begun
                    live.update(_table(found))
        return FAILED if found.failed or found.unreadable else DONE


@contextmanager
def _shown_progress() -> "Iterator[Callable[[Progress], None]]":
    """A bar on terminals, with the address of the dashboard above it."""
    console, dashboards = progress(), set[str]()
    with progress_bar(console) as bar:

        def show(now: "Progress") -> None:
            dashboard = now.values.get("dashboard")
            if dashboard and dashboard not in dashboards:
                dashboards.add(dashboard)
                console.print(f"dashboard {dashboard}", markup=False, soft_wrap=True)
            bar(replace(now, values={name: value for name, value in now.values.items() if name == "failed"}))

        yield show


def _duration(seconds: float) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"


def _print(result: "SweepResult") -> None:
    console = results()
    style = "bold green" if result.succeeded else "bold red"
    counts = f"{result.done} done, {result.failed} failed, {result.reused} reused, of {result.total} runs"
    print_headline(console, result.study, style, f": {counts}")
    unbatched = [f"computed one by one: {line}" for line in _failure_lines(result.unbatched)]
    for line in [*_failure_lines(result.failures), *unbatched]:
        console.print(line, markup=False, soft_wrap=True)


def _failure_lines(failures: "tuple[Failure, ...]") -> list[str]:
    lines = [
        printable(f"{one.count} × {one.error}  (such as run {one.run})") for one in failures[:_MAX_FAILURES]
    ]
    more = len(failures) - _MAX_FAILURES
    return [*lines, f"and {more} other reasons"] if more > 0 else lines


def _table(found: "StudyStatus") -> Any:
    from rich.console import Group
    from rich.style import Style
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_row("study", found.study)
    for status in ("planned", "running", "done", "failed", *(["unreadable"] if found.unreadable else [])):
        table.add_row(status, f"{getattr(found, status)} of {found.total}")
    if found.drivers:
        table.add_row("rate", f"{found.per_minute:.0f} runs a minute")
    if found.seconds_left is not None:
        table.add_row("left", _duration(found.seconds_left))
    for one in found.drivers:
        table.add_row("driver", Text(printable(f"{one.host}, process {one.pid}, {one.scheduler}")))
        if one.dashboard:
            page = printable(one.dashboard)
            table.add_row("dashboard", Text(page, style=Style(link=page)))
    return Group(table, *map(Text, _failure_lines(found.failures)))
