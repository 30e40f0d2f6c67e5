"""Samples of a process for a task, and their losses by definition."""

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
    LowRankLinearSelfAttention,
    Projected,
    PromptModel,
    SequenceModel,
    WithPositions,
)
from mesascope.processes import DiagonalUnitary, FewShot, NextToken, PromptProcess, Prompts
from mesascope.specs import show

from ._engine import require_moments

Task = NextToken | FewShot
"""The weights of predictions, in sequences or in prompts."""
PRECISIONS = ("float32", "float64", "bfloat16")
"""Names of the supported precisions of samples and models."""
_MAX_BYTES = 2**32
_TRIAL_BATCH = 5  # different from the length of a trial, so that exchanged axes are detected


def check_task(process: Any, task: Any) -> None:
    """Refuse a task that does not fit the samples of the process.

    Raises:
        TypeError: `task` is not a task, the process has no sampler, or one is of sequences and the other of prompts.
    """
    if not isinstance(task, Task):
        raise TypeError(
            f"task: must be a task such as NextToken(horizon=100) or FewShot(examples=20), got {show(task)}"
        )
    if not hasattr(process, "sample"):
        raise TypeError(
            f"process: must have a sampler, such as DiagonalUnitary(law, dim), got {show(process)}"
        )
    prompts = isinstance(process, PromptProcess)
    if prompts == isinstance(task, NextToken):
        drawn = "prompts, not sequences; use FewShot(examples=…)"
        drawn = drawn if prompts else "sequences, not prompts; use NextToken(horizon=…)"
        raise TypeError(f"task: {type(process).__name__} draws {drawn}")


def check_model_reads(model: Any, process: Any) -> None:
    """Refuse a model whose loss on this process cannot be computed or would be meaningless.

    Only the shapes and types of the loss of one short sample are computed.

    Raises:
        TypeError: `model` is not a model; one of model and process is of sequences and the other of prompts; a model of
            real tokens with complex tokens.
        ValueError: model and process have different dimensions or numbers of symbols; the samples of the process have a
            wrong shape.
        MomentError: linear attention on `DiagonalUnitary` with a law without moments of order 6: even with one layer the
            loss is infinite. (With L layers it has degree 2·3^L in the initial token.)
    """
    if not hasattr(model, "predictions"):
        raise TypeError(
            "model: must be a model with floating-point weights and with predictions, such as linear_transformer(…) or an "
            f"eqx.Module of your own, got {show(model)}"
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
        # a finite sample has a finite mean even if the loss is infinite
        require_moments(process.law, process.dim)
    # the shortest possible length, since the number of learned positions is limited
    length = 1 if prompts else getattr(process, "horizon", 3)  # of a `MarkovTree` it is given
    task = FewShot(length) if prompts else NextToken(length)
    sample = jax.eval_shape(lambda: cast(process.sample(jax.random.key(0), length, _TRIAL_BATCH), "float32"))
    try:
        eqx.filter_eval_shape(lambda m, x: sample_losses(cast(m, "float32"), x, task), model, sample)
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"model: {reader} does not read what {source} draws: {error}") from error
    if hasattr(process, "vocabulary"):
        _check_symbols(model, process, sample)


def _check_symbols(model: Any, process: Any, sample: Any) -> None:
    """Refuse a model with another number of symbols, since compiled code clips indices silently."""
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
    """Return whether the loss is a polynomial in the tokens: for one layer of linear attention, or a stack of them."""
    if isinstance(model, LinearAttentionModel):
        return True
    network = model.network if isinstance(model, SequenceModel) else None
    linear = (
        LinearSelfAttention | LowRankLinearSelfAttention | FactoredLinearSelfAttention | DiagonalSelfAttention
    )
    return isinstance(network, LinearAttentionStack) and all(
        isinstance(layer, linear) for layer in network.layers
    )


def task_length(task: Task) -> int:
    """Return the length of a sample for `process.sample`: horizon T or number of examples N."""
    return task.horizon if isinstance(task, NextToken) else task.examples


def refuse_large_batches(process: Any, task: Task, batch: int) -> None:
    """Refuse batches whose tokens take more than 4 GiB.

    Raises:
        ValueError: the tokens take more than 4 GiB.
    """
    size = 16 * batch * task_length(task) * int(getattr(process, "dim", 1))
    if size > _MAX_BYTES:
        raise ValueError(
            f"{show(batch)} samples for {task.describe()} take {size / 2**30:.3g} GiB at once; take a smaller batch or fewer "
            "tasks, or shorter samples"
        )


def cast(tree: Any, precision: str) -> Any:
    """Return a model or sample with floating-point arrays in this precision, complex arrays in complex64 or complex128."""
    real = jnp.dtype(precision)

    def one(leaf: Any) -> Any:
        if not eqx.is_inexact_array(leaf):
            return leaf
        return leaf.astype(jnp.result_type(real, jnp.complex64) if jnp.iscomplexobj(leaf) else real)

    return jax.tree.map(one, tree)


def sample_losses(model: Any, sample: Any, task: Task) -> Array:
    """Return the loss of every sequence or prompt.

    - `NextToken`, continuous tokens: Σ_t w_t ½‖ŷ_t − x_{t+1}‖²;
    - `NextToken`, discrete tokens: Σ_t w_t (−log p_t(x_{t+1})) in nats, p_t = softmax of the predicted logits;
    - `FewShot`: Σ_t w_t ½(ŷ_{t+1} − y_{t+1})².

    Args:
        model: a model with `predictions`, such as `SequenceModel` or `PromptModel`.
        sample: tokens (batch, T, d), symbols (batch, T) or `Prompts`.
        task: the weights of predictions.

    Returns:
        Shape (batch,), real.

    Raises:
        ValueError: predictions and their targets have different shapes.
    """
    if isinstance(task, FewShot):
        return _prompt_losses(model, sample, task)
    if not jnp.issubdtype(sample.dtype, jnp.inexact):
        return _symbol_losses(model, sample, task.weights_array())
    return sequence_losses(model, sample, task.weights_array())


def sequence_losses(model: Any, tokens: Array, weights: Any) -> Array:
    """Return Σ_t w_t ½‖ŷ_t − x_{t+1}‖² of every sequence.

    Args:
        model: a model with `predictions(tokens (…, t, d)) → (…, t − 1, d)`, entry t − 2 predicting x_{t+1}.
        tokens: x_1 … x_T, shape (batch, T, d).
        weights: w_2 … w_{T−1}, shape (T − 2,).

    Returns:
        Shape (batch,), real.

    Raises:
        ValueError: predictions and the predicted tokens have different shapes.
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
    """Return predictions minus targets; broadcasting is refused, since it would hide wrong shapes."""
    if predicted.shape != wanted.shape:
        raise ValueError(
            f"model: its predictions have shape {predicted.shape}, their targets have {wanted.shape}; "
            "take a model for the dim of the process"
        )
    return predicted - wanted
