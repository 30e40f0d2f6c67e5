"""The predictions of a model for in-context problems, with checks that it is a function of the context."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mesascope.models import LinearAttentionModel, PromptModel, SequenceModel

from ._adapter import as_callable
from ._every_position import Embedded, EveryPosition, Predictor, TokenLogits, XsYs
from ._problems import Problems

_BUILT_IN = LinearAttentionModel | SequenceModel | PromptModel
_REPEATED = 8  # tasks whose predictions are computed twice
_CHANGED = 4  # tasks in which later entries are replaced
_MIN_SIZE, MAX_SIZE = 1e-60, 1e60  # bounds of predictions, so that products of six are finite and not 0
_OF_LOGITS = 0.03  # relative differences of probabilities whose logits are rounded to 8 bits
_TOLERANCE = 1e-3  # of a sum of probabilities, for half precision


def answers(model: Any, problems: Problems) -> np.ndarray:
    """Return the predictions of a model after every number of examples with positive weight.

    Models of mesascope, and those that `as_callable` makes an `EveryPosition`, predict for all numbers of examples in one pass;
    other functions are called once for each.

    Args:
        model: a model of mesascope, or anything that `as_callable` takes.
        problems: the problems.

    Returns:
        Shape (batch, N + 1, m); 0 where the weight is 0. For symbols the probabilities of the next symbol.

    Raises:
        TypeError: `model` cannot be called, or its predictions are complex for real data.
        ValueError: predictions have another shape, are not finite, differ between calls, or are not probabilities of
            symbols; the model changes the 64-bit mode of JAX.
    """
    if isinstance(model, _BUILT_IN):
        return _built_in(model, problems)
    function = as_callable(model)
    found = np.zeros((problems.tasks, len(problems.weights), problems.y.shape[-1]), problems.y.dtype)
    with _in_one_precision():
        every = _in_one_pass(function, problems) if isinstance(function, EveryPosition) else None
        for i, n in enumerate(problems.lengths):
            found[:, n] = _predict(function, problems, int(n)) if every is None else every[:, i]
        for n in {int(problems.lengths[place]) for place in (0, len(problems.lengths) // 2, -1)}:
            _check_repeats(function, problems, n, found)
    return found


@contextmanager
def _in_one_precision() -> Iterator[None]:
    """Refuse a model that changes the mode of JAX, whatever else it does then, and set the mode back."""
    wide = jax.config.jax_enable_x64  # type: ignore[attr-defined]  # defined at run time
    try:
        yield
    finally:
        if jax.config.jax_enable_x64 != wide:  # type: ignore[attr-defined]
            jax.config.update("jax_enable_x64", wide)
            raise ValueError(
                "model: changes JAX's 64-bit mode while it predicts; leave jax_enable_x64 as it is"
            )


def _built_in(model: Any, problems: Problems) -> np.ndarray:
    if isinstance(model, PromptModel) != problems.prompts:
        reads, are = ("prompts", "sequences") if isinstance(model, PromptModel) else ("sequences", "prompts")
        raise TypeError(
            f"model: {type(model).__name__} reads {reads}, and these data are {are}; take another process"
        )
    arrays = context_arrays(problems, len(problems.weights) - 1)
    if problems.prompts and not model.one_pass:
        found = _after_each(model, problems)
    else:
        found = _predictions(model, *arrays)
        found = np.asarray(jax.nn.softmax(found) if problems.symbols else found)
    if not problems.prompts:
        found = np.concatenate([np.zeros_like(found[:, :1]), found], 1)
    _check_shape(found, (problems.tasks, len(problems.weights)), problems, arrays)
    _check_numbers(found, problems)
    found = found[..., None] if problems.prompts else found
    return np.where(problems.weights[:, None] > 0, found, 0)


def _after_each(model: PromptModel, problems: Problems) -> np.ndarray:
    """The labels after the numbers of examples that count, shape (batch, N + 1), and 0 after others: a pass for each."""
    found = {int(n): np.asarray(_label(model, *context_arrays(problems, int(n)))) for n in problems.lengths}
    none = np.zeros_like(next(iter(found.values())))
    return np.stack([found.get(n, none) for n in range(len(problems.weights))], 1)


@jax.jit  # as below
def _label(model: Any, x: Any, y: Any) -> Any:
    return model(x, y)


@jax.jit  # once, so that models of one architecture are compiled once
def _predictions(model: Any, *arrays: Any) -> Any:
    return model.predictions(*arrays)


def _in_one_pass(function: EveryPosition, problems: Problems) -> np.ndarray | None:
    """Return the predictions at the lengths of the problems, shape (batch, lengths, m); None if there is no such pass.

    Embedded models that are not causal have none: from the shortest context, or with other later entries, they predict another
    number. Other models are then refused.
    """
    arrays = context_arrays(problems, int(problems.lengths[-1]))
    found = function.every(*arrays)
    if found is None:
        return None
    _check_shape(found, (problems.tasks, int(problems.lengths[-1]) + 1), problems, arrays)
    found = _checked(found[:, problems.lengths], problems)
    if isinstance(function, Embedded):
        few, shortest = _few(problems), int(problems.lengths[0])
        again = _predict(function, few, shortest)
        if _differ(again, found[: few.tasks, 0], _rounding(again)):
            return None
    peeks = _sees_later(function, problems)
    if peeks is None:
        return found
    if isinstance(function, Embedded):
        return None
    what = (
        f"its prediction of label {peeks + 1} changes with this label, or with later labels or inputs"
        if problems.prompts
        else f"its prediction after {peeks + 1} tokens changes with later ones"
    )
    raise ValueError(f"model: {what}; let it see earlier ones only: is its mask missing, or off by one?")


def _predict(function: Predictor, problems: Problems, n: int) -> np.ndarray:
    """Return the predictions after n examples, shape (batch, m)."""
    arrays = context_arrays(problems, n)
    found = function(*arrays)
    _check_shape(found, (problems.tasks,), problems, arrays)
    return _checked(found, problems)


def _check_shape(
    found: np.ndarray, lead: tuple[int, ...], problems: Problems, arrays: tuple[np.ndarray, ...]
) -> None:
    """Refuse predictions unless their axes are `lead` and, but for the labels of prompts, one of m numbers."""
    wanted = lead if problems.prompts else (*lead, problems.y.shape[-1])
    if found.shape != wanted:
        given = " and ".join(f"{a.shape}" for a in arrays)
        raise ValueError(
            f"model: must answer contexts of shape {given} with predictions of shape {wanted}, gave {found.shape}"
            + _hint(found, wanted, problems)
        )


def _checked(found: np.ndarray, problems: Problems) -> np.ndarray:
    """Return predictions with a last axis of m numbers; refuse what is no number or no probability."""
    _check_numbers(found, problems)
    if problems.symbols:
        _check_probabilities(found)
    return found[..., None] if problems.prompts else found


def context_arrays(problems: Problems, n: int) -> tuple[np.ndarray, ...]:
    """Return the arguments of a model for predictions after n examples."""
    if problems.prompts:
        x, y = problems.sample
        return np.asarray(x[:, : n + 1]), np.asarray(y[:, :n])
    return (np.asarray(problems.sample[:, : n + 1]),)


def _check_numbers(found: np.ndarray, problems: Problems) -> None:
    if not (np.issubdtype(found.dtype, np.number)):
        raise TypeError(f"model: must answer with numbers, gave an array of {found.dtype}")
    largest = (
        np.abs(found).max(initial=0).astype(np.longdouble)
    )  # the bounds exceed the range of half precision
    if not (largest == 0 or _MIN_SIZE <= largest <= MAX_SIZE) and np.isfinite(largest):
        rare = (
            np.median(np.abs(found).reshape(len(found), -1).max(-1).astype(np.longdouble))
            <= MAX_SIZE
            < largest
        )
        fix = (
            "it diverges on a few tasks: take other data (another scale or horizon)"
            if rare
            else "measure in other units"
        )
        raise ValueError(
            f"model: its largest prediction is {largest:.3g}, and squares of such numbers leave the range of floating point; "
            f"{fix}"
        )
    if np.iscomplexobj(found) and not jnp.iscomplexobj(problems.y):
        raise TypeError("model: answers real contexts with complex predictions; return their real part")
    bad = ~np.isfinite(found)
    if bad.any():
        share = bad.reshape(len(found), -1).any(-1).mean()
        raise ValueError(
            f"model: its predictions are infinite or nan for {100 * share:.3g} % of the tasks; "
            "fix the model, or take other data (another scale or horizon)"
        )


def _hint(found: np.ndarray, wanted: tuple[int, ...], problems: Problems) -> str:
    """The interface that would fit predictions of this shape."""
    if problems.prompts and found.ndim > 1 and found.shape[0] == wanted[0]:
        return '; for predictions at every position, name its parameters xs and ys, or set interface="xs-ys"'
    if found.ndim == len(wanted) + 1 and found.shape[::2] == wanted:
        logits = ', or set interface="tokens" if they are logits' if problems.symbols else ""
        return f"; return those of the last position only{logits}"
    if problems.symbols and found.shape[:-1] == wanted[:-1]:
        return f"; the process has {wanted[-1]} symbols: return the predictions of these"
    return ""


def _check_probabilities(found: np.ndarray) -> None:
    sums, asked = found.sum(-1), "must answer symbols with the probabilities of the next one"
    if found.min() < -_TOLERANCE:
        raise ValueError(f"model: {asked}, gave {found.min():.3g}; apply softmax to logits")
    worst = sums.flat[np.abs(sums - 1).argmax()]
    if abs(worst - 1) > _TOLERANCE:
        raise ValueError(
            f"model: {asked}, gave some of sum {worst:.6g}; divide by the sum, or apply softmax to logits"
        )


def _check_repeats(function: Predictor, problems: Problems, n: int, found: np.ndarray) -> None:
    """Refuse predictions that change by more than rounding if they are computed again, in a smaller batch.

    They are those of the last tasks, moved by an odd number of places.
    """
    start = max(0, problems.tasks - _REPEATED)
    few = problems.part(start + (start % 2 == 0 and start > 0), problems.tasks)
    again = _predict(function, few, n)
    # nothing shows whether single probabilities come from logits of half precision
    unknown = isinstance(function, TokenLogits) and again.dtype == np.float32
    if _differ(again, found[problems.tasks - few.tasks :, n], _OF_LOGITS if unknown else _rounding(again)):
        raise ValueError(
            "model: answers the same contexts differently when asked again; switch off dropout and sampling, "
            "and let no context see the others of its batch or its own place in it, and no position those after it"
        )


def _sees_later(function: EveryPosition, problems: Problems) -> int | None:
    """Return a number of examples after which predictions change with what comes later, and not by themselves; None if none.

    After every number of examples all later entries are replaced by others of the same values, in batches of contexts that
    together are no larger than the problems. Predictions that change with their place in the batch are not told from these.
    """
    few = problems.part(0, min(_CHANGED, problems.tasks))
    arrays = context_arrays(few, int(few.lengths[-1]))
    predict: Callable[..., np.ndarray | None] = function.every
    if isinstance(function, XsYs):
        labels = np.asarray(few.sample[1][:, : arrays[0].shape[1]])  # the last one, too
        arrays, predict = (arrays[0], labels), function.from_labels
    # of two arrays the second is of labels, of which one fewer is seen
    seen = [few.lengths + 1, few.lengths][: len(arrays)]
    once, again = predict(*arrays), predict(*arrays)
    assert once is not None and again is not None  # there was such a pass
    together = max(1, problems.tasks // few.tasks)
    symbols = problems.y.shape[-1] if problems.symbols else 0
    for start in range(0, len(few.lengths), together):
        some = slice(start, start + together)
        changed = predict(
            *(_with_other_ends(one, counts[some], symbols) for one, counts in zip(arrays, seen, strict=True))
        )
        assert changed is not None
        changed = changed.reshape(-1, *once.shape)
        for place, (n, other) in enumerate(zip(few.lengths[some], changed, strict=True)):
            before, same, after = once[:, n], again[:, n], other[:, n]
            rounding = _rounding(before)
            if not _differ(same, before, rounding) and _differ(after, before, rounding):
                unchanged = predict(*(np.concatenate([one] * len(changed)) for one in arrays))
                assert unchanged is not None
                moved = unchanged.reshape(-1, *once.shape)[place][:, n]
                return None if _differ(moved, before, rounding) else int(n)
    return None


def _with_other_ends(array: np.ndarray, counts: np.ndarray, symbols: int) -> np.ndarray:
    """Return contexts (tasks, length, …) for every count, one after another, with other entries from there on.

    Entries move to other tasks and places at random, so that they keep the values that they may have. Of symbols, half of the
    tasks have others at all places, the rest at random places.
    """
    rng = np.random.default_rng(0)
    others = []
    for count in counts:
        other, places = array.copy(), np.arange(count, array.shape[1])
        for place in places:
            source = rng.integers(0, array.shape[1])
            other[:, place] = np.roll(array[:, source], rng.integers(0, len(array)), 0)
            if symbols:
                shifts = np.where(np.arange(len(array)) % 2, rng.integers(0, symbols), 1)
                other[:, place] = (array[:, place] + shifts) % symbols
        others.append(other)
    return np.concatenate(others)


def _few(problems: Problems) -> Problems:
    return problems.part(0, min(_REPEATED, problems.tasks))


def _differ(again: np.ndarray, before: np.ndarray, rounding: float) -> bool:
    """Return whether predictions differ by more than rounding: the order of sums depends on the batch and the length."""
    # squares leave narrower types
    again, before = (one.astype(complex if np.iscomplexobj(one) else float) for one in (again, before))
    scale = np.sqrt(np.mean(np.abs(before) ** 2)) + np.sqrt(np.mean(np.abs(again) ** 2))
    return bool(np.abs(again - before).max() > rounding * max(scale, 1e-300))


def _rounding(values: np.ndarray) -> float:
    """Return the relative size of differences by rounding, from the coarsest format that holds all numbers."""
    if not np.issubdtype(values.dtype, np.inexact) or np.finfo(values.dtype).eps < 1e-10:
        return 1e-8
    if not np.iscomplexobj(values):
        for half in map(np.dtype, (jnp.bfloat16, np.float16)):
            with np.errstate(over="ignore"):
                if np.array_equal(values.astype(half).astype(values.dtype), values):
                    return 10 * float(jnp.finfo(half).eps)
    return 1e-4
