"""A benchmark in a folder: its models, and the answers of a method."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from mesascope.core import Clock, Progress, forget_programs, require_x64
from mesascope.probes import Predictor
from mesascope.records import folder_lock, provenance, remove_leftovers_of
from mesascope.specs import error_path, show

from ._cases import predictor
from ._data import USUAL, Setting
from ._files import (
    KEY,
    MANIFEST,
    Answer,
    Answers,
    Key,
    Manifest,
    digest,
    inside,
    read_arrays,
    read_json,
    require_finished,
    write_json,
)

Method = Callable[[Predictor, Setting], Answer]
"""What identifies a model: it may call the model on any contexts, and draw some from the process."""


class Benchmark:
    """Models with known algorithms, in a folder that `write_benchmark` has written.

    Args:
        folder: the folder.

    Attributes:
        folder: the folder.
        manifest: what it holds.
        key: the right answers.
        id: digest of the manifest without its provenance, which answers name: that of the seed and of what was written.

    Raises:
        ValueError: a file is absent or cannot be read, or the key is not that of the manifest.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        require_finished(self.folder)
        self.manifest = read_json(self.folder / MANIFEST, Manifest)
        self.id = self.manifest.digest()
        self.key = read_json(self.folder / KEY, Key)
        if (
            digest(self.folder / KEY) != self.manifest.key
            or self.key.models.keys() != self.manifest.models.keys()
        ):
            raise ValueError(f"{self.folder / KEY} is not the key of this benchmark; get the benchmark again")

    @property
    def names(self) -> tuple[str, ...]:
        """The numbers of the models."""
        return tuple(self.manifest.models)

    def setting(self, name: str, setting: str = USUAL) -> Setting:
        """Return the process and the task on which a model is identified, or those of another setting."""
        return self.manifest.data[self.manifest.models[name].data].settings[setting]

    def model(self, name: str) -> Predictor:
        """Return a model as a function of contexts.

        Raises:
            ValueError: its file was changed or is none of weights, or the key describes no model of its data.
        """
        entry = self.key.models[name]
        weights = {} if entry.model.kind != "network" else self._weights(name)
        with error_path("models", name, file=str(self.folder / KEY)):
            return predictor(entry.model, self.setting(name), entry.noise, weights)

    def _weights(self, name: str) -> dict[str, np.ndarray]:
        one = self.manifest.models[name]
        arrays = read_arrays(inside(self.folder, one.file), one.sha256)
        return {name: array for name, array in arrays.items() if "/" not in name}

    def answer(
        self,
        method: Method,
        called: str,
        out: str | Path,
        progress: Callable[[Progress], None] | None = None,
    ) -> Answers:
        """Return the answers of a method to all models, written to a file after each; those in the file are kept.

        Args:
            method: what identifies a model.
            called: its name.
            out: the file of the answers.
            progress: called before each model.

        Raises:
            ValueError: the file holds answers of another method or benchmark, or another process writes to it; JAX in 32-bit
                mode.
            RecordError: it cannot be written.
        """
        require_x64("answer")
        out = Path(out)
        # a part of the name: with all of a long one there would be no room for the rest
        with folder_lock(out.parent, out.name[:50]):
            remove_leftovers_of(out)
            return self._answer(method, called, out, progress)

    def _answer(
        self, method: Method, called: str, out: Path, progress: Callable[[Progress], None] | None
    ) -> Answers:
        clock, found = Clock(), self._answered(out, called)
        done = Answers(method=called, benchmark=self.id, answers=found, provenance=provenance())
        if len(found) < len(self.names):
            write_json(out, done)  # before the first model: what cannot be written is told at once
        for name in self.names:
            if name in found:
                continue
            if progress is not None:
                progress(clock.read(len(found), len(self.names), unit="models"))
            forget_programs()
            answer = method(self.model(name), self.setting(name))
            if not isinstance(answer, Answer):
                raise TypeError(f"model {name}: the method must return an Answer, got {show(answer)}")
            found[name] = answer
            done = done.model_copy(update={"answers": found})
            write_json(out, done)
        return done

    def _answered(self, out: Path, called: str) -> dict[str, Answer]:
        """Return the answers that an earlier call has left in a file."""
        if not out.exists():
            return {}
        before = read_json(out, Answers, "name a new file for the answers")
        if (before.method, before.benchmark) != (called, self.id):
            raise ValueError(
                f"{out} holds answers of {before.method!r} to benchmark {before.benchmark[:8]}, not of {called!r} to "
                f"{self.id[:8]}; name another file"
            )
        return dict(before.answers)
