"""The last attempt to break the story: a pool of few tasks, which a layer memorizes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._presets import Answer, Question

_TASKS = 3
POOL = Question(
    "pool",
    "A pool of few tasks",
    f"Regression y = w·x + noise, trained on {_TASKS} vectors w. For a new w, does the best layer beat predicting 0?",
    ("yes", "no"),
)
Results = dict[str, Any]


def pool_answer(pools: Results) -> Answer:
    """Whether the best layer for the pool is better than the answer 0 on new tasks."""
    new, zero = pools["new"][pools["sizes"] == _TASKS].item(), pools["zero"]
    learned = new < zero
    what = "It has learned" if learned else "It has memorized its tasks"
    errors = f"on new ones its error is {new:.3g}, predicting 0 has {zero:.3g}"
    return int(not learned), f"{what}: {errors}. The slider for K shows what more tasks change."


def pool_data(pools: Results) -> Results:
    """What the drawing shows: errors by the number of tasks, and where its slider begins."""
    curves = {name: np.asarray(pools[name]).tolist() for name in ("sizes", "pool", "new")}
    return {**curves, "zero": pools["zero"], "pools": pools["pools"], "start": _TASKS}
