"""What the page of models shows, computed in a worker's process: trainings with their losses, and names of algorithms."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import numpy as np

from mesascope.core import Progress
from mesascope.lab._jobs import Report
from mesascope.objectives import cast, population_loss
from mesascope.probes import Identification, identify
from mesascope.processes import FewShot, NextToken
from mesascope.records import plain
from mesascope.report import identification_figures
from mesascope.studies import IdentifySpec, TrainSpec

Result = dict[str, Any]


def training(spec: TrainSpec, progress: Report) -> Result:
    """Train; the losses are reported as they come."""
    progress("compiling, or loading what was compiled before")
    run = spec.build()

    def tell(now: Progress) -> None:
        progress(now.describe(), (now.done, float(now.values["loss"])))

    done = run.train(progress=tell)
    if done.result.value == "interrupted":
        raise KeyboardInterrupt
    result = run.result(done)
    return {
        "steps": np.array([one.steps for one in result.losses]),
        "losses": np.array([one.loss for one in result.losses]),
        "loss": result.loss,
        "loss_se": result.loss_standard_error,
        "exact_loss": _exact_loss(done.model, run.process, run.task),
        "message": result.message,
        "succeeded": result.succeeded,
        "leaves": [np.asarray(leaf) for leaf in jax.tree.leaves(eqx.filter(done.model, eqx.is_array))],
    }


def _exact_loss(model: Any, process: Any, task: NextToken | FewShot) -> float | None:
    """The expectation over all samples, where it is known without sampling."""
    try:
        return float(population_loss(cast(model, "float64"), process, task).value)
    except (TypeError, ValueError):  # the exact engine refuses what it cannot treat
        return None


def learned(spec: TrainSpec, leaves: list[np.ndarray], tasks: int, progress: Report) -> Result:
    """Which algorithm a trained model runs."""
    process, task = spec.build_data()
    weights, rest = eqx.partition(spec.build_model(), eqx.is_array)
    model = eqx.combine(jax.tree.unflatten(jax.tree.structure(weights), leaves), rest)
    found = identify(model, process, task, tasks=tasks, progress=lambda now: progress(now.describe()))
    return {**told(found), "figures": identification_figures(found.record())}


def given(spec: IdentifySpec, progress: Report) -> Result:
    """Which algorithm a model of the user runs."""
    progress("loading the model")
    found = spec.run(lambda now: progress(now.describe()))
    return {**told(found), "figures": identification_figures(found.record())}


def told(found: Identification) -> Result:
    """What the pages show of an identification."""
    return {
        "headline": found.headline,
        "verdict": found.verdict,
        "candidates": list(found.candidates),
        "reasons": list(found.reasons),
        "reading": found.reading and found.reading.describe(),
        "ranking": [
            {
                "learner": entry.learner,
                "hyperparameters": plain(entry.hyperparameters),
                "distance": entry.distance,
                "interval": entry.interval,
            }
            for entry in found.ranking
        ],
    }
