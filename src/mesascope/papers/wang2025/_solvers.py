"""Layers and the regression problems that they solve: a loop in numpy for each, from the loss that it lowers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from mesascope.models import MemoryLayer, SoftmaxSelfAttention

from .._claim import Claim, Finding, Settings, presets
from .._identity import identities, relative_error
from .._memories import Pairs, answers, gates_of, gaussian_pairs, memory_layer

PAPER = "wang2025"
Gates = dict[str, np.ndarray]
Memories = Iterator[np.ndarray]
"""M_1 … M_n, each (m, w)."""


def _gradient(memory: np.ndarray, keys: np.ndarray, values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The gradient of Σ_i ½ ω_i ‖v_i − M k_i‖² in M: central differences of step 1, exact for a polynomial of degree 2."""
    units = np.eye(memory.size).reshape(-1, *memory.shape)

    def losses(memories: np.ndarray) -> np.ndarray:
        errors = values - np.einsum("bmw,nw->bnm", memories, keys)
        return np.asarray(0.5 * np.einsum("n,bnm->b", weights, errors**2))

    return ((losses(memory + units) - losses(memory - units)) / 2).reshape(memory.shape)


def _of_one(memory: np.ndarray, key: np.ndarray, value: np.ndarray) -> np.ndarray:
    """The gradient of ½ ‖v − M k‖²."""
    return _gradient(memory, key[None], value[None], np.ones(1))


def _zero(pairs: Pairs) -> np.ndarray:
    return np.zeros((pairs.values.shape[1], pairs.keys.shape[1]))


def _weighted_step(pairs: Pairs, weights_after: Callable[[int], np.ndarray]) -> Memories:
    """One step of size 1 down the gradient of Σ_i ½ ω_i ‖v_i − M k_i‖², from M = 0."""
    for count in range(1, len(pairs.keys) + 1):
        yield -_gradient(_zero(pairs), pairs.keys[:count], pairs.values[:count], weights_after(count))


def _plain_step(pairs: Pairs, gates: Gates) -> Memories:
    return _weighted_step(pairs, np.ones)


def _fading_step(pairs: Pairs, gates: Gates) -> Memories:
    """Weights fall with every later token: ω_i = Π_{i < s ≤ n} α_s."""
    decay = gates["decay"][:, 0]
    return _weighted_step(pairs, lambda n: np.array([np.prod(decay[i + 1 : n]) for i in range(n)]))


def _stochastic_descent(pairs: Pairs, gates: Gates) -> Memories:
    """One step for every token, down the gradient of ½ ‖v − M k‖²; before it the memory shrinks, if there is a decay."""
    memory = _zero(pairs)
    decays = gates.get("decay", np.ones_like(gates["rate"]))
    for key, value, rate, decay in zip(pairs.keys, pairs.values, gates["rate"], decays, strict=True):
        memory = decay * memory
        memory = memory - rate * _of_one(memory, key, value)
        yield memory


def _proximal_step(pairs: Pairs, gates: Gates) -> Memories:
    """The minimum of ‖M − M'‖² + Σ_j β_j (v_j − M_j k)², row by row, by least squares on stacked equations."""
    memory = _zero(pairs)
    for key, value, rates in zip(pairs.keys, pairs.values, gates["rate"], strict=True):
        rows = []
        for row, target, rate in zip(memory, value, rates, strict=True):
            system = np.concatenate([np.eye(len(key)), np.sqrt(rate) * key[None]])
            rows.append(np.linalg.lstsq(system, np.append(row, np.sqrt(rate) * target), rcond=None)[0])
        memory = np.array(rows)
        yield memory


def _momentum(pairs: Pairs, gates: Gates) -> Memories:
    """Stochastic descent with momentum and weight decay."""
    memory = velocity = _zero(pairs)
    for t, (key, value) in enumerate(zip(pairs.keys, pairs.values, strict=True)):
        rate, share, forgetting = (float(gates[name][t, 0]) for name in ("rate", "momentum", "forgetting"))
        velocity = share * velocity - rate * _of_one(memory, key, value)
        memory = (1 - forgetting) * memory + velocity
        yield memory


