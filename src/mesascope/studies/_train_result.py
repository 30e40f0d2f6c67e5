"""What a training run gives, as plain numbers."""

from typing import TYPE_CHECKING, Any, Self

from pydantic import BaseModel, ConfigDict

if TYPE_CHECKING:
    from mesascope.dynamics import Training


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
    """What `TrainSpec.run` gives.

    Attributes:
        loss: of the model at the end, on held-out samples.
        loss_standard_error: of that loss.
        steps: steps taken at the last record.
        checkpoint: the last checkpoint; None where no folder was given.
        result: "finished", "diverged" or "interrupted".
        message: what that means, and the remedy where one is needed.
        losses: mean loss of the batches at every record.
        evaluations: losses on held-out samples while training.
    """

    model_config = ConfigDict(frozen=True)

    loss: float
    loss_standard_error: float
    steps: int
    checkpoint: str | None
    result: str
    message: str
    losses: list[LossRecord]
    evaluations: list[EvaluationRecord]

    @classmethod
    def of(cls, training: "Training[Any]") -> Self:
        """The numbers of a finished run."""
        steps, evaluated = training.steps.tolist(), training.evaluated.tolist()
        evaluations = training.evaluations
        values = zip(evaluated, evaluations.value.tolist(), evaluations.standard_error.tolist(), strict=True)
        return cls(
            loss=float(training.loss.value),
            loss_standard_error=float(training.loss.standard_error),
            steps=steps[-1] if steps else 0,
            checkpoint=None if training.checkpoint is None else str(training.checkpoint.absolute()),
            result=training.result.value,
            message=training.result.message,
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
