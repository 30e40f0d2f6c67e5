"""Sensitivity of predictions to the context: Jacobians in every token, and the effective matrix that acts on the query."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mesascope.core import integer_at_least

from ._adapter import as_callable
from ._answers import context_arrays
from ._intervals import Measured, bootstrapped, ratio
from ._problems import Problems


def sensitivities(function: Any, problems: Problems, n: int) -> np.ndarray:
    r"""Return the Jacobians of the predictions after n examples in every entry of their contexts.

    Complex entries are taken as two real ones, (Re; Im). Functions that JAX can trace are differentiated automatically,
    others by central differences, with steps of the cube root of the rounding unit, relative to the size of the entries.

    Args:
        function: a model, or any function that `as_callable` takes.
        problems: the contexts.
        n: the number of examples, ≥ 1.

    Returns:
        Shape (batch, outputs, tokens, entries): for sequences tokens x_1 … x_t, t = n + 1; for prompts the n + 1 inputs
        with their labels as last entries (0 for the query, since nothing depends on its label).

    Raises:
        TypeError: sequences of symbols.
        ValueError: n is 0 or larger than the number of examples.
    """
    _check(problems, n)
    arrays = context_arrays(problems, n)
    if _traceable(function, arrays):
        flat = _Flat(arrays)
        one = lambda row: _real(function(*flat.unpack(row[None])).reshape(-1))  # noqa: E731
        found = np.asarray(jax.jit(jax.vmap(jax.jacfwd(one)))(jnp.asarray(flat.rows)))
    else:
        found = _differences(as_callable(function), arrays)
    return _by_token(found, problems, n)


def sensitivity_distance(
    model: np.ndarray, learner: np.ndarray, *, level: float = 0.95, seed: int = 0
) -> Measured:
    r"""Return the relative distance $E\|J_f - J_g\|_F^2/E\|J_f\|_F^2$ of sensitivities, with its interval over tasks."""
    axes = tuple(range(1, model.ndim))
    table = np.stack([((model - learner) ** 2).sum(axes), (model**2).sum(axes)], -1)
    return bootstrapped(table, lambda m: ratio(m[..., :1], m[..., 1:]), level=level, seed=seed).at(0)


def sensitivity_cosine(
    model: np.ndarray, learner: np.ndarray, *, level: float = 0.95, seed: int = 0
) -> Measured:
    """Return the mean over tasks of the cosine of the sensitivities (vonoswald2023), with its interval."""
    axes = tuple(range(1, model.ndim))
    sizes = np.sqrt((model**2).sum(axes) * (learner**2).sum(axes))
    cosines = ratio((model * learner).sum(axes), sizes)
    return bootstrapped(cosines[:, None], lambda m: m, level=level, seed=seed).at(0)


def implicit_weights(
    function: Any, problems: Problems, n: int, *, queries: int = 32, seed: int = 0
) -> np.ndarray:
    r"""Return the matrix that acts on the query, by regression: $\arg\min_W \sum_k \|f(\text{context}, q_k) - W q_k\|^2$.

    The last token or input is replaced by the queries of other tasks. In sequences this also changes the output of the last
    example: compare the result only with the matrix of a learner that is computed in the same way.

    Args:
        function: a model, or any function that `as_callable` takes.
        problems: the contexts; at least as many tasks as queries.
        n: the number of examples, ≥ 1.
        queries: number of queries, at least the dimension of the inputs.
        seed: seed of the choice of queries.

    Returns:
        Shape (batch, m, p).

    Raises:
        TypeError: sequences of symbols.
        ValueError: n is 0 or larger than the number of examples; fewer queries than dimensions, or more than tasks.
    """
    _check(problems, n)
    inputs = problems.queries.shape[-1]
    if not inputs <= queries <= problems.tasks:
        raise ValueError(
            f"queries: must be between the dimension {inputs} and the number of tasks {problems.tasks}, got {queries}"
        )
    chosen = np.random.default_rng(seed).choice(problems.tasks, queries, replace=False)
    replaced = np.asarray(problems.queries)[chosen, n]
    call, arrays = as_callable(function), context_arrays(problems, n)
    found = []
    for query in replaced:
        tokens = arrays[0].copy()
        tokens[:, -1] = query
        found.append(call(tokens, *arrays[1:]).reshape(problems.tasks, -1))
    return np.einsum("kbm,pk->bmp", np.stack(found), np.linalg.pinv(replaced))


def _check(problems: Problems, n: int) -> None:
    if problems.symbols:
        raise TypeError(
            "problems: predictions cannot be differentiated in symbols; take a process of real or complex tokens"
        )
    largest = len(problems.weights) - 1
    if not 1 <= integer_at_least("n", n, 0) <= largest:
        raise ValueError(f"n: must be in 1 … {largest}, the numbers of examples of these problems, got {n}")


class _Flat:
    """Contexts as rows of real numbers, and the inverse."""

    def __init__(self, arrays: tuple[np.ndarray, ...]):
        self.shapes = [a.shape[1:] for a in arrays]
        self.complex = np.iscomplexobj(arrays[0])
        rows = np.concatenate([a.reshape(len(a), -1) for a in arrays], 1)
        self.rows = np.concatenate([rows.real, rows.imag], 1) if self.complex else rows

    def unpack(self, rows: Any) -> list[Any]:
        if self.complex:
            half = rows.shape[1] // 2
            rows = rows[:, :half] + 1j * rows[:, half:]
        sizes = np.cumsum([int(np.prod(shape)) for shape in self.shapes])
        starts = [0, *sizes[:-1]]
        return [
            rows[:, a:b].reshape(-1, *shape) for a, b, shape in zip(starts, sizes, self.shapes, strict=True)
        ]


def _real(values: Any) -> Any:
    return jnp.concatenate([values.real, values.imag]) if jnp.iscomplexobj(values) else values


def _traceable(function: Any, arrays: tuple[np.ndarray, ...]) -> bool:
    try:
        jax.eval_shape(function, *(jnp.asarray(a[:1]) for a in arrays))
    except Exception:  # functions of NumPy or torch may raise any error for a tracer
        return False
    return True


def _differences(call: Callable[..., np.ndarray], arrays: tuple[np.ndarray, ...]) -> np.ndarray:
    flat = _Flat(arrays)
    answered = call(*flat.unpack(flat.rows[:1])).dtype
    rounding = np.finfo(answered if np.issubdtype(answered, np.inexact) else float).eps
    step = float(rounding) ** (1 / 3) * max(float(np.sqrt(np.mean(flat.rows**2))), 1e-300)

    def at(rows: np.ndarray) -> np.ndarray:
        found = call(*flat.unpack(rows)).reshape(len(rows), -1)
        return np.concatenate([found.real, found.imag], 1) if np.iscomplexobj(found) else found

    columns = []
    for entry in range(flat.rows.shape[1]):
        change = np.zeros(flat.rows.shape[1])
        change[entry] = step
        columns.append((at(flat.rows + change) - at(flat.rows - change)) / (2 * step))
    return np.stack(columns, -1)


def _by_token(jacobians: np.ndarray, problems: Problems, n: int) -> np.ndarray:
    """Return Jacobians (batch, outputs, entries in a row) as (batch, outputs, tokens, entries of a token)."""
    batch, outputs, _ = jacobians.shape
    inputs = problems.queries.shape[-1]
    if not problems.prompts:
        parts = np.split(jacobians, 1 + np.iscomplexobj(problems.queries), -1)
        return np.concatenate([p.reshape(batch, outputs, n + 1, inputs) for p in parts], -1)
    x = jacobians[..., : (n + 1) * inputs].reshape(batch, outputs, n + 1, inputs)
    y = np.concatenate([jacobians[..., (n + 1) * inputs :], np.zeros((batch, outputs, 1))], -1)
    return np.concatenate([x, y[..., None]], -1)
