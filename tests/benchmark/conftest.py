"""A small benchmark: a few models of every group but those that are trained."""

import numpy as np
import pytest

import mesascope.benchmark._write as writing
from mesascope.benchmark import Benchmark, write_benchmark
from mesascope.benchmark._data import USUAL, standard_data
from mesascope.benchmark._networks import constructions
from mesascope.benchmark._planted import mixtures, planted

LEARNERS = ("average", "gradient-descent", "ridge", "dirichlet-posterior")


def few(seed, draws, groups):
    """Four planted learners, two constructions, three mixtures, two decoys; prompts in all settings, others as usual."""
    data, rng = standard_data(), np.random.default_rng(seed)
    data = {name: {USUAL: all[USUAL]} for name, all in data.items()} | {"prompts": data["prompts"]}
    kept = {name: data[name] for name in ("prompts", "chains")}
    yield from (case for case in planted(kept, draws, rng) if case.model.learner in LEARNERS)
    made = list(constructions(data, rng))
    yield from (made[0], made[-1])
    mixed = list(mixtures(data, draws, rng))
    yield from (mixed[4], mixed[-4], mixed[-1])  # of prompts, chains and a pool of chains
    decoys = list(writing._decoys(data))
    yield from (decoys[0], decoys[-1])


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("benchmark") / "small"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writing, "cases", few)
        write_benchmark(path, draws=1)
    return path


@pytest.fixture(scope="session")
def benchmark_of_few(folder):
    return Benchmark(folder)


@pytest.fixture(scope="session")
def entries():
    """The models of a group, or whose description has these fields, with their keys."""

    def chosen(benchmark, **wanted):
        return {
            name: entry
            for name, entry in benchmark.key.models.items()
            if all((vars(entry) | vars(entry.model)).get(field) == value for field, value in wanted.items())
        }

    return chosen
