"""Models that a training run has left behind."""

from os import PathLike
from pathlib import Path
from typing import Any

from mesascope.specs import SpecError

from ._read import read_spec
from ._train import TrainSpec
from ._training_run import SPEC_FILE


def load_trained(checkpoint: str | PathLike[str]) -> Any:
    """Return the model of a checkpoint, rebuilt from the specification beside it.

    Args:
        checkpoint: a checkpoint of `TrainSpec.run` or `mesascope train`, or the folder of a run: its last one.

    Raises:
        SpecError: there is no `spec.json` beside it, or it builds no model.
        CheckpointError: the checkpoint is absent, torn, or of another architecture (names the field).
        ValueError: weights in float64 without 64-bit mode.
    """
    from mesascope.dynamics import load_model

    path = _checkpoint(Path(checkpoint))
    return load_model(path, trained_spec(path).build_model())


def trained_spec(checkpoint: str | PathLike[str]) -> TrainSpec:
    """Return the specification that the run of a checkpoint left beside it.

    Args and errors are those of `load_trained`.
    """
    path = _checkpoint(Path(checkpoint)).parent / SPEC_FILE
    if not path.exists():
        raise SpecError(
            "no such file: no specification started this run; load its model in Python (load_model), and name it as "
            "package.module:model",
            file=str(path),
        )
    return read_spec(path, TrainSpec)


def _checkpoint(path: Path) -> Path:
    from mesascope.dynamics import CheckpointError

    found = max(path.glob("step-*.checkpoint"), default=None) if path.is_dir() else path
    if found is None:
        raise CheckpointError(
            f"{path}: this folder holds no checkpoint; give that of a run, or of one of its seeds"
        )
    if found.suffix != ".checkpoint":
        raise CheckpointError(f"{path}: is no checkpoint; give a step-….checkpoint of a run, or its folder")
    return found
