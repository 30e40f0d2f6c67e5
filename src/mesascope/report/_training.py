"""The folder of a training run: the header of its last checkpoint, and its curve of losses."""

from pathlib import Path
from typing import Any

from mesascope.records import (
    Provenance,
    RecordError,
    checkpoint_files,
    parse_json,
    read_checkpoint,
    read_json_text,
    training_figure,
)

from ._material import Gathering


def add_training(found: Gathering, folder: Path) -> None:
    """Add the last checkpoint of a training run, and its specification.

    Raises:
        CheckpointError: the checkpoint is damaged.
        RecordError: the specification is.
    """
    *_, last = checkpoint_files(folder).values()
    header, _ = read_checkpoint(last)
    header = {name: value for name, value in header.items() if value is not None}
    log, origin = header.get("log", {}), header.get("provenance")
    batches = log.get("steps", []), log.get("losses", [])
    held_out = log.get("evaluated", []), log.get("values", []), log.get("errors", [])
    try:
        figure = training_figure("Training", batches, held_out)
    except ValueError:  # of pydantic, in many lines
        figure = None
        found.problems.append(f"{last}: its losses cannot be drawn, they are not all finite numbers")
    found.add(
        "training",
        folder.name,
        header,
        () if figure is None else (("loss", figure),),
        spec=_spec(folder / "spec.json"),
        provenance=Provenance.model_validate(origin) if origin else None,
    )


def _spec(path: Path) -> dict[str, Any] | None:
    if not path.exists():
        return None
    try:
        return dict(parse_json(read_json_text(path)))
    except (OSError, ValueError, TypeError) as error:
        raise RecordError(f"{path} cannot be read ({error}); restore it, or leave the run out") from error
