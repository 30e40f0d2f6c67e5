"""Identifying a model: how long it takes, and how often the name is right."""

import json
import statistics
from concurrent.futures import ThreadPoolExecutor

import numpy as np
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


def test_intervals_of_the_weights_of_mixtures(benchmark, bar, run_python):
    """The noisy mixtures of the benchmark of algorithms, 24 of each, fitted among their own learners."""
    bar(what="95 % intervals of the weights of planted mixtures, 400 tasks, noise 2 %")
    code = (
        f"{_BEFORE}from mesascope.benchmark._cases import predictor\n"
        "from mesascope.benchmark._data import USUAL\n"
        "from mesascope.benchmark._write import cases\n"
        "for number, case in enumerate(one for one in cases(1, 24, ('mixture',)) if one.noise):\n"
        "    usual, truth = case.settings[USUAL], case.truth\n"
        "    model = predictor(case.model, usual, case.noise, case.weights)\n"
        "    asked = dict(tasks=400, seed=number, tolerance=1e-3, parts=3, learners=truth.learners)\n"
        "    found = ms.identify(model, usual.process, usual.task, **asked)\n"
        "    parts = {part.learner: part.interval for part in found.mixtures[0].parts} if found.mixtures else {}\n"
        "    named = set(parts) == set(truth.learners)\n"
        "    names = sorted(parts)[:-1]  # weights have the sum 1\n"
        "    held = [parts[one][0] <= truth.weights[one] <= parts[one][1] for one in names if named]\n"
        "    print(json.dumps(held), flush=True)\n"
    )
    finished = benchmark.pedantic(lambda: run_python("-c", code), rounds=1)
    mixtures = [json.loads(line) for line in finished.output.splitlines()]
    named = [mixture for mixture in mixtures if mixture]
    held = [one for mixture in named for one in mixture]
    # the weights of one mixture are not independent: mixtures are resampled
    sums, sizes = (np.array([count(mixture) for mixture in named]) for count in (sum, len))
    counts = np.random.default_rng(0).multinomial(len(named), np.full(len(named), 1 / len(named)), 10_000)
    low, high = np.quantile(counts @ sums / (counts @ sizes), [0.025, 0.975])
    benchmark.extra_info["memory"] = finished.memory
    benchmark.extra_info["detail"] = (
        f"{100 * sum(held) / len(held):.1f} % [{100 * low:.1f}, {100 * high:.1f}] of {len(held)} intervals hold the weight, "
        f"93 to 97 % asked; {len(named)} of {len(mixtures)} mixtures named"
    )
    # so few intervals can only refute 93 to 97 %
    assert low <= 0.97
    assert high >= 0.93
