"""The predictions of a model for in-context problems, with checks that it is a function of the context."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mesascope.models import LinearAttentionModel, PromptModel, SequenceModel

from ._adapter import Predictor, as_callable
from ._problems import Problems

_BUILT_IN = LinearAttentionModel | SequenceModel | PromptModel
_REPEATED = 8  # tasks whose predictions are computed twice
_MIN_SIZE, MAX_SIZE = 1e-60, 1e60  # bounds of predictions, so that products of six are finite and not 0
_TOLERANCE = 1e-3  # of a sum of probabilities, for half precision


def answers(model: Any, problems: Problems) -> np.ndarray:
    """Return the predictions of a model after every number of examples with positive weight.

    Models of mesascope predict for all numbers of examples in one pass; other functions are called once for each.

    Args:
        model: a model of mesascope, or anything that `as_callable` takes.
        problems: the problems.

    Returns:
        Shape (batch, N + 1, m); 0 where the weight is 0. For symbols the probabilities of the next symbol.

    Raises:
        TypeError: `model` cannot be called, or its predictions are complex for real data.
        ValueError: predictions have another shape, are not finite, differ between calls, or are not probabilities of
            symbols.
    """
    if isinstance(model, _BUILT_IN):
        return _built_in(model, problems)
    function = as_callable(model)
    batch, outputs = problems.tasks, problems.y.shape[-1]
    found = np.zeros((batch, len(problems.weights), outputs), problems.y.dtype)
    for n in problems.lengths:
        found[:, n] = _predict(function, problems, int(n))
    for n in {int(problems.lengths[0]), int(problems.lengths[-1])}:
        _check_repeats(function, problems, n, found)
    return found


def _built_in(model: Any, problems: Problems) -> np.ndarray:
    if isinstance(model, PromptModel) != problems.prompts:
        reads, are = ("prompts", "sequences") if isinstance(model, PromptModel) else ("sequences", "prompts")
        raise TypeError(
            f"model: {type(model).__name__} reads {reads}, and these data are {are}; take another process"
        )
    if problems.prompts:
        x, y = problems.sample
        found = np.asarray(_predictions(model, x, y[:, :-1]))[..., None]
    else:
        found = _predictions(model, problems.sample)
        found = np.asarray(jax.nn.softmax(found) if problems.symbols else found)
        found = np.concatenate([np.zeros_like(found[:, :1]), found], 1)
    wanted = (problems.tasks, len(problems.weights), problems.y.shape[-1])
    _check(found, wanted, problems, "predictions")
    return np.where(problems.weights[:, None] > 0, found, 0)


@jax.jit  # once, so that models of one architecture are compiled once
def _predictions(model: Any, *arrays: Any) -> Any:
    return model.predictions(*arrays)


def _predict(function: Predictor, problems: Problems, n: int) -> np.ndarray:
    """Return the predictions after n examples, shape (batch, m)."""
    arrays = context_arrays(problems, n)
    found = function(*arrays)
    outputs = problems.y.shape[-1]
    wanted = (problems.tasks,) if problems.prompts else (problems.tasks, outputs)
    _check(found, wanted, problems, " and ".join(f"{a.shape}" for a in arrays))
    if problems.symbols:
        _check_probabilities(found)
    return found[:, None] if problems.prompts else found


def context_arrays(problems: Problems, n: int) -> tuple[np.ndarray, ...]:
    """Return the arguments of a model for predictions after n examples."""
    if problems.prompts:
        x, y = problems.sample
        return np.asarray(x[:, : n + 1]), np.asarray(y[:, :n])
    return (np.asarray(problems.sample[:, : n + 1]),)


def _check(found: np.ndarray, wanted: tuple[int, ...], problems: Problems, given: str) -> None:
    if found.shape != wanted:
        raise ValueError(
            f"model: must answer contexts of shape {given} with predictions of shape {wanted}, gave {found.shape}"
        )
    if not (np.issubdtype(found.dtype, np.number)):
        raise TypeError(f"model: must answer with numbers, gave an array of {found.dtype}")
    # a Python number, since the bounds exceed the range of half precision
    largest = float(np.abs(found).max(initial=0.0))
    if not (largest == 0 or _MIN_SIZE <= largest <= MAX_SIZE) and np.isfinite(largest):
        raise ValueError(
            f"model: its largest prediction is {largest:.3g}, and squares of such numbers leave the range of floating point; "
            "measure in other units"
        )
    if np.iscomplexobj(found) and not jnp.iscomplexobj(problems.y):
        raise TypeError("model: answers real contexts with complex predictions; return their real part")
    bad = ~np.isfinite(found)
    if bad.any():
        share = bad.reshape(len(found), -1).any(-1).mean()
        raise ValueError(
            f"model: its predictions are infinite or nan for {share:.3g} of the tasks; "
            "fix the model, or take other data (another scale or horizon)"
        )


def _check_probabilities(found: np.ndarray) -> None:
    if found.min() < -_TOLERANCE or np.abs(found.sum(-1) - 1).max() > _TOLERANCE:
        raise ValueError(
            "model: must answer symbols with the probabilities of the next one, at least 0 and of sum 1; apply softmax to "
            "logits"
        )


def _check_repeats(function: Predictor, problems: Problems, n: int, found: np.ndarray) -> None:
    """Refuse predictions that change by more than rounding if they are computed again, in a smaller batch."""
    few = problems.part(0, min(_REPEATED, problems.tasks))
    again = _predict(function, few, n)
    before = found[: few.tasks, n]
    single = np.finfo(again.dtype).eps > 1e-10 if np.issubdtype(again.dtype, np.inexact) else False
    again = again.astype(before.dtype)  # squares may overflow half precision
    rounding = 1e-4 if single else 1e-8  # the order of sums depends on the batch
    scale = np.sqrt(np.mean(np.abs(before) ** 2)) + np.sqrt(np.mean(np.abs(again) ** 2))
    if np.abs(again - before).max() > rounding * max(scale, 1e-300):
        raise ValueError(
            "model: answers the same contexts differently when asked again; switch off dropout and sampling, fix its seed, "
            "and let no context see the others of its batch"
        )
