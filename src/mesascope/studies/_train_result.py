"""The results of training runs, as plain numbers."""

from collections.abc import Mapping
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any, Self

from pydantic import BaseModel, ConfigDict

if TYPE_CHECKING:
    from mesascope.core import Estimate
    from mesascope.dynamics import Training


_VANISHED = (
    "; a loss of exactly 0 means that its terms vanish in this precision, or that nothing is left to learn: "
    "take larger tokens (the scale of the law, the noise), or precision = 'float64'"
)


class LossRecord(BaseModel):
    """The mean loss of the batches between two records.

    Attributes:
        steps: number of steps taken at the later one.
        loss: the mean.
    """

    model_config = ConfigDict(frozen=True)

    steps: int
    loss: float


class EvaluationRecord(LossRecord):
    """A loss on held-out samples.

    Attributes:
        steps: number of steps taken before.
        loss, standard_error: mean and standard error.
    """

    standard_error: float


class TrainResult(BaseModel):
    """The result of `TrainSpec.run`.

    Attributes:
        loss: of the model at the end, on held-out samples.
        loss_standard_error: of that loss.
        average_loss: of the moving average of the weights, on the same samples; None without an average.
        average_loss_standard_error: of that loss.
        steps: steps taken at the last record.
        checkpoint: the last checkpoint; None without a folder.
        result: "finished", "diverged", "not finite" (the loss, at the start) or "interrupted".
        message: the meaning of the result, and the remedy if it failed.
        losses: mean loss of the batches at every record.
        evaluations: losses on held-out samples while training.
    """

    model_config = ConfigDict(frozen=True)

    loss: float
    loss_standard_error: float
    average_loss: float | None
    average_loss_standard_error: float | None
    steps: int
    checkpoint: str | None
    result: str
    message: str
    losses: list[LossRecord]
    evaluations: list[EvaluationRecord]

    @classmethod
    def of(cls, training: "Training[Any]", average: "Estimate | None") -> Self:
        """The numbers of a run that has ended, and of the moving average of its weights."""
        steps, evaluated = training.steps.tolist(), training.evaluated.tolist()
        evaluations = training.evaluations
        values = zip(evaluated, evaluations.value.tolist(), evaluations.standard_error.tolist(), strict=True)
        return cls(
            loss=float(training.loss.value),
            loss_standard_error=float(training.loss.standard_error),
            average_loss=None if average is None else float(average.value),
            average_loss_standard_error=None if average is None else float(average.standard_error),
            steps=steps[-1] if steps else 0,
            checkpoint=None if training.checkpoint is None else str(training.checkpoint.absolute()),
            result=training.result.value,
            message=training.result.message + (_VANISHED if training.loss.value == 0 else ""),
            losses=[
                LossRecord(steps=step, loss=loss)
                for step, loss in zip(steps, training.losses.tolist(), strict=True)
            ],
            evaluations=[
                EvaluationRecord(steps=step, loss=loss, standard_error=error) for step, loss, error in values
            ],
        )

    @property
    def succeeded(self) -> bool:
        """Whether all steps were taken."""
        return self.result == "finished"


class TrainManyResult(BaseModel):
    """The result of runs of several seeds.

    Attributes:
        seeds: one for every run.
        loss: mean over the runs.
        loss_standard_error: standard error of that mean over seeds; None for a single one.
        average_loss: as loss, of the moving averages; None without averages.
        average_loss_standard_error: of that mean.
        result: "finished" if all runs are, else that of the first other run.
        message: the meaning of the result, and the remedy if it failed.
        runs: the results of all runs, in the order of the seeds.
    """

    model_config = ConfigDict(frozen=True)

    seeds: list[int]
    loss: float
    loss_standard_error: float | None
    average_loss: float | None
    average_loss_standard_error: float | None
    result: str
    message: str
    runs: list[TrainResult]

    @classmethod
    def of(cls, results: Mapping[int, TrainResult]) -> Self:
        """The numbers of all runs together."""
        runs = list(results.values())
        loss, error = _over_seeds([run.loss for run in runs])
        averages = [run.average_loss for run in runs if run.average_loss is not None]
        average, average_error = _over_seeds(averages) if averages else (None, None)
        telling = next((run for run in runs if not run.succeeded), runs[0])
        return cls(
            seeds=list(results),
            loss=loss,
            loss_standard_error=error,
            average_loss=average,
            average_loss_standard_error=average_error,
            result=telling.result,
            message=telling.message,
            runs=runs,
        )

    @property
    def succeeded(self) -> bool:
        """Whether all runs took all steps."""
        return all(run.succeeded for run in self.runs)


def _over_seeds(values: list[float]) -> tuple[float, float | None]:
    """Mean and its standard error."""
    return fmean(values), stdev(values) / len(values) ** 0.5 if len(values) > 1 else None
