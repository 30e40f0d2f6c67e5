"""Identifying a model: how long it takes, and how often the name is right."""

import json
import statistics
from concurrent.futures import ThreadPoolExecutor

import pytest
from measuring import ALL_CORES

# A bar in seconds, and a model and a process at d = 5, T = 30.
_SETTINGS = {
    "a function of NumPy arrays": (
        30,
        "process = ms.LinearAR.contracting(ms.Gaussian(1.0), 5, 0.3, 0.9, noise=0.5)\n"
        "def model(contexts):\n"
        "    x, y = contexts[:, :-1], contexts[:, 1:]\n"
        "    gram = x.swapaxes(1, 2) @ x + 0.7 * np.eye(5)\n"
        "    return (contexts[:, -1:] @ np.linalg.solve(gram, x.swapaxes(1, 2) @ y))[:, 0]\n",
    ),
    "a layer of linear attention": (
        15,
        "process = ms.DiagonalUnitary(ms.Gaussian(1.0), 5)\n"
        "model = ms.LinearAttention.diagonal(5, 0.4, 0.4)\n",
    ),
}
_BEFORE = (
    "import sys; sys.path.insert(0, 'benchmarks')\n"
    "import json, jax, mesascope as ms\n"
    "jax.config.update('jax_enable_x64', True)\n"
)


@pytest.mark.parametrize("what", _SETTINGS)
def test_full_identification(benchmark, bar, run_python, what):
    """All learners, 2000 tasks, from a cold start."""
    seconds, setting = _SETTINGS[what]
    bar(what=f"`identify` of {what}, all learners, 2000 tasks, d = 5, T = 30, cold", seconds=seconds)
    code = (
        f"{_BEFORE}import numpy as np\n{setting}print(ms.identify(model, process, ms.NextToken(30)).verdict)"
    )
    finished = []
    benchmark.pedantic(lambda: finished.append(run_python("-c", code)), rounds=1)
    benchmark.extra_info["memory"] = finished[-1].memory
    assert finished[-1].output.strip() == "identified"


def test_identification_along_training(benchmark, bar, run_python):
    """Fifty layers of linear attention on the way to gradient descent, ten learners."""
    bar(what="`identify_along` of 50 checkpoints, ten learners, 500 tasks, d = 5, T = 30, cold", seconds=60)
    code = (
        f"{_BEFORE}process = ms.DiagonalUnitary(ms.Gaussian(1.0), 5)\n"
        "checkpoints = {n: ms.LinearAttention.diagonal(5, 0.01 * n, 0.01 * n) for n in range(50)}\n"
        "learners = ['zero', 'average', 'last-token', 'gradient-descent', 'gradient-descent++', 'momentum', 'ridge', "
        "'least-squares', 'chebyshev', 'kernel-smoother']\n"
        "run = ms.identify_along(checkpoints, process, ms.NextToken(30), learners=learners, tasks=500)\n"
        "print(len(run.found))"
    )
    finished = benchmark.pedantic(lambda: run_python("-c", code), rounds=1)
    benchmark.extra_info["memory"] = finished.memory
    assert finished.output.strip() == "50"


def test_planted_models(benchmark, bar, run_python):
    """A hundred planted learners of all kinds, each held against all learners."""
    bar(what="100 planted models, all learners, 200 tasks, d = 3, T = 12")
    code = (
        f"{_BEFORE}from planted_models import PROCESS, TASK, as_model, marked, planted\n"
        "for number in range(int(sys.argv[1]), 100, int(sys.argv[2])):\n"
        "    learner = planted(number)\n"
        "    answer = ms.identify(as_model(learner), PROCESS, TASK, tasks=200, seed=number)\n"
        "    print(json.dumps([number, learner.name, *marked(learner, answer)]), flush=True)\n"
    )
    workers = len(ALL_CORES)

    def all_of_them():
        with ThreadPoolExecutor(workers) as pool:
            return list(pool.map(lambda first: run_python("-c", code, first, workers), range(workers)))

    finished = benchmark.pedantic(all_of_them, rounds=1)
    marks = [json.loads(line) for one in finished for line in one.output.splitlines()]
    open_ones = [(number, name) for number, name, right, named, _ in marks if not named]
    wrong = [(number, name) for number, name, right, *_ in marks if not right]
    errors = [error for *_, right, named, error in marks if right and named]
    benchmark.extra_info["memory"] = max(one.memory for one in finished)
    benchmark.extra_info["detail"] = (
        f"{len(errors)} named, {len(open_ones)} left open, {len(wrong)} wrong; hyperparameters within "
        f"{100 * max(errors):.2g} %, median {100 * statistics.median(errors):.2g} %"
    )
    assert len(marks) == 100
    assert not wrong, wrong
    assert max(errors) < 1e-2
