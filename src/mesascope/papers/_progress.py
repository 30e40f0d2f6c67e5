"""Trainings inside a claim: where they report progress, and where they keep checkpoints to resume from."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np

from mesascope.core import Progress, named_key

_CHECKPOINTS = 20  # in one training: an interrupted claim loses at most a twentieth of it


@dataclass(frozen=True)
class Work:
    """One check of a claim that is under way.

    Attributes:
        tell: called with a line of progress, from the thread of a training.
        folder: where its trainings keep checkpoints until the claim is done; None where these are not worth it.
    """

    tell: Callable[[str], None]
    folder: Path | None

    def training(self, make: Callable[..., Any], *facts: Any, seeds: Sequence[int]) -> Path | None:
        """The folder of one training, by its starts and what else is known of it."""
        if self.folder is None:
            return None
        digest = hashlib.sha256("\n".join(map(repr, (*facts, list(seeds)))).encode())
        for seed in seeds:
            for leaf in jax.tree.leaves(eqx.filter(make(named_key(seed, "model")), eqx.is_array)):
                digest.update(np.asarray(leaf).tobytes())
        return self.folder / digest.hexdigest()[:16]

    def report(self, seed: int, now: Progress) -> None:
        """Report the progress of a training, as the callback of `train_many`."""
        self.tell(f"seed {seed}: {now.describe()}")


_SILENT = Work(lambda line: None, None)
_WORK: ContextVar[Work] = ContextVar("work", default=_SILENT)  # it is frozen


def current_work() -> Work:
    """The check that is under way; outside of `reproduce` one that reports and keeps nothing."""
    return _WORK.get()


@contextmanager
def working(tell: Callable[[str], None], folder: Path | None) -> Iterator[None]:
    """Inside, trainings report their progress and keep checkpoints in the folder, if there is one."""
    token = _WORK.set(Work(tell, folder))
    try:
        yield
    finally:
        _WORK.reset(token)


def checkpoint_every(steps: int, unit: int) -> int:
    """Steps between two checkpoints of a training that is kept: about a twentieth of all, and a divisor of `unit`."""
    fine = (parts for parts in range(1, unit) if unit % parts == 0 and unit * _CHECKPOINTS <= parts * steps)
    return unit // next(fine, unit)


def warn_damaged(error: Exception, then: str) -> None:
    """Warn of a damaged checkpoint of a claim's training, which is not used."""
    warnings.warn(f"{str(error).partition(';')[0]}; {then}", UserWarning, stacklevel=3)
