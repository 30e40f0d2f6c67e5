"""Pools of tasks: what they draw, the moments of their weights, files, and what they refuse."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mesascope.core import named_key
from mesascope.processes import (
    Gaussian,
    LinearRegression,
    NonlinearRegression,
    OrthogonalAR,
    OrthonormalFeatures,
    RandomFeatures,
    TaskPool,
    TwoLayerReLU,
)
from mesascope.processes._task_moments import gaussian_moments, pool_moments, sphere_moments
from mesascope.specs import specification

PROCESS = LinearRegression(3, noise=0.0)


@pytest.mark.slow
def test_prompts_have_a_task_of_the_pool_and_all_tasks_occur():
    pool = TaskPool(PROCESS, tasks=4, seed=5)
    x, y = pool.sample(named_key(0, "pool"), 6, 200)
    fitted = np.stack([np.linalg.lstsq(*one, rcond=None)[0] for one in zip(x, y, strict=True)])
    distances = np.linalg.norm(fitted[:, None] - pool.table, axis=-1)
    assert distances.min(1).max() < 1e-9
    assert set(distances.argmin(1)) == set(range(4))


@pytest.mark.slow
def test_a_prompt_of_a_pool_is_that_of_its_process_with_the_same_task():
    key = named_key(1, "same")
    given = np.asarray(LinearRegression(3, noise=0.4).draw_tasks(key, 7))
    one = LinearRegression(3, noise=0.4).prompts_of(key, jnp.asarray(given), 5)
    other = TaskPool(LinearRegression(3, noise=0.4), vectors=given).prompts_of(key, jnp.asarray(given), 5)
    np.testing.assert_array_equal(one.x, other.x)
    np.testing.assert_array_equal(one.y, other.y)


def test_a_pool_depends_on_its_seed_only():
    first, again, other = (TaskPool(PROCESS, tasks=3, seed=seed).table for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).min() > 1e-3
    with jax.enable_x64(False):
        np.testing.assert_array_equal(TaskPool(PROCESS, tasks=3, seed=0).table, first)


@pytest.mark.slow
@pytest.mark.parametrize("target", [TwoLayerReLU(4), RandomFeatures(4)])
def test_functions_are_pooled_too(target):
    pool = TaskPool(NonlinearRegression(2, target), tasks=1)
    x, y = pool.sample(named_key(0, "functions"), 5, 3)
    again = target.values(jax.tree.map(lambda array: jnp.repeat(jnp.asarray(array), 3, 0), pool.table), x)
    np.testing.assert_allclose(y, again, rtol=1e-12)


def test_sphere_tasks_have_length_root_d():
    drawn = np.asarray(LinearRegression(4, prior="sphere").draw_tasks(named_key(0, "sphere"), 100))
    np.testing.assert_allclose((drawn**2).sum(1), 4, rtol=1e-12)


@pytest.mark.parametrize("prior", ["identity", "sphere", [[2.0, 0.3, 0], [0.3, 1, 0], [0, 0, 0.5]]])
def test_moments_of_the_prior_are_those_of_a_large_pool(prior):
    sigma = np.array([[1.0, 0.2, 0.1], [0.2, 0.6, 0], [0.1, 0, 1.5]])
    process = LinearRegression(3, prior=prior)
    count = 200_000
    tasks = np.asarray(process.draw_tasks(named_key(0, "moments"), count))
    features = np.column_stack([np.ones(count), tasks, np.einsum("ki,ij,kj->k", tasks, sigma, tasks)])
    products = np.einsum("ki,kj->kij", features, features).reshape(count, -1)
    errors = products.std(0) / count**0.5
    off = np.abs(products.mean(0) - process.weight_moments(sigma).ravel())
    assert (off <= 5 * errors + 1e-12).all()  # of 25 numbers: five standard errors
    np.testing.assert_allclose(
        products.mean(0).reshape(5, 5), pool_moments(tasks, sigma), rtol=1e-9, atol=1e-12
    )


def test_in_one_dimension_the_sphere_is_two_points():
    sigma = np.array([[0.7]])
    np.testing.assert_allclose(
        sphere_moments(sigma), pool_moments(np.array([[1.0], [-1.0]]), sigma), atol=1e-15
    )
    assert gaussian_moments(np.eye(1), sigma)[-1, -1] == pytest.approx(3 * 0.7**2)


def test_files_are_read_and_kept_by_name(tmp_path):
    table = np.array([[1.0, 2.0, 3.0], [0.5, 0.0, -1.0]])
    np.save(tmp_path / "tasks.npy", table)
    pool = TaskPool(PROCESS, file=tmp_path / "tasks.npy")
    np.testing.assert_array_equal(pool.table, table)
    assert pool == TaskPool(PROCESS, vectors=table)
    assert set(specification(pool)) == {"kind", "process", "seed", "file"}


def test_rows_may_be_arrays():
    pool = TaskPool(PROCESS, vectors=[np.ones(3), [0, 1, 2]])
    np.testing.assert_array_equal(pool.table, [[1, 1, 1], [0, 1, 2]])


def test_one_column_of_a_file_is_tasks_of_one_dimension(tmp_path):
    (tmp_path / "tasks.csv").write_text("0.5\n-1\n2\n")
    pool = TaskPool(LinearRegression(1), file=tmp_path / "tasks.csv")
    np.testing.assert_array_equal(pool.table, [[0.5], [-1], [2]])


def test_a_sphere_has_no_sparse_tasks():
    with pytest.raises(ValueError, match="leave out sparsity"):
        LinearRegression(3, prior="sphere", sparsity=1)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "needs one of tasks, vectors and file, got none"),
        ({"tasks": 0}, "tasks must be at least 1, got 0"),
        ({"tasks": 3, "vectors": [[1, 2, 3]]}, "got tasks and vectors"),
        ({"vectors": [[1, 2]]}, r"vectors must have shape \(K, 3\), a row for each task, got \(1, 2\)"),
        ({"vectors": [1, 2, 3]}, r"got \(3,\)"),
        ({"vectors": []}, r"are empty \(shape \(0,\)\): give at least one"),
        ({"vectors": [[1, 2, float("nan")]]}, "vectors.*finite"),
        ({"vectors": np.array([[1, 2, np.nan]])}, r"must be finite.*entry \(0, 2\) is nan; change it"),
        (
            {"vectors": np.array([[1, 1e200, 0]])},
            r"at most 1e\+50 in size, entry \(0, 1\) is 1e\+200; change it",
        ),
        (
            {"process": OrthogonalAR(Gaussian(1.0), 3), "tasks": 2},
            "process must be a TaskProcess and no pool",
        ),
        ({"process": TaskPool(PROCESS, tasks=2), "tasks": 2}, "must be a TaskProcess"),
        (
            {"process": NonlinearRegression(3, TwoLayerReLU(2)), "vectors": [[1, 2, 3]]},
            "give tasks for another",
        ),
    ],
)
def test_refusals(fields, message):
    with pytest.raises((ValueError, TypeError), match=message):
        TaskPool(**{"process": PROCESS, **fields})


def test_a_pool_beyond_memory_is_refused_before_it_is_drawn():
    with pytest.raises(ValueError, match=r"tasks: must take at most 2 GiB, 10000000 tasks take 7\.5; give"):
        _ = TaskPool(LinearRegression(100), tasks=10**7).table


@pytest.mark.slow
def test_a_pool_of_labels_of_features():
    """The label of feature k is entry k of one of the tasks."""
    pool = TaskPool(OrthonormalFeatures(3, dim=4), tasks=2, seed=1)
    x, y = pool.sample(jax.random.key(0), 5, 40)
    table, features = np.asarray(pool.table), np.asarray(x).argmax(-1)
    assert table.shape == (2, 4)
    same = np.abs(table[:, features] - np.asarray(y)[None]).max(-1) == 0  # (tasks, prompts)
    np.testing.assert_array_equal(same.sum(0), 1)
    assert 0 < same[0].sum() < 40
