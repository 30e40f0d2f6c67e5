"""Samples of a process for a task, and their losses, straight from the definitions."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from mesascope.models import (
    DiagonalSelfAttention,
    FactoredLinearSelfAttention,
    LinearAttentionModel,
    LinearAttentionStack,
    LinearSelfAttention,
    Projected,
    PromptModel,
    SequenceModel,
    WithPositions,
)
from mesascope.processes import DiagonalUnitary, FewShot, NextToken, PromptProcess, Prompts, SequenceProcess

from ._engine import require_moments

Task = NextToken | FewShot
"""Which predictions count, in sequences or in prompts."""
PRECISIONS = ("float32", "float64", "bfloat16")
"""Names of the precisions that samples and models can be computed in."""
_LARGEST_BATCH = 2**32
_TRIAL_BATCH = 5  # unlike the length of a trial, so that axes in another order show


def check_task(process: Any, task: Any) -> None:
    """Refuse a task that the samples of the process cannot be used for.

    Raises:
        TypeError: no task, no sampler, or sequences where prompts are needed and the other way round.
    """
    if not isinstance(task, Task):
        raise TypeError(
            f"task: must be a task such as NextToken(horizon=100) or FewShot(examples=20), got {task!r}"
        )
    if not hasattr(process, "sample"):
        raise TypeError(f"process: must have a sampler, such as DiagonalUnitary(law, dim), got {process!r}")
    prompts = isinstance(process, PromptProcess)
    if prompts and isinstance(task, NextToken):
        raise TypeError(
            f"task: {type(process).__name__} draws prompts, not sequences; use FewShot(examples=…)"
        )
    if not prompts and isinstance(task, FewShot):
        raise TypeError(
            f"task: {type(process).__name__} draws sequences, not prompts; use NextToken(horizon=…)"
        )


def check_model_reads(model: Any, process: Any) -> None:
    """Refuse a model whose loss on this process cannot be computed, or would be that of something else.

    Nothing is computed: the shapes and types of the loss of one short sample tell.

    Raises:
        TypeError: no model; a model of sequences with a process of prompts, or the other way round; real layers with
            complex tokens.
        ValueError: another dimension, or another number of symbols or logits than the process has symbols; a process whose
            samples have another shape than they must have.
        MomentError: linear attention on `DiagonalUnitary` of a law without moments of order 6: already with one layer the
            loss is infinite. (With L layers it has degree 2·3^L in the initial token.)
    """
    if not hasattr(model, "predictions"):
        raise TypeError(
            f"model: must be a model with floating-point weights and with predictions, such as linear_transformer(…) or an "
            f"eqx.Module of your own, "
            f"got {model!r}"
        )
    reader, source = type(model).__name__, type(process).__name__
    prompts = isinstance(process, PromptProcess)
    if isinstance(model, LinearAttentionModel | SequenceModel) and prompts:
        raise TypeError(
            f"model: {reader} reads sequences, but {source} draws prompts; use prompt_linear_transformer, "
            "prompt_transformer or another PromptModel"
        )
    if isinstance(model, PromptModel) and not prompts:
        raise TypeError(
            f"model: {reader} reads prompts, but {source} draws sequences; use linear_transformer, transformer or "
            "another SequenceModel"
        )
    if isinstance(process, DiagonalUnitary) and _is_linear_attention(model):
        # a finite sample has a mean whatever the law; it would look like an answer
        require_moments(process.law, process.dim)
    # the shortest that there is: learned positions may not reach further
    length = 1 if prompts else getattr(process, "horizon", 3)
    task = FewShot(length) if prompts else NextToken(length)
    sample = _trial_sample(process, length)
    try:
        eqx.filter_eval_shape(lambda m, x: sample_losses(cast(m, "float32"), x, task), model, sample)
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"model: {reader} does not read what {source} draws: {error}") from error
    if hasattr(process, "vocabulary"):
        _check_symbols(model, process, sample)


def _trial_sample(process: Any, length: int) -> Any:
    """Shapes and types of a sample in single precision, which must be what a process has to draw."""
    drawn = jax.eval_shape(lambda: cast(process.sample(jax.random.key(0), length, _TRIAL_BATCH), "float32"))
    if not isinstance(process, SequenceProcess | PromptProcess):
        return drawn  # anything with a sampler may be averaged over
    prompts = isinstance(process, PromptProcess)
    batch, dim, source = _TRIAL_BATCH, process.dim, type(process).__name__
    if prompts:
        wanted = [("x", (batch, length + 1, dim)), ("y", (batch, length + 1))]
        axes = {"x": "(batch, examples + 1, dim)", "y": "(batch, examples + 1)"}
        if not isinstance(drawn, Prompts):
            raise TypeError(f"process: {source}.sample must give Prompts(x, y), gave {type(drawn).__name__}")
    else:
        symbols = hasattr(process, "vocabulary")
        wanted = [("tokens", (batch, length) if symbols else (batch, length, dim))]
        axes = {"tokens": "(batch, horizon)" if symbols else "(batch, horizon, dim)"}
        drawn = (drawn,)
    for (name, shape), array in zip(wanted, drawn, strict=True):
        if array.shape != shape:
            raise ValueError(
                f"process: {source}.sample must give {name} of shape {axes[name]}, here {shape}, gave {array.shape}"
            )
    return drawn if prompts else drawn[0]


def _check_symbols(model: Any, process: Any, sample: Any) -> None:
    """Symbols that an embedding does not know, or without a logit, would be taken for others inside compiled code."""
    reader, drawn = type(model).__name__, f"{type(process).__name__} draws {process.vocabulary} symbols"
    logits = eqx.filter_eval_shape(lambda m, x: m.predictions(x[:, :-1]), model, sample).shape[-1]
    if logits != process.vocabulary:
        raise ValueError(f"model: {reader} gives {logits} logits, but {drawn}; make them equal")
    embedding = getattr(model, "embedding", None)
    while isinstance(embedding, Projected | WithPositions):
        embedding = embedding.embedding
    known = getattr(embedding, "vocabulary", process.vocabulary)
    if known != process.vocabulary:
        raise ValueError(f"model: {reader} embeds {known} symbols, but {drawn}; make them equal")


def _is_linear_attention(model: Any) -> bool:
    """Whether the loss is a polynomial in the tokens: one layer of linear attention, or a stack of nothing else."""
    if isinstance(model, LinearAttentionModel):
        return True
    network = model.network if isinstance(model, SequenceModel) else None
    linear = LinearSelfAttention | FactoredLinearSelfAttention | DiagonalSelfAttention
    return isinstance(network, LinearAttentionStack) and all(
        isinstance(layer, linear) for layer in network.layers
    )


def task_length(task: Task) -> int:
    """How long a sample must be: horizon T or examples N, as `process.sample` takes it."""
    return task.horizon if isinstance(task, NextToken) else task.examples


def refuse_large_batches(process: Any, task: Task, batch: int) -> None:
    """Refuse batches whose tokens would take more than 4 GiB.

    Raises:
        ValueError: says how large they would be.
    """
    size = 16 * batch * task_length(task) * int(getattr(process, "dim", 1))
    if size > _LARGEST_BATCH:
        raise ValueError(
            f"{batch} samples for {task.describe()} take {size / 2**30:.3g} GiB at once; "
            "take a smaller batch or shorter samples, or ExactMoments, whose cost does not grow with the horizon"
        )


def cast(tree: Any, precision: str) -> Any:
    """All floating-point arrays of a model or a sample in this precision; complex ones in complex64 or complex128."""
    real = jnp.dtype(precision)

    def one(leaf: Any) -> Any:
        if not eqx.is_inexact_array(leaf):
            return leaf
        return leaf.astype(jnp.result_type(real, jnp.complex64) if jnp.iscomplexobj(leaf) else real)

    return jax.tree.map(one, tree)


def sample_losses(model: Any, sample: Any, task: Task) -> Array:
    """The loss of every sequence or prompt.

    - `NextToken`, continuous tokens: Σ_t w_t ½‖ŷ_t − x_{t+1}‖²;
    - `NextToken`, discrete tokens: Σ_t w_t (−log p_t(x_{t+1})) in nats, p_t = softmax of the predicted logits;
    - `FewShot`: Σ_t w_t ½(ŷ_{t+1} − y_{t+1})².

    Args:
        model: has `predictions`, as `SequenceModel` or `PromptModel`.
        sample: tokens (batch, T, d), symbols (batch, T) or `Prompts`.
        task: says which predictions count.

    Returns:
        Shape (batch,), real.

    Raises:
        ValueError: predictions of another shape than what they predict.
    """
    if isinstance(task, FewShot):
        return _prompt_losses(model, sample, task)
    if not jnp.issubdtype(sample.dtype, jnp.inexact):
        return _symbol_losses(model, sample, task.weights_array())
    return sequence_losses(model, sample, task.weights_array())


def sequence_losses(model: Any, tokens: Array, weights: Any) -> Array:
    """Σ_t w_t ½‖ŷ_t − x_{t+1}‖² of every sequence.

    Args:
        model: has `predictions(tokens (…, t, d)) → (…, t − 1, d)`, entry t − 2 predicting x_{t+1}.
        tokens: x_1 … x_T, shape (batch, T, d).
        weights: w_2 … w_{T−1}, shape (T − 2,).

    Returns:
        Shape (batch,), real.

    Raises:
        ValueError: predictions of another shape than the tokens that they predict.
    """
    errors = _errors(model.predictions(tokens[..., :-1, :]), tokens[..., 2:, :])
    squared = jnp.sum(jnp.real(errors * errors.conj()), -1)
    return squared @ jnp.asarray(weights, squared.dtype) / 2


def _symbol_losses(model: Any, symbols: Array, weights: Any) -> Array:
    logits = jax.nn.log_softmax(model.predictions(symbols[..., :-1]))
    chosen = jnp.take_along_axis(logits, symbols[..., 2:, None], -1)[..., 0]
    return -chosen @ jnp.asarray(weights, chosen.dtype)


def _prompt_losses(model: Any, prompts: Prompts, task: FewShot) -> Array:
    x, y = prompts
    if task.weights is None:
        return _errors(model(x, y[..., :-1]), y[..., -1]) ** 2 / 2
    squared = _errors(model.predictions(x, y[..., :-1]), y) ** 2
    return squared @ jnp.asarray(task.weights_array(), squared.dtype) / 2


def _errors(predicted: Array, wanted: Array) -> Array:
    """Their difference; shapes that only broadcasting makes fit would give the loss of something else."""
    if predicted.shape != wanted.shape:
        raise ValueError(
            f"model: its predictions have shape {predicted.shape}, what they predict has {wanted.shape}; "
            "take a model for the dim of the process"
        )
    return predicted - wanted
