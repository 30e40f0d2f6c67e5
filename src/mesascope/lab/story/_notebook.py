"""Each step of the story as a notebook that computes what the step shows."""

import json
from pprint import pformat
from typing import Any

from mesascope.lab._setting import plain_setting
from mesascope.studies import FlowSpec

from ._words import STEPS

_SETTING = """\
import mesascope as ms
from mesascope.studies import FlowSpec

ms.enable_x64()
spec = FlowSpec.model_validate({fields})
model, process, task, _ = spec.build()"""

_TRAIN = "result, flow = spec.follow(saves=200)\nprint(result.message)"

_IDENTIFY = "ms.identify(flow.model, process, task)"
_POOL = """\
import numpy as np

fresh = ms.LinearRegression(10, covariance=np.eye(10) / 10, prior="sphere", noise=0.5)
lu2024, task = ms.theory.lu2024, ms.FewShot(20)
new = lu2024.features(fresh, task)

for tasks in (1, 3, 10, 30, 100, 300):
    pool = lu2024.features(ms.TaskPool(fresh, tasks=tasks), task)
    best = pool.minimum
    print(tasks, "tasks:", pool.error(best), "on them,", new.error(best), "on new ones")"""
PROGRAMS = {
    "data": ("import jax\n\nprocess.sample(jax.random.key(0), 5, 1)",),
    "model": ("print(model.w_kq)\nprint(model.w_pv)",),
    "train": (_TRAIN, "ms.plot(flow)"),
    "result": (_TRAIN, 'print(result.product, "theory:", result.limit_product)', _IDENTIFY),
    "why": (
        "theory = ms.theory.zheng2024",
        'print("mean of answer divided by truth:", theory.expected_ratio(process, mask=spec.mask))',
        'print("error that no context removes:", theory.capability_gap(process, mask=spec.mask))',
    ),
    "break": (_TRAIN, _IDENTIFY, _POOL),
}
"""Of every step; they know `spec`, `model`, `process`, `task`."""


def programs(spec: FlowSpec, step: str) -> tuple[str, ...]:
    """Return the programs of a step, the setting first."""
    fields = pformat(plain_setting(spec), width=84, sort_dicts=False)
    return (_SETTING.format(fields=fields), *PROGRAMS[step])


def to_notebook(spec: FlowSpec, step: str) -> str:
    """Return a step as a Jupyter notebook (nbformat 4)."""
    title = f"# {STEPS[step][0]}\n\nA step of the story of `mesascope lab`."
    cells: list[dict[str, Any]] = [{"cell_type": "markdown", "metadata": {}, "source": title}]
    empty: dict[str, Any] = {"metadata": {}, "outputs": [], "execution_count": None}
    cells += [{"cell_type": "code", "source": code, **empty} for code in programs(spec, step)]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = {"nbformat": 4, "nbformat_minor": 4, "metadata": {"kernelspec": kernel}, "cells": cells}
    return json.dumps(notebook, indent=1, ensure_ascii=False)
