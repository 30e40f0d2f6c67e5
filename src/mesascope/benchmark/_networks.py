"""Networks whose algorithm is known: constructed ones, and those whose training is proved to end at it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from mesascope.dynamics import gradient_flow
from mesascope.models import LinearAttention
from mesascope.processes import (
    DiagonalUnitary,
    FewShot,
    Gaussian,
    LinearRegression,
    Rademacher,
    StudentT,
    Uniform,
)
from mesascope.theory import Construction, ahn2023, vonoswald2023, zheng2024

from ._cases import Case, network
from ._data import USUAL, Setting, settings_of
from ._models import NetworkModel

_DIM = 3
_LAWS = (
    (Gaussian(1.0), 2, 8),
    (Gaussian(0.7), 3, 10),
    (Rademacher(), 2, 8),
    (Uniform(), 3, 8),
    (StudentT(9), 2, 10),
)  # with dimensions and numbers of examples
_EIGENVALUES = ((1.0, 1.0), (1.0, 1.0, 1.0), (1.5, 0.5), (2.0, 1.0, 0.5))
_EXAMPLES = 6
_START = 0.1


def constructions(data: Mapping[str, Mapping[str, Setting]], rng: np.random.Generator) -> Iterator[Case]:
    """Yield networks with the weights of theorems: descent, with curvature or a preconditioner, and the mesa layer.

    Source: vonoswald2023, Proposition 1; ahn2023, Lemma 1; vonoswald2024, section on the mesa layer.
    """
    for layers in (1, 2, 3):
        step = float(rng.uniform(0.2, 0.6))
        weights = vonoswald2023.gradient_descent(_DIM, [step] * layers)
        yield _constructed(data, weights, "gradient-descent", step_size=step, steps=layers)
    for layers in (2, 3):
        step, curvature = float(rng.uniform(0.2, 0.4)), float(rng.uniform(0.1, 0.2))
        weights = vonoswald2023.gradient_descent_plus_plus(_DIM, [step] * layers, [curvature] * layers)
        fields = {"step_size": step, "curvature": curvature, "steps": layers}
        yield _constructed(data, weights, "gradient-descent++", **fields)
    matrix = 0.3 * (np.eye(_DIM) + 0.3 * rng.normal(size=(_DIM, _DIM)))
    weights = ahn2023.preconditioned_gradient_descent(matrix[None])
    # the layer's A is the transpose of the learner's R
    yield _constructed(data, weights, "preconditioned-gradient-descent", preconditioner=matrix.T.tolist())
    for penalty in (0.3, 3.0):
        mesa = _mesa_weights(_DIM, 1 / penalty)
        yield network("construction", "tokens", data["tokens"], "mesa-layer", mesa, "ridge", penalty=penalty)


def trained(rng: np.random.Generator) -> Iterator[Case]:
    """Yield ends of the gradient flow of the exact loss, which theorems give.

    Source: zheng2024, Theorem 4.1; ahn2023, Theorem 1, and zhang2024, Theorem 4.1.
    """
    for law, dim, examples in _LAWS:
        yield _trained_on_tokens(DiagonalUnitary(law, dim), examples, rng)
    for eigenvalues in _EIGENVALUES:
        yield _trained_on_prompts(eigenvalues, rng)


def _constructed(
    data: Mapping[str, Mapping[str, Setting]], weights: Construction, learner: str, **fields: Any
) -> Case:
    arrays = weights._asdict()
    return network("construction", "prompts", data["prompts"], "prompt-attention", arrays, learner, **fields)


def _trained_on_tokens(process: DiagonalUnitary, examples: int, rng: np.random.Generator) -> Case:
    settings = settings_of(process, examples)
    a, b = map(float, rng.uniform(0.05, 0.3, 2))
    task = settings[USUAL].task
    end: Any = gradient_flow(LinearAttention.diagonal(process.dim, a, b), process, task).model
    weights = {"w_kq": np.asarray(end.w_kq), "w_pv": np.asarray(end.w_pv)}
    name = f"unitary-{process.law.kind}-{process.dim}"
    step = float(zheng2024.limit_product(process, task))
    return network(
        "trained", name, settings, "token-attention", weights, "gradient-descent", step_size=step, steps=1
    )


def _trained_on_prompts(eigenvalues: tuple[float, ...], rng: np.random.Generator) -> Case:
    covariance = np.diag(eigenvalues)
    process = LinearRegression(len(eigenvalues), covariance=covariance.tolist())
    small = rng.normal(size=covariance.shape)
    product = small @ small.T
    start = ahn2023.preconditioned_gradient_descent(_START * product[None] / np.linalg.norm(product))
    small_start = {"w_kq": start.w_kq, "w_pv": _START * start.w_pv}
    model = NetworkModel(architecture="prompt-attention").predictor(process, small_start)
    layer = gradient_flow(model, process, FewShot(_EXAMPLES)).model.network.layers[0]
    weights = {name: np.asarray(getattr(layer, name))[None] for name in ("w_kq", "w_pv")}
    best = ahn2023.one_layer_preconditioner(covariance, _EXAMPLES)
    learner, fields = "preconditioned-gradient-descent", {"preconditioner": best.tolist()}
    if len(set(eigenvalues)) == 1:
        learner, fields = "gradient-descent", {"step_size": float(best[0, 0]), "steps": 1}
    name = f"prompts-{'-'.join(f'{one:g}' for one in eigenvalues)}"
    settings = settings_of(process, _EXAMPLES)
    return network("trained", name, settings, "prompt-attention", weights, learner, **fields)


def _mesa_weights(dim: int, regularization: float) -> dict[str, np.ndarray]:
    """Return one head that keeps pairs (x_{i−1}, x_i) of tokens (x_i, x_{i−1}), and is asked for x_t."""
    now, before = np.eye(2 * dim)[:dim], np.eye(2 * dim)[dim:]
    factors = {"w_k": before, "w_q": now, "w_v": now, "w_p": np.eye(dim)}
    return {
        **{name: matrix[None] for name, matrix in factors.items()},
        "regularization": np.array([regularization]),
    }
