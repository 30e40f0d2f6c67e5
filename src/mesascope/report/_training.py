"""The folder of a training run: the header of its last checkpoint, and its curve of losses."""

import re
from pathlib import Path
from typing import Any

from mesascope.records import (
    Band,
    Figure,
    Line,
    Panel,
    Provenance,
    RecordError,
    Trace,
    parse_json,
    read_bytes,
    read_checkpoint,
)

from ._material import Gathering

_NAME = re.compile(r"step-([0-9]{9,18})\.checkpoint")
_TWO_SIDED_95 = 1.96  # standard errors


def add_training(found: Gathering, folder: Path) -> None:
    """Add the last checkpoint of a training run, and its specification.

    Raises:
        CheckpointError: the checkpoint is damaged.
        RecordError: the specification is.
    """
    last = max(
        folder.glob("step-*.checkpoint"), key=lambda path: int((_NAME.fullmatch(path.name) or [0, 0])[1])
    )
    header, _ = read_checkpoint(last)
    header = {name: value for name, value in header.items() if value is not None}
    log, origin = header.get("log", {}), header.get("provenance")
    batches = log.get("steps", []), log.get("losses", [])
    held_out = log.get("evaluated", []), log.get("values", []), log.get("errors", [])
    try:
        figure = loss_figure("Training", batches, held_out)
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
        return dict(parse_json(read_bytes(path)))
    except (OSError, ValueError, TypeError) as error:
        raise RecordError(f"{path} cannot be read ({error}); restore it, or leave the run out") from error


def loss_figure(
    title: str, batches: tuple[list[Any], list[Any]], held_out: tuple[list[Any], list[Any], list[Any]]
) -> Figure | None:
    """Losses over steps: those of the batches, and those on held-out samples with their intervals; None without any.

    Args:
        title: of the figure.
        batches: steps and losses.
        held_out: steps, losses and standard errors.
    """
    traces: list[Trace] = []
    if batches[0]:
        traces.append(
            Line(x=batches[0], y=batches[1], label="batches, mean since the point before", series=1)
        )
    if held_out[0]:
        steps, values, errors = held_out
        reach = [_TWO_SIDED_95 * error for error in errors]
        low = [value - more for value, more in zip(values, reach, strict=True)]
        high = [value + more for value, more in zip(values, reach, strict=True)]
        traces.append(Band(x=steps, low=low, high=high, label="held-out, 95 % interval", series=0))
        traces.append(Line(x=steps, y=values, label="held-out", series=0, style="solid"))
    if not traces:
        return None
    drawn = [y for trace in traces for y in (trace.low if isinstance(trace, Band) else trace.y)]  # type: ignore[union-attr]
    log = min(drawn) > 0 and max(drawn) > 10 * min(drawn)
    panel = Panel(
        title="Loss", xlabel="step", ylabel="loss", yscale="log" if log else "linear", traces=tuple(traces)
    )
    return Figure(title=title, panels=(panel,), caption="Losses of a training run over its steps.")