def _ridge(pairs: Pairs, gates: Gates) -> Memories:
    """Weighted ridge regression with penalty 1, by least squares on stacked equations."""
    rate, decay, size = gates["rate"][:, 0], gates["decay"][:, 0], pairs.keys.shape[1]
    for count in range(1, len(rate) + 1):
        weights = [rate[i] * np.prod(decay[i + 1 : count]) for i in range(count)]
        root = np.sqrt(weights)[:, None]
        rows = np.concatenate([root * pairs.keys[:count], np.eye(size)])
        right = np.concatenate([root * pairs.values[:count], np.zeros((size, pairs.values.shape[1]))])
        yield np.linalg.lstsq(rows, right, rcond=None)[0].T


_SOLVERS: dict[str, tuple[dict[str, Any], Callable[[Pairs, Gates], Memories]]] = {
    "linear attention: one gradient step": ({"kind": "linear-attention"}, _plain_step),
    "gated linear attention: one step, weighted": (
        {"kind": "gated-linear-attention", "gate": "head"},
        _fading_step,
    ),
    "DeltaNet: stochastic descent": ({"kind": "delta-net"}, _stochastic_descent),
    "gated DeltaNet: stochastic descent that forgets": ({"kind": "gated-delta-net"}, _stochastic_descent),
    "Longhorn: proximal steps": ({"kind": "longhorn"}, _proximal_step),
    "Titans: stochastic descent with momentum": ({"kind": "titans"}, _momentum),
    "MesaNet: weighted ridge regression": ({"kind": "mesa-net"}, _ridge),
}


def _solved(solver: Callable[[Pairs, Gates], Memories], layer: MemoryLayer, pairs: Pairs) -> np.ndarray:
    """What the solver answers to every query after its own token, shape (sequences, n, m)."""
    found = []
    for one in zip(*pairs, strict=True):
        sequence = Pairs(*one)
        memories = solver(sequence, gates_of(layer, sequence.stream))
        found.append([memory @ query for memory, query in zip(memories, sequence.queries, strict=True)])
    return np.array(found)


def _layers(settings: _Cases) -> Finding:
    """Every layer against its solver."""
    errors: dict[str, dict[str, float]] = {name: {} for name in _SOLVERS}
    for key, value, tokens in settings.cases:
        pairs = gaussian_pairs(settings.seed, (settings.sequences, tokens), key, value)
        for name, (rule, solver) in _SOLVERS.items():
            layer = memory_layer(rule, key, value, settings.scale, settings.seed)
            errors[name][f"w = {key}, m = {value}, n = {tokens}"] = relative_error(
                answers(layer, pairs), _solved(solver, layer, pairs)
            )
    return identities(errors, settings.tolerance)


def _weighted_means(pairs: Pairs, weights: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> np.ndarray:
    """The constant c with least Σ_i ω(k_i, q_t) ‖v_i − c‖² over the tokens i ≤ t, for every t."""
    means = np.empty_like(pairs.values)
    for place in np.ndindex(pairs.values.shape[:-1]):
        *sequence, t = place
        keys = pairs.keys[(*sequence, slice(t + 1))]
        found = weights(keys, pairs.queries[place])
        means[place] = np.average(pairs.values[(*sequence, slice(t + 1))], axis=0, weights=found)
    return means


def _gaussian_kernel(keys: np.ndarray, query: np.ndarray) -> np.ndarray:
    return np.asarray(np.exp(-0.5 * np.sum((keys - query) ** 2, -1)))


def _longer_keys_count_more(keys: np.ndarray, query: np.ndarray) -> np.ndarray:
    return np.asarray(np.exp(0.5 * np.sum(keys**2, -1)) * _gaussian_kernel(keys, query))


def _attention(key: int, value: int, bandwidth: float) -> SoftmaxSelfAttention:
    """Softmax attention with the weights exp(k_i · q_t / h²) on tokens (k_t, v_t, q_t)."""
    one = np.eye(2 * key + value)
    return SoftmaxSelfAttention(
        w_k=np.sqrt(key) / bandwidth**2 * one[None, :key],
        w_q=one[None, key + value :],
        w_v=one[None, key : key + value],
        w_p=np.eye(value)[None],
    )


def _unit(vectors: np.ndarray) -> np.ndarray:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True))


