"""Pools of tasks of symbols: what they draw, files, and what they refuse."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mesascope.core import named_key
from mesascope.processes import LinearRegression, MarkovChains, MarkovTree, SymbolPool, SymbolProcess, Urns
from mesascope.specs import component, specification

URNS, CHAINS = Urns(3), MarkovChains(2)
MATRICES = np.array([[[0.25, 0.75], [1.0, 0.0]], [[0.5, 0.5], [0.125, 0.875]], [[0.0, 1.0], [1.0, 0.0]]])


@pytest.mark.slow
def test_every_sequence_has_one_task_of_the_pool_and_all_are_equally_probable():
    pool = SymbolPool(URNS, probabilities=[[1, 0, 0], [0, 0, 1], [0, 1, 0], [0, 1, 0]])
    drawn = np.asarray(pool.sample(named_key(0, "pool"), 6, 4000))
    assert (drawn == drawn[:, :1]).all()
    share = np.array([0.25, 0.5, 0.25])
    found = np.bincount(drawn[:, 0], minlength=3) / len(drawn)
    assert (abs(found - share) <= 4 * np.sqrt(share * (1 - share) / len(drawn))).all()


@pytest.mark.slow
@pytest.mark.parametrize("process", [URNS, CHAINS])
def test_a_sequence_of_a_pool_is_that_of_its_process_with_the_same_task(process):
    key = named_key(1, "same")
    tasks = process.draw_tasks(key, 7)
    one, other = (
        p.sequences_of(key, tasks, 5) for p in (process, SymbolPool(process, probabilities=np.asarray(tasks)))
    )
    np.testing.assert_array_equal(one, other)


@pytest.mark.slow
@pytest.mark.parametrize("process", [URNS, CHAINS])
def test_a_pool_depends_on_its_seed_only(process):
    first, again, other = (SymbolPool(process, tasks=3, seed=seed).table for seed in (0, 0, 1))
    assert first.shape == (3, *process.task_shape)
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).min() > 1e-3
    with jax.enable_x64(False):
        np.testing.assert_array_equal(SymbolPool(process, tasks=3, seed=0).table, first)
    inside = SymbolPool(process, tasks=3, seed=0)
    jax.jit(lambda key: inside.sample(key, 4, 2))(named_key(0))  # the first use is inside a trace
    np.testing.assert_array_equal(inside.table, first)


@pytest.mark.slow
def test_a_pool_is_of_the_prior():
    count, alpha = 20_000, 2
    table = SymbolPool(Urns(3, alpha), tasks=count, seed=3).table
    # E p = 1/S, and E p² = (1/S)(α + 1)/(S α + 1)
    for values, expected in ((table, 1 / 3), (table**2, 1 / 3 * (alpha + 1) / (3 * alpha + 1))):
        assert (abs(values.mean(0) - expected) <= 4 * values.std(0) / count**0.5).all()


def test_files_are_read_and_kept_by_name(tmp_path):
    np.save(tmp_path / "matrices.npy", MATRICES)
    np.save(tmp_path / "rows.npy", MATRICES.reshape(-1, 2))
    np.savetxt(tmp_path / "rows.csv", MATRICES.reshape(-1, 2), delimiter=",")
    for name in ("matrices.npy", "rows.npy", "rows.csv"):
        pool = SymbolPool(CHAINS, file=tmp_path / name)
        np.testing.assert_array_equal(pool.table, MATRICES)
        assert pool == SymbolPool(CHAINS, probabilities=MATRICES) and pool.size == 3
        assert set(specification(pool)) == {"kind", "process", "seed", "file"}
    np.save(tmp_path / "urns.npy", MATRICES.reshape(-1, 2))
    np.testing.assert_array_equal(
        SymbolPool(Urns(2), file=tmp_path / "urns.npy").table, MATRICES.reshape(-1, 2)
    )


def test_given_matrices_are_their_specification():
    pool = SymbolPool(CHAINS, probabilities=MATRICES)
    written = specification(pool)
    assert written["probabilities"] == MATRICES.tolist()
    again = SymbolPool(**{name: value for name, value in written.items() if name != "kind"})
    assert again == pool and hash(again) == hash(pool) and again.describe().startswith("SymbolPool(K=3, ")
    assert SymbolPool(CHAINS, probabilities=jnp.asarray(MATRICES)) == pool
    assert SymbolPool(CHAINS, probabilities=MATRICES[::-1]) != pool


def test_rationals_are_read_as_strings():
    pool = SymbolPool(URNS, probabilities=[["1/3", "1/3", "1/3"]])
    np.testing.assert_allclose(pool.table, 1 / 3, rtol=1e-16)


@pytest.mark.slow
def test_identify_is_given_the_probabilities_of_pools_that_are_not_too_large():
    pool = SymbolPool(CHAINS, tasks=SymbolPool.max_compared)
    np.testing.assert_array_equal(pool.probabilities_of_tasks, pool.table)
    assert SymbolPool(CHAINS, tasks=SymbolPool.max_compared + 1).probabilities_of_tasks is None


@component
class Constants(SymbolProcess):
    """One symbol in every sequence: tasks are symbols, not probabilities."""

    symbols: int = 4

    def draw_tasks(self, key, count):
        return jax.random.randint(key, (count,), 0, self.symbols).astype(float)

    def sequences_of(self, key, tasks, horizon):
        return jnp.tile(tasks.astype(jnp.int32)[:, None], (1, horizon))


def test_a_process_of_ones_own_can_be_pooled():
    pool = SymbolPool(Constants(), tasks=2, seed=1)
    drawn = np.asarray(pool.sample(named_key(0), 5, 50))
    assert set(drawn.ravel()) == set(pool.table.astype(int)) and (drawn == drawn[:, :1]).all()
    assert pool.probabilities_of_tasks is None
    with pytest.raises(ValueError, match="are of urns and Markov chains; give tasks for another process"):
        SymbolPool(Constants(), probabilities=[[1, 0, 0, 0]])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "needs one of tasks, probabilities and file, got none"),
        ({"tasks": 0}, "tasks must be at least 1, got 0"),
        ({"tasks": 2.5}, "tasks must be an integer"),
        ({"tasks": 3, "probabilities": [[1, 0, 0]]}, "got tasks and probabilities"),
        ({"probabilities": []}, "probabilities must be a matrix, a list of rows"),
        ({"probabilities": [1, 0, 0]}, r"probabilities\[0\] must be a row of numbers, got 1"),
        ({"probabilities": np.ones(3)}, r"probabilities must have shape \(K, S\) or \(K, S, S\), got \(3,\)"),
        ({"probabilities": np.ones((0, 3))}, r"must have shape .* got \(0, 3\)"),
        (
            {"probabilities": [[0.5, 0.5]]},
            r"must have shape \(K, 3\), the probabilities of each task, got \(1, 2\)",
        ),
        (
            {"process": CHAINS, "probabilities": [[0.5, 0.5]]},
            r"shape \(K, 2, 2\), the transition matrix of each task, got \(1, 2\)",
        ),
        ({"process": CHAINS, "probabilities": [[[1, 0], [1]]]}, r"\[0\]\[1\] has 1 numbers, but row 0 has 2"),
        (
            {"process": CHAINS, "probabilities": [[[1, 0], [1, 0]], [[1, 0]]]},
            r"\[1\] has shape \(1, 2\), but task 0 has \(2, 2\); give all tasks one shape",
        ),
        ({"probabilities": [[1, 0, float("nan")]]}, r"probabilities\[0\]\[2\] must be finite"),
        (
            {"probabilities": np.array([[1, 0, np.inf]])},
            r"\[0\]\[2\] must be finite, got inf; remove the task",
        ),
        ({"probabilities": [[0.5, 0.6, -0.1]]}, r"probabilities\[0\]\[2\] must not be negative, got -0.1"),
        ({"probabilities": [[1, 0, 0], [0.5, 0.4, 0]]}, r"\[1\] must sum to 1, not 0.9; divide the row by"),
        (
            {"process": CHAINS, "probabilities": [[[1, 0], [0.5, 0.6]]]},
            r"probabilities\[0\]\[1\] must sum to 1",
        ),
        ({"probabilities": np.array([["a", "b", "c"]])}, "must be real numbers, got an array of <U1"),
        ({"probabilities": np.ones((1, 3)) * 1j}, "must be real numbers, got an array of complex128"),
        (
            {"probabilities": np.broadcast_to(1 / 3, (10**8, 3))},
            r"probabilities must take at most 2 GiB, 100000000 tasks take 2\.2; give fewer",
        ),
        ({"process": SymbolPool(URNS, tasks=2), "tasks": 2}, "must be a SymbolProcess and no pool, such as"),
        ({"process": MarkovTree("chain", 3, 1), "tasks": 2}, "must be a SymbolProcess .* got MarkovTree"),
        ({"process": LinearRegression(2), "tasks": 2}, "process must be a SymbolProcess"),
        ({"process": "urn", "tasks": 2}, "process.kind unknown kind 'urn'; did you mean 'urns'"),
        ({"tasks": 2, "seed": -1}, "seed must be at least 0"),
        ({"file": "missing.npy"}, r"file cannot read missing\.npy"),
    ],
)
def test_refusals(fields, message):
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        SymbolPool(**{"process": URNS, **fields})
    assert str(caught.value).startswith("SymbolPool ") and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (MATRICES[0, 0], r"shape \(K, 2, 2\)"),
        (MATRICES.reshape(-1, 2)[:3], r"shape \(K, 2, 2\), the transition matrix of each task, got \(3, 2\)"),
        (2 * MATRICES, r"file\[0\]\[0\] must sum to 1, not 2"),
        (MATRICES[None], r"save one of shape \(n,\) or \(n, d\) or \(n, d, d\)"),
    ],
)
def test_files_of_other_arrays_are_refused(tmp_path, array, message):
    np.save(tmp_path / "tasks.npy", array)
    with pytest.raises(ValueError, match=message):
        SymbolPool(CHAINS, file=tmp_path / "tasks.npy")


@pytest.mark.parametrize(("process", "tasks"), [(Urns(100), 10**7), (MarkovChains(1000), 1000)])
def test_a_pool_beyond_memory_is_refused_before_it_is_drawn(process, tasks):
    with pytest.raises(ValueError, match=r"tasks: must take at most 2 GiB, 10+ tasks take 7\.5; give fewer"):
        _ = SymbolPool(process, tasks=tasks).table
