"""Training a model on freshly drawn sequences or prompts."""

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from mesascope.core import Progress
from mesascope.dynamics import Optimizer, OptimizerField, TrainingSettings
from mesascope.models import ModelKind
from mesascope.specs import (
    Seed,
    SpecError,
    as_tables,
    error_path,
    one_of,
)

from ._data import DataSpec
from ._problem import require_moments
from ._read import read_recorded
from ._train_result import TrainResult
from ._training_run import SPEC_FILE, TrainingRun, TrainingRuns


def _seed_unless_seeds(given: dict[str, Any]) -> int | None:
    return 0 if given.get("seeds") is None else None


class TrainSpec(TrainingSettings, DataSpec):
    """A training run: data and task as for `DataSpec`, the model, and the settings of training.

    Attributes:
        model: the model, and its initial weights.
        optimizer: its name, or a table with method, learning_rate, schedule, warmup, clip and weight_decay.
        seed: seed of the samples, and of the initial weights unless the model has its own; 0 when left out.
        seeds: instead of seed: one run for each.
    """

    model: Annotated[ModelKind, *one_of("model")]
    optimizer: OptimizerField = Optimizer()
    seeds: Annotated[tuple[Seed, ...] | None, Field(min_length=1)] = None
    seed: Seed | None = Field(default_factory=_seed_unless_seeds)

    @model_validator(mode="after")
    def _one_seed_or_several(self) -> Self:
        if self.seeds is None and self.seed is None:
            raise SpecError("missing; give one seed, or leave it out for 0", "seed")
        if self.seeds is not None and self.seed is not None:
            raise SpecError("cannot be given together with seed; leave out one of the two", "seeds")
        if self.seeds is not None and len(set(self.seeds)) < len(self.seeds):
            raise SpecError(f"must be distinct, got {list(self.seeds)}", "seeds")
        return self

    @model_validator(mode="after")
    def _model_reads_the_data(self) -> Self:
        self.check_model(self.model)
        return self

    def build(self) -> TrainingRun:
        """Return the run of one seed, ready to start.

        Raises:
            SpecError: the library refuses a field, or there are several seeds.
            ValueError: precision "float64" without 64-bit mode.
        """
        from mesascope.core import require_x64
        from mesascope.dynamics import refuse_large_samples
        from mesascope.models import LinearAttentionModel
        from mesascope.processes import DiagonalUnitary

        if self.seeds is not None:
            raise SpecError("lists several runs; build them by build_many", "seeds")
        if self.precision == "float64":
            require_x64("precision 'float64'")
        self._refuse_numbers()
        process, task = self.build_data()
        with error_path("batch"):
            refuse_large_samples(process, task, self.batch, self.precision)
        with error_path("optimizer"):
            self.optimizer.build(self.steps)  # refuses a warm-up longer than the run
        self._refuse_size()
        model = self.build_model()
        if isinstance(model, LinearAttentionModel) and isinstance(process, DiagonalUnitary):
            with error_path("law"):  # the loss is of degree 6 in the initial token
                require_moments(process.law, process.dim)
        return TrainingRun(self, model, process, task, self.settings, self.seed or 0)

    def build_many(self) -> TrainingRuns:
        """Return the runs of all seeds, ready to start.

        Raises:
            SpecError: as for `build`; no seeds.
            ValueError: precision "float64" without 64-bit mode.
        """
        if self.seeds is None:
            raise SpecError("missing; give a list of seeds, or build the run of one seed by build", "seeds")
        specs = {seed: self.model_copy(update={"seed": seed, "seeds": None}) for seed in self.seeds}
        return TrainingRuns({seed: spec.build() for seed, spec in specs.items()})

    def run(
        self,
        folder: str | PathLike[str] | None = None,
        progress: "Callable[[Progress], None] | None" = None,
    ) -> TrainResult:
        """Train and return the result as plain numbers; `build().train(…)` returns the model too.

        Raises:
            ValueError: as for `build` and `TrainingRun.train`.
        """
        run = self.build()
        return run.result(run.train(folder, progress))

    @property
    def settings(self) -> dict[str, Any]:
        """The fields of `TrainingSettings`, arguments of `train`."""
        return {name: getattr(self, name) for name in TrainingSettings.model_fields}

    def build_model(self) -> Any:
        """Return the model with its initial weights, which are the same with and without 64-bit mode.

        Raises:
            SpecError: numbers do not fit, such as a width that is not a multiple of heads.
        """
        import jax

        with jax.enable_x64(self.precision == "float64"), error_path("model"):
            return self.model.build(self.shape, self.seed or 0)

    def _refuse_numbers(self) -> None:
        """Refuse numbers that the precision cannot represent: they would become infinite or 0."""
        from mesascope.dynamics import number_out_of_range

        found = number_out_of_range(as_tables(self), self.precision)
        if found:
            raise SpecError(found.what, *found.path)

    def _refuse_size(self) -> None:
        """Refuse a model that is too large to be trained, before its weights are drawn."""
        import equinox as eqx

        from mesascope.dynamics import refuse_large_networks

        shapes = eqx.filter_eval_shape(self.build_model)
        with error_path("model"):
            refuse_large_networks(shapes, self)


def load_trained(checkpoint: str | PathLike[str]) -> Any:
    """Return the model of a checkpoint, built from the specification in its folder.

    Args:
        checkpoint: a checkpoint of `TrainSpec.run` or `mesascope train`, or the folder of a run, for its last one.

    Raises:
        SpecError: there is no `spec.json` in its folder, or it builds no model.
        CheckpointError: the checkpoint is missing, damaged, or of another architecture or other data (names the field).
        ValueError: weights in float64 without 64-bit mode.
    """
    from mesascope.dynamics import load_model, require_data_of_run

    path = _checkpoint(Path(checkpoint))
    spec = trained_spec(path)
    require_data_of_run(path, *spec.build_data())
    return load_model(path, spec.build_model())


def trained_spec(checkpoint: str | PathLike[str]) -> TrainSpec:
    """Return the specification of the run of a checkpoint.

    Args and errors are those of `load_trained`.
    """
    path = _checkpoint(Path(checkpoint)).parent / SPEC_FILE
    if not path.exists():
        raise SpecError(
            "no such file: it was not copied with the checkpoints, or this run was not started from a specification; copy it, "
            "or load the model in Python (load_model), and name it as package.module:model",
            file=str(path),
        )
    return read_recorded(path, TrainSpec)


def _checkpoint(path: Path) -> Path:
    from mesascope.records import CheckpointError, checkpoint_files

    if not path.exists():
        raise CheckpointError(
            f"{path}: no such file or folder; give a step-….checkpoint of a run, or its folder"
        )
    found = next(reversed(checkpoint_files(path).values()), None) if path.is_dir() else path
    if found is None:
        inside = (one for one in sorted(path.iterdir()) if one.is_dir() and checkpoint_files(one))
        which = f"such as {first}" if (first := next(inside, None)) else "or of one of its seeds"
        raise CheckpointError(f"{path}: this folder holds no checkpoint; give the folder of a run, {which}")
    if found.suffix != ".checkpoint":
        raise CheckpointError(
            f"{path}: is not a checkpoint; give a step-….checkpoint of a run, or its folder"
        )
    return found
