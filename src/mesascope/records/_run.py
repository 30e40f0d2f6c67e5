"""The run directory: claims, data and figures of a run.

    claims/<paper>/<claim>.json     one sealed ClaimRecord each
    data/<name>.nc                  trajectories and samples
    figures/<name>.json             figures as traces; a renderer puts <name>.pdf and <name>.png beside it

Every file is whole or absent. There is no index.
"""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ._claim import NAME, ClaimRecord
from ._dataset import Variables, is_as_written, read_dataset, write_dataset
from ._figure import Figure
from ._files import RecordError, prepare_output, remove_leftovers
from ._sealed import read_sealed, refuse_newer, write_sealed

if TYPE_CHECKING:
    import xarray

CLAIM_FORMAT = "mesascope.claim/2"
"""The format that the file of a claim's record names."""
_Found = TypeVar("_Found")
FIGURE = "mesascope.figure/1"
_SUFFIX = {"claims": ".json", "data": ".nc", "figures": ".json"}


class RunDirectory:
    """A folder of records.

    Names are lower-case parts of letters, digits, `.`, `_` and `-`, joined by `/`, such as
    `zheng2024/figure-1a`. Several processes may write to one run directory: the last one that
    writes a file wins, and no reader ever sees a part of one.

    Attributes:
        path: the folder.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    @classmethod
    def create(cls, path: str | os.PathLike[str]) -> "RunDirectory":
        """Make the folder, or open an existing one, and check that it can be written to.

        What a killed run left half-written is removed; its finished records stay.

        Raises:
            RecordError: the folder cannot be made or written to.
        """
        run = cls(prepare_output(path))
        for section in _SUFFIX:
            remove_leftovers(run.path / section)
        return run

    def __repr__(self) -> str:
        return f"RunDirectory({str(self.path)!r})"

    # Paths

    def _file(self, section: str, name: str) -> Path:
        if not re.fullmatch(NAME, name):
            raise ValueError(
                f"record name {name!r}: use lower-case letters, digits, '.', '_', '-' and '/' between parts"
            )
        return self.path / section / f"{name}{_SUFFIX[section]}"

    def _names(self, section: str) -> list[str]:
        root, suffix = self.path / section, _SUFFIX[section]
        files = (path.relative_to(root).as_posix() for path in root.rglob(f"*{suffix}") if path.is_file())
        return sorted(name for file in files if re.fullmatch(NAME, name := file.removesuffix(suffix)))

    def _relative(self, path: Path) -> str:
        return path.relative_to(self.path).as_posix()

    # Claims

    def write_claim(self, record: ClaimRecord) -> str:
        """Store a claim's record; return its path relative to the run directory."""
        path = self._file("claims", record.id)
        write_sealed(path, CLAIM_FORMAT, record)
        return self._relative(path)

    def read_claim(self, claim: str) -> ClaimRecord:
        """Read the record of `claim`, an id such as `zheng2024/theorem-4.1`.

        Raises:
            RecordError: it is absent, torn, foreign or changed.
        """
        record = read_sealed(self._file("claims", claim), CLAIM_FORMAT, ClaimRecord)
        if record.id != claim:
            raise RecordError(
                f"{self._file('claims', claim)} holds claim {record.id!r}; remove it and run again"
            )
        return record

    def reusable_claim(self, claim: str, fingerprint: str) -> ClaimRecord | None:
        """Return the stored record of `claim` if checking it again would give the same, else None.

        That is so when the record is readable, was made under the same `fingerprint`, and every file it names
        can be read. Otherwise the claim is checked again.
        """
        record = _or_none(self.read_claim, claim)
        if record is None or record.fingerprint != fingerprint or not all(map(self._reads, record.files)):
            return None
        return record

    def refuse_newer(self, claim: str) -> None:
        """Refuse to check a claim whose record a newer version of mesascope wrote: its record would be replaced.

        Raises:
            UnreadableError: it is such a record, or may not be read.
        """
        refuse_newer(self._file("claims", claim), CLAIM_FORMAT)

    def _reads(self, file: str) -> bool:
        """Whether a figure or data file of this run can be read."""
        section, _, name = file.partition("/")
        if section == "data":
            return is_as_written(self.path / file)
        if section == "figures":
            return _or_none(self.read_figure, name.removesuffix(_SUFFIX[section])) is not None
        return (self.path / file).is_file()

    def holds_claims(self) -> bool:
        """Whether there is the file of a claim, readable or not.

        A folder named `claims` is not enough: `results` has one, too, where several papers were checked.

        Raises:
            OSError: the folder may not be read.
        """
        section = self.path / "claims"
        papers = section.iterdir() if section.is_dir() else ()  # glob leaves out what may not be read
        return any(
            file.suffix == ".json" and not file.name.startswith(".")
            for paper in papers
            if paper.is_dir() and not paper.name.startswith(".")
            for file in paper.iterdir()
        )

    def claims(self) -> list[ClaimRecord]:
        """Every readable claim record, sorted by id; `problems` lists the others."""
        return [record for name in self._names("claims") if (record := _or_none(self.read_claim, name))]

    # Figures

    def write_figure(self, name: str, figure: Figure) -> str:
        """Store a figure's traces under `name`; return their path relative to the run directory."""
        path = self._file("figures", name)
        write_sealed(path, FIGURE, figure)
        return self._relative(path)

    def read_figure(self, name: str) -> Figure:
        """Read the figure stored under `name`.

        Raises:
            RecordError: it is absent, torn, foreign or changed.
        """
        return read_sealed(self._file("figures", name), FIGURE, Figure)

    def figures(self) -> list[str]:
        """Names of the stored figures, sorted."""
        return self._names("figures")

    def figure_stem(self, name: str) -> Path:
        """Path without extension at which a renderer puts the drawn figure."""
        path = self._file("figures", name)
        return path.with_name(path.name.removesuffix(".json"))

    # Data

    def write_data(
        self, name: str, data: "xarray.Dataset | Variables", attrs: Mapping[str, Any] | None = None
    ) -> str:
        """Store labelled arrays under `name` as NetCDF; return their path relative to the run directory.

        Args:
            name: name of the data set.
            data: an `xarray.Dataset`, or a mapping name → (dimensions, values), real or complex; a variable
                named like its only dimension becomes the coordinate of that dimension.
            attrs: attributes of the whole: numbers and strings.

        Raises:
            RecordError: it cannot be written, or NetCDF has no form for something in it.
            ValueError: variables disagree about the length of a dimension.
        """
        path = self._file("data", name)
        write_dataset(path, data, attrs)
        return self._relative(path)

    def read_data(self, name: str) -> "xarray.Dataset":
        """Read the data set stored under `name`, wholly into memory.

        Raises:
            RecordError: it is absent, torn, damaged or foreign.
        """
        return read_dataset(self._file("data", name))

    def data(self) -> list[str]:
        """Names of the stored data sets, sorted."""
        return self._names("data")

    # Health

    def problems(self) -> list[str]:
        """One line for every file that should be a record of this run and cannot be read as one."""
        readers: dict[str, Callable[[str], object]] = {
            "claims": self.read_claim,
            "data": self.read_data,
            "figures": self.read_figure,
        }
        found = []
        for section, read in readers.items():
            for name in self._names(section):
                try:
                    read(name)
                except RecordError as error:
                    found.append(str(error))
        return found


def _or_none(read: Callable[[str], _Found], name: str) -> _Found | None:
    """A record, None where it cannot be read."""
    try:
        return read(name)
    except RecordError:
        return None
