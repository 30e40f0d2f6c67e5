"""Descriptions of the benchmark's models, and the models that they describe."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np
from pydantic import AfterValidator, BaseModel, Field, model_validator

from mesascope.learners import Learner, predictions, prompt_examples, sequence_examples
from mesascope.models import (
    LastEntry,
    LinearAttention,
    LinearAttentionStack,
    LinearSelfAttention,
    MesaLayer,
    PromptModel,
    StackedPrompt,
)
from mesascope.probes import EveryPosition
from mesascope.records import PlainMapping
from mesascope.specs import SpecError, error_path, known_kinds, unknown

from ._data import outputs
from ._decoys import DECOYS

Arrays = Mapping[str, np.ndarray]
Architecture = Literal["prompt-attention", "token-attention", "mesa-layer"]


def _known_decoy(name: str) -> str:
    if name not in DECOYS:
        raise ValueError(unknown("decoy", name, tuple(DECOYS)))
    return name


class LearnerModel(BaseModel, frozen=True, extra="forbid"):
    """A learner with known hyperparameters.

    Attributes:
        learner: its id.
        hyperparameters: those that are not of the process.
    """

    kind: Literal["learner"] = "learner"
    learner: str
    hyperparameters: PlainMapping

    def predictor(self, process: Any, weights: Arrays) -> EveryPosition:
        """Return the model."""
        one = learner_for(process, self.learner, self.hyperparameters)
        return _AtEveryPosition(lambda *arrays: _answers(one, process, arrays))


class MixtureModel(BaseModel, frozen=True, extra="forbid"):
    """A convex mixture of learners, in predictions or in probabilities of symbols.

    Attributes:
        parts: the learners.
        weights: their weights, of sum 1.
    """

    kind: Literal["mixture"] = "mixture"
    parts: Annotated[tuple[LearnerModel, ...], Field(min_length=1)]
    weights: tuple[float, ...]

    @model_validator(mode="after")
    def _one_weight_a_part(self) -> Self:
        if len(self.weights) != len(self.parts):
            raise SpecError(
                f"must be {len(self.parts)} weights, one a part, got {len(self.weights)}", "weights"
            )
        return self

    def predictor(self, process: Any, weights: Arrays) -> EveryPosition:
        """Return the model."""
        parts = [part.predictor(process, weights).function for part in self.parts]

        def every(*arrays: np.ndarray) -> np.ndarray:
            found = np.stack([part(*arrays) for part in parts])
            return np.asarray(np.einsum("k,k...->...", np.array(self.weights), found))

        return _AtEveryPosition(every)


class DecoyModel(BaseModel, frozen=True, extra="forbid"):
    """A function that is none of the learners.

    Attributes:
        name: one of `DECOYS`.
    """

    kind: Literal["decoy"] = "decoy"
    name: Annotated[str, AfterValidator(_known_decoy)]

    def predictor(self, process: Any, weights: Arrays) -> EveryPosition:
        """Return the model."""
        decoy = DECOYS[self.name]

        def every(*arrays: np.ndarray) -> np.ndarray:
            x, y, queries = map(np.asarray, _in_context(process, arrays))
            found = [decoy(x[:, :n], y[:, :n], queries[:, n]) for n in range(queries.shape[1])]
            return _as_model(process, np.stack(found, 1))

        return _AtEveryPosition(every)


class NetworkModel(BaseModel, frozen=True, extra="forbid"):
    """Layers with given weights.

    - `prompt-attention`: linear attention on tokens (x_i, y_i), (x_q, 0), sums over the N examples divided by N, residual
      connections; the prediction is minus the last entry of the query's token. Weights `w_kq`, `w_pv`
      (layers, 1, d + 1, d + 1).
    - `token-attention`: one layer on tokens (x_i, x_{i−1}), sums divided by t − 1. Weights `w_kq` (2d, 2d), `w_pv` (d, 2d).
    - `mesa-layer`: one head on the same tokens. Weights `w_k`, `w_q`, `w_v` (1, d, 2d), `w_p` (1, d, d),
      `regularization` (1,): λ.
    """

    kind: Literal["network"] = "network"
    architecture: Architecture

    def predictor(self, process: Any, weights: Arrays) -> Any:
        """Return the model.

        Raises:
            ValueError: the weights do not have these names and shapes, or are not finite numbers in double precision.
        """
        architecture = _ARCHITECTURES[self.architecture]
        _refuse_other_weights(weights, architecture, outputs(process)[0])
        return architecture.build(**weights)


AnyModel = Annotated[LearnerModel | MixtureModel | DecoyModel | NetworkModel, Field(discriminator="kind")]


class _AtEveryPosition(EveryPosition):
    """A function of whole contexts that gives the predictions after every number of examples."""

    def every(self, *arrays: np.ndarray) -> np.ndarray:
        """Return the predictions at all positions."""
        return np.asarray(self.function(*arrays))


def disturbed(model: EveryPosition, size: float, process: Any) -> EveryPosition:
    """Return a model whose predictions differ from those of another by a function of the context that no learner has.

    The root mean square of the difference is `size` times that of the prediction, or of the logarithm of a probability.

    Args:
        model: the other model.
        size: the relative size.
        process: the process of the data.
    """

    def every(*arrays: np.ndarray) -> np.ndarray:
        exact = model.function(*arrays)
        if process.data == "symbols":
            odds = exact * np.exp(np.sqrt(2) * size * _waves(arrays, exact.shape))
            return np.asarray(odds / odds.sum(-1, keepdims=True))
        lengths = (
            np.abs(exact) if exact.ndim == 2 else np.sqrt(np.mean(np.abs(exact) ** 2, -1, keepdims=True))
        )
        return np.asarray(exact + np.sqrt(2) * size * lengths * _waves(arrays, exact.shape))

    return _AtEveryPosition(every)


def _waves(arrays: tuple[np.ndarray, ...], shape: tuple[int, ...]) -> np.ndarray:
    """Return cosines of a fast phase, which depends on all that stands at or before a position, shape (batch, t, …)."""
    inputs = np.asarray(arrays[0], complex if np.iscomplexobj(arrays[0]) else float)
    seen = np.abs(inputs.reshape(*inputs.shape[:2], -1)).sum(-1)
    if len(arrays) == 2:
        seen[:, 1:] += np.abs(arrays[1])
    rate = 1e4 if inputs.ndim == 3 else 0.7  # symbols are small integers
    order = np.arange(1, shape[1] + 1) if inputs.ndim == 2 else 1.0
    phase = rate * np.cumsum(seen * order, 1)
    return np.cos(phase if len(shape) == 2 else phase[..., None] + 7.0 * np.arange(shape[2]))


def learner_for(process: Any, name: str, hyperparameters: Mapping[str, Any]) -> Learner:
    """Return a learner, with those of its hyperparameters that the process has.

    Raises:
        ValueError: there is no such learner, or it does not take the hyperparameters.
    """
    kind = known_kinds("learner").get(name)
    if kind is None:
        raise ValueError(
            f"learner {name!r} is unknown here; use the version of mesascope that wrote the benchmark"
        )
    learner: Learner = kind(**{**not_fitted(kind, process), **hyperparameters})
    return learner


def not_fitted(kind: type[Learner], process: Any) -> dict[str, Any]:
    """Return the hyperparameters of a learner that are fixed, or those of the process."""
    how = kind.fitting
    named = {
        field: getattr(process, attribute, None)
        for field, attribute in how.of_process + how.of_process_if_any
    }
    return {**dict(how.fixed), **{field: value for field, value in named.items() if value is not None}}


def _answers(learner: Learner, process: Any, arrays: tuple[np.ndarray, ...]) -> np.ndarray:
    with error_path(type(learner).__name__):  # hyperparameters that do not fit the process
        found = predictions(learner, *_in_context(process, arrays))
    return _as_model(process, np.asarray(found))


def _in_context(process: Any, arrays: tuple[np.ndarray, ...]) -> Any:
    """Return contexts as examples and queries."""
    if len(arrays) == 2:
        return prompt_examples(*arrays)
    tokens = arrays[0]
    return sequence_examples(jax.nn.one_hot(tokens, process.vocabulary) if tokens.ndim == 2 else tokens)


def _as_model(process: Any, found: np.ndarray) -> np.ndarray:
    """Return predictions (batch, t, m) in the shape that models give: labels are numbers."""
    return found[..., 0] if process.data == "prompts" else found


def _prompt_attention(w_kq: np.ndarray, w_pv: np.ndarray) -> PromptModel:
    layers = [LinearSelfAttention(kq, pv, "t-1", "examples") for kq, pv in zip(w_kq, w_pv, strict=True)]
    return PromptModel(StackedPrompt(w_kq.shape[-1] - 1), LinearAttentionStack(layers), LastEntry(-1))


def _mesa_layer(regularization: np.ndarray, **factors: np.ndarray) -> EveryPosition:
    layer = MesaLayer(**factors, regularization=regularization.item())

    def every(tokens: np.ndarray) -> np.ndarray:
        before = jnp.concatenate([jnp.zeros_like(tokens[:, :1]), tokens[:, :-1]], 1)
        return np.asarray(layer(jnp.concatenate([tokens, before], -1)))

    return _AtEveryPosition(every)


class _Architecture(NamedTuple):
    """How a network is built of weights, and their shapes by the dimension of tokens and the number of layers."""

    build: Callable[..., Any]
    shapes: Callable[[int, int], dict[str, tuple[int, ...]]]


_ARCHITECTURES = {
    "prompt-attention": _Architecture(
        _prompt_attention, lambda dim, layers: dict.fromkeys(("w_kq", "w_pv"), (layers, 1, dim + 1, dim + 1))
    ),
    "token-attention": _Architecture(
        lambda w_kq, w_pv: LinearAttention(w_kq=w_kq, w_pv=w_pv),
        lambda dim, _: {"w_kq": (2 * dim, 2 * dim), "w_pv": (dim, 2 * dim)},
    ),
    "mesa-layer": _Architecture(
        _mesa_layer,
        lambda dim, _: {
            **dict.fromkeys(("w_k", "w_q", "w_v"), (1, dim, 2 * dim)),
            "w_p": (1, dim, dim),
            "regularization": (1,),
        },
    ),
}


def _refuse_other_weights(weights: Arrays, architecture: _Architecture, dim: int) -> None:
    first = next(iter(weights.values()), np.zeros(()))
    wanted = architecture.shapes(dim, max(1, first.shape[0] if first.ndim else 0))
    found = {name: array.shape for name, array in weights.items()}
    if found != wanted:
        raise ValueError(f"its weights must have the shapes {_shown(wanted)}, got {_shown(found)}")
    for name, array in weights.items():
        if array.dtype != np.float64 or not np.isfinite(array).all():
            raise ValueError(f"{name}: must be finite numbers in float64, got others, or {array.dtype}")


def _shown(shapes: Mapping[str, tuple[int, ...]]) -> str:
    return ", ".join(f"{name} {shape}" for name, shape in sorted(shapes.items())[:8]) or "none"
