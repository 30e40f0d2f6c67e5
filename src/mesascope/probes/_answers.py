"""What a model answers to in-context problems, after it was seen to answer as a function should."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mesascope.models import LinearAttentionModel, PromptModel, SequenceModel

from ._adapter import Predictor, as_callable
from ._problems import Problems

_OURS = LinearAttentionModel | SequenceModel | PromptModel
_REPEATED = 8  # tasks that are asked twice
_LEAST, MOST = 1e-60, 1e60  # of predictions: products of six of them are still numbers
_SURPLUS = 1e-3  # of a sum of probabilities: half precision rounds so


def answers(model: Any, problems: Problems) -> np.ndarray:
    """The predictions of a model after every number of examples that counts.

    Models of ours answer for all numbers of examples in one pass; other functions are called once for each.

    Args:
        model: a model of ours, or what `as_callable` takes.
        problems: the problems.

    Returns:
        Shape (batch, N + 1, m); 0 where the weight is 0. Of symbols the probabilities of the next one.

    Raises:
        TypeError: nothing that can be called, or complex predictions for real data.
        ValueError: predictions of another shape, not finite, that change from call to call, or that are no probabilities of
            symbols.
    """
    if isinstance(model, _OURS):
        return _ours(model, problems)
    function = as_callable(model)
    batch, outputs = problems.tasks, problems.y.shape[-1]
    found = np.zeros((batch, len(problems.weights), outputs), problems.y.dtype)
    for n in problems.lengths:
        found[:, n] = _asked(function, problems, int(n))
    for n in {int(problems.lengths[0]), int(problems.lengths[-1])}:
        _check_repeats(function, problems, n, found)
    return found


def _ours(model: Any, problems: Problems) -> np.ndarray:
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


def _asked(function: Predictor, problems: Problems, n: int) -> np.ndarray:
    """The answers after n examples, shape (batch, m)."""
    arrays = context_arrays(problems, n)
    found = function(*arrays)
    outputs = problems.y.shape[-1]
    wanted = (problems.tasks,) if problems.prompts else (problems.tasks, outputs)
    _check(found, wanted, problems, " and ".join(f"{a.shape}" for a in arrays))
    if problems.symbols:
        _check_probabilities(found)
    return found[:, None] if problems.prompts else found


def context_arrays(problems: Problems, n: int) -> tuple[np.ndarray, ...]:
    """What a function is called with to answer after n examples."""
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
    largest = float(
        np.abs(found).max(initial=0.0)
    )  # a Python number: half precision does not know the bounds
    if not (largest == 0 or _LEAST <= largest <= MOST) and np.isfinite(largest):
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
            "mend the model, or take data it can read (another scale or horizon)"
        )


def _check_probabilities(found: np.ndarray) -> None:
    if found.min() < -_SURPLUS or np.abs(found.sum(-1) - 1).max() > _SURPLUS:
        raise ValueError(
            "model: must answer symbols with the probabilities of the next one, at least 0 and of sum 1; apply softmax to "
            "logits"
        )


def _check_repeats(function: Predictor, problems: Problems, n: int, found: np.ndarray) -> None:
    """The same contexts again, and fewer of them at once: neither may change an answer by more than rounding does."""
    few = problems.part(0, min(_REPEATED, problems.tasks))
    again = _asked(function, few, n)
    before = found[: few.tasks, n]
    single = np.finfo(again.dtype).eps > 1e-10 if np.issubdtype(again.dtype, np.inexact) else False
    again = again.astype(before.dtype)  # half precision cannot hold its squares
    rounding = 1e-4 if single else 1e-8  # other batches are summed in other orders
    scale = np.sqrt(np.mean(np.abs(before) ** 2)) + np.sqrt(np.mean(np.abs(again) ** 2))
    if np.abs(again - before).max() > rounding * max(scale, 1e-300):
        raise ValueError(
            "model: answers the same contexts differently when asked again; switch off dropout and sampling, fix its seed, "
            "and let no context see the others of its batch"
        )
