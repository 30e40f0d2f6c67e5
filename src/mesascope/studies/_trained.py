"""Models that a training run has left behind."""

from os import PathLike
from pathlib import Path
from typing import Any

from ._read import read_spec
from ._train import TrainSpec
from ._training_run import SPEC_FILE


def load_trained(checkpoint: str | PathLike[str]) -> Any:
    """Return the model of a checkpoint, rebuilt from the specification beside it.

    Args:
        checkpoint: a checkpoint of `TrainSpec.run` or `mesascope train`.

    Raises:
        SpecError: there is no `spec.json` beside it, or it builds no model.
        CheckpointError: the checkpoint is absent, torn, or of another architecture (names the field).
        ValueError: weights in float64 without 64-bit mode.
    """
    from mesascope.dynamics import load_model

    path = Path(checkpoint)
    spec = read_spec(path.parent / SPEC_FILE, TrainSpec)
    return load_model(path, spec.build_model())
