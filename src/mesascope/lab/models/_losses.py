"""The figure of a training: its losses, while they come and at the end."""

from collections.abc import Sequence

from mesascope.processes import Task
from mesascope.records import Figure, Line, Panel

TITLE = "Loss along training"
CAPTION = "The mean loss of the batches of freshly drawn samples since the point before."


def losses_figure(task: Task, steps: Sequence[float], losses: Sequence[float]) -> Figure:
    """The mean loss of the batches since the record before, along training; the axis says what the loss of a task is."""
    positive = min(losses) > 0
    line = Line(x=tuple(steps), y=tuple(losses), label="loss of the batches", style="solid", series=0)
    panel = Panel(
        title=TITLE,
        xlabel="steps",
        ylabel=task.loss_text("loss"),
        yscale="log" if positive and max(losses) > 10 * min(losses) else "linear",
        traces=(line,),
    )
    return Figure(
        title=TITLE,
        panels=(panel,),
        caption=CAPTION,
    )