def _kernel_regression(settings: _Softmax) -> Finding:
    """Softmax attention against averages with a Gaussian kernel."""
    errors: dict[str, dict[str, float]] = {"unit keys": {}, "free keys, longer ones count more": {}}
    for key, value, tokens in settings.cases:
        free = gaussian_pairs(settings.seed, (settings.sequences, tokens), key, value)
        unit = free._replace(keys=_unit(free.keys), queries=_unit(free.queries))
        weighings = (_gaussian_kernel, _longer_keys_count_more)
        for cases, pairs, weights in zip(errors.values(), (unit, free), weighings, strict=True):
            for bandwidth in settings.scales:
                scaled = pairs._replace(keys=pairs.keys / bandwidth, queries=pairs.queries / bandwidth)
                found = answers(_attention(key, value, bandwidth), pairs)
                cases[f"w = {key}, n = {tokens}, h = {bandwidth:g}"] = relative_error(
                    found, _weighted_means(scaled, weights)
                )
    return identities(errors, settings.tolerance)


class _Cases(Settings):
    cases: tuple[tuple[int, int, int], ...] = ((3, 2, 8), (6, 6, 40))
    sequences: int = 4
    scale: float = 0.5
    seed: int = 0
    tolerance: float = 1e-10


class _Softmax(Settings):
    cases: tuple[tuple[int, int, int], ...] = ((3, 2, 8), (6, 6, 40))
    sequences: int = 4
    scales: tuple[float, ...] = (0.3, 1.0, 3.0)
    seed: int = 0
    tolerance: float = 1e-10


_ROUNDING = """The largest difference of answers, relative to the largest answer, is at most 10⁻¹⁰: rounding in double
    precision"""

CLAIMS = (
    Claim(
        id=f"{PAPER}/layers-are-solvers",
        title="Seven layers with a memory solve regression problems in context",
        evidence="exact",
        origin="paper",
        statement="""Linear attention, DeltaNet, Longhorn, Titans, MesaNet and two gated layers answer every query as a solver
            of regression from keys to values does: gradient step, stochastic descent, proximal steps, ridge
            regression.""",
        source="""wang2025, abstract (arXiv: layers are special cases of test-time regression); which problem belongs to
            which layer is written here from the papers of the layers""",
        settings=presets(_Cases()),
        check=_layers,
        criterion=f"""{_ROUNDING}, of sums of at most 40 tokens and of least squares. Gates differ from token to token; each
            solver is a loop of its own in numpy: minima by least squares, gradients by central differences of the
            loss, which are exact for squares.""",
    ),
    Claim(
        id=f"{PAPER}/softmax-is-kernel-regression",
        title="With unit keys softmax attention is kernel regression",
        evidence="exact",
        origin="paper",
        statement="""Softmax attention with keys and queries of length 1 is the local average of values with a Gaussian
            kernel; with free keys each weight is multiplied by exp(|k|²/2h²), so that longer keys count more.""",
        source="""wang2025, abstract (arXiv v1 and v3: softmax attention as a special case, and a justification of
            normalized queries and keys); the factor is derived here""",
        settings=presets(_Softmax()),
        check=_kernel_regression,
        criterion=f"{_ROUNDING}, of exponents up to some tens for the smallest bandwidth h.",
    ),
)
