"""Runs as event files of TensorBoard, a folder each."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ._scalars import computation, curves, metrics, parameters

_ENDED = "mesascope.txt"
"""What tells the computation of a run that was exported from another one."""

if TYPE_CHECKING:
    from mesascope.records.store._folders import RunFolders
    from mesascope.records.store._rows import RunRow


def write_tensorboard(rows: Sequence[RunRow], folders: RunFolders, target: str) -> None:
    """Write one folder for every run that has none yet, or was computed again since. TensorFlow is not needed."""
    from tensorboard.compat.proto.event_pb2 import Event  # type: ignore[import-untyped]
    from tensorboard.compat.proto.summary_pb2 import Summary  # type: ignore[import-untyped]
    from tensorboard.summary.writer.event_file_writer import EventFileWriter  # type: ignore[import-untyped]

    for row in rows:
        folder, unfinished = Path(target) / row.id, Path(target) / f".{row.id}.unfinished"
        ended = computation(row)
        if folder.exists() and _read(folder / _ENDED) in ("", ended):  # not ours, or there already
            continue
        shutil.rmtree(unfinished, ignore_errors=True)  # of an export that was killed
        writer = EventFileWriter(str(unfinished))
        try:
            for name, place, value in [*((n, 0, v) for n, v in metrics(row).items()), *curves(row, folders)]:
                summary = Summary(value=[Summary.Value(tag=name, simple_value=value)])
                writer.add_event(Event(step=place, summary=summary))
            writer.add_event(Event(summary=_settings(row)))
        finally:
            writer.close()
        (unfinished / _ENDED).write_text(ended, encoding="utf-8")
        shutil.rmtree(folder, ignore_errors=True)  # it failed then, and has been computed again
        os.rename(unfinished, folder)


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8") if file.is_file() else ""


def _settings(row: RunRow) -> object:
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.plugins.text.metadata import create_summary_metadata  # type: ignore[import-untyped]
    from tensorboard.util.tensor_util import make_tensor_proto  # type: ignore[import-untyped]

    lines = [f"| {name} | {text} |" for name, text in parameters(row).items()]
    table = "\n".join(["| setting | value |", "|---|---|", *lines])
    tensor = make_tensor_proto([table.encode()])
    metadata = create_summary_metadata("settings", "")
    return Summary(value=[Summary.Value(tag="settings", tensor=tensor, metadata=metadata)])
