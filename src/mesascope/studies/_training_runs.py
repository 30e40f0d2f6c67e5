"""Training runs that differ in their seed only."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mesascope.core import Progress

from ._train_result import TrainManyResult
from ._training_run import TrainingRun, kept_spec

if TYPE_CHECKING:
    from mesascope.dynamics import Training


@dataclass(frozen=True)
class TrainingRuns:
    """What a specification of several seeds builds.

    Attributes:
        runs: the run of every seed, the same as the run of a specification with that seed alone.
    """

    runs: Mapping[int, TrainingRun]

    def train(
        self,
        folder: str | PathLike[str] | None = None,
        progress: "Callable[[int, Progress], None] | None" = None,
    ) -> "list[Training[Any]]":
        """Train all of them, in the order of the seeds; see `mesascope.dynamics.train_many`.

        Args:
            folder: gets one subfolder `seed-…` per run, as `TrainingRun.train` makes it.
            progress: called with (seed, `Progress`) at every record, from the thread of the run.

        Raises:
            CheckpointError: a subfolder holds another run (names the field), or a torn checkpoint.
            InUseError: another run writes to a subfolder now.
            RecordError: a subfolder cannot be written to.
        """
        from mesascope.core import named_key
        from mesascope.dynamics import train_many

        one = next(iter(self.runs.values()))
        # train_many names the run by its key; its weights are those that the specification draws for the seed.
        starts = {_bits(named_key(seed, "model")): run.model for seed, run in self.runs.items()}
        with ExitStack() as specs:
            if folder is not None:
                for seed, run in self.runs.items():
                    specs.enter_context(kept_spec(Path(folder) / f"seed-{seed}", run.spec))
            return train_many(
                lambda key: starts[_bits(key)],
                one.process,
                one.task,
                list(self.runs),
                checkpoint=None if folder is None else Path(folder),
                progress=progress,
                **{name: value for name, value in one.settings.items() if name != "seed"},
            )

    def result(self, trainings: "Sequence[Training[Any]]") -> TrainManyResult:
        """What came out of `train` as plain numbers."""
        pairs = zip(self.runs.items(), trainings, strict=True)
        return TrainManyResult.of({seed: run.result(training) for (seed, run), training in pairs})


def _bits(key: Any) -> bytes:
    import jax
    import numpy as np

    return np.asarray(jax.random.key_data(key)).tobytes()
