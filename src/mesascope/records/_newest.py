"""Records of claims from many run directories: the newest check of every claim."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ._claim import ClaimRecord
from ._figure import Figure
from ._files import RecordError
from ._run import RunDirectory

SHIPPED = Path(__file__).parent / "shipped"
"""The last check of every claim, in the package: a run directory for each preset, `small` and `full`."""
_FAILED = "failed"  # folder of the last checks that raised errors


class Checked(NamedTuple):
    """The record of a check, and the run directory that holds it with its figures."""

    record: ClaimRecord
    run: RunDirectory

    def figures(self) -> tuple[tuple[tuple[str, Figure], ...], tuple[str, ...]]:
        """Names and traces of its figures; and one line for each that cannot be read."""
        found, problems = [], []
        for file in self.record.files:
            section, _, name = file.partition("/")
            if section == "figures":
                try:
                    name = name.removesuffix(".json")
                    found.append((name, self.run.read_figure(name)))
                except ValueError as error:  # no record, or no name of one
                    problems.append(str(error))
        return tuple(found), tuple(problems)


class NewestClaims:
    """Records of checks: the newest for each claim and preset.

    Attributes:
        problems: one line for every record that cannot be read.
    """

    def __init__(self) -> None:
        self._done: dict[tuple[str, str | None], Checked] = {}
        self._failed: dict[tuple[str, str | None], Checked] = {}
        self.problems: list[str] = []

    def take(self, run: RunDirectory, record: ClaimRecord) -> None:
        """Add a record, unless there is a newer one."""
        key, among = (record.id, record.preset), self._failed if record.failed else self._done
        there = among.get(key)
        if there is None or there.record.provenance.created < record.provenance.created:
            among[key] = Checked(record, run)

    def take_all(self, run: RunDirectory, what: str | None = None) -> bool:
        """Add the claims of a run directory: all, or those of a paper, or one. Returns whether there were any.

        Raises:
            OSError: the folder may not be read.
        """
        seen = run.path.name != _FAILED and self.take_all(RunDirectory(run.path / _FAILED), what)
        root = run.path / "claims"
        for file in sorted(root.glob("*/*.json")):
            name = file.relative_to(root).as_posix().removesuffix(".json")
            if what is None or what in (name, name.partition("/")[0]):
                seen = True
                try:
                    self.take(run, run.read_claim(name))
                except ValueError as error:  # no record, or no name of one
                    self.problems.append(str(error))
        return seen

    def all(self) -> tuple[Checked, ...]:
        """One for each claim and preset; a check that raised an error only where there is no other."""
        return tuple({**self._failed, **self._done}.values())


def run_directories(folder: Path, deep: int = 2) -> Iterator[RunDirectory]:
    """The folder if `reproduce` wrote it, otherwise the folders below it that `reproduce` wrote, sorted.

    `results` has them at depth 2.

    Raises:
        OSError: a folder may not be read.
    """
    run = RunDirectory(folder)
    if run.holds_claims() or RunDirectory(folder / _FAILED).holds_claims():
        yield run
    elif deep and folder.is_dir():
        for below in sorted(folder.iterdir()):
            yield from run_directories(below, deep - 1)


def shipped_pictures(claim: str) -> tuple[Path, ...]:
    """Small pictures of the figures of a claim, PNG files in the package; none where none is kept.

    The text `Description` in each of them says what it shows.

    Args:
        claim: an id such as `zheng2024/figure-1a`.
    """
    for preset in ("full", "small"):
        run = RunDirectory(SHIPPED / preset)
        with suppress(RecordError):
            if files := run.read_claim(claim).files:
                return tuple(run.path / file for file in files)
    return ()
