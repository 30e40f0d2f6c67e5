"""Weights, checkpoints and rows of phase diagrams, for the harness."""

import jax
import numpy as np
import pytest

import mutants
from harness.files import TRAIN, Kind, arrays_text, report, text
from mesascope.dynamics import load_model, save_model
from mesascope.dynamics._run_folder import RunFolder
from mesascope.dynamics.phase_diagrams._points import PhasePoint, starts
from mesascope.dynamics.phase_diagrams._rows import RowFile
from mesascope.dynamics.phase_diagrams._solve import FlowFacts
from mesascope.models import LinearAttention
from mesascope.processes import DiagonalUnitary, Gaussian, NextToken
from mesascope.studies import TrainSpec, parse_spec


def weights(tmp):
    first, second = (LinearAttention.gaussian(2, 0.3, key=jax.random.key(n)) for n in range(2))
    save_model(tmp / "model", first, {"note": "a"})
    save_model(tmp / "other", second)
    others = ((tmp / "other").read_bytes(),)
    return Kind(
        tmp / "model",
        lambda: arrays_text(load_model(tmp / "model", first)),
        mutants.resealed_checkpoint,
        others=others,
    )


def checkpoint(tmp):
    seen = []

    class Seen(RunFolder):
        def resume(self, state, steps):
            seen.append((self, state, steps))
            return super().resume(state, steps)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mesascope.dynamics._train.RunFolder", Seen)
        parse_spec(TRAIN, TrainSpec).build().train(tmp / "run")
    folder, state, steps = seen[0]
    file = tmp / "run/step-000000002.checkpoint"

    def read():
        step, found, log = RunFolder.resume(folder, state, steps)
        return text((step, arrays_text(found), log))

    others = ((tmp / "run/step-000000001.checkpoint").read_bytes(),)
    return Kind(file, read, mutants.resealed_checkpoint, True, report(tmp / "run"), others)


def row(tmp):
    points = [
        PhasePoint(LinearAttention.diagonal(2, a, a), DiagonalUnitary(Gaussian(1.0), 2), NextToken(5))
        for a in (0.1, 0.2)
    ]
    file = RowFile(tmp / "row.nc", {"until": 3.0, "code": "c"})
    stored_row = {name: np.arange(2.0) for name in FlowFacts._fields} | {"end": starts(points)}
    file.write(points, stored_row)
    return Kind(
        tmp / "row.nc",
        lambda: repr({k: v.tolist() for k, v in file.read(points).items()}),
        mutants.resealed_data,
    )


RUNS = (weights, checkpoint, row)
