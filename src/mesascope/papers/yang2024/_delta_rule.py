"""The delta rule overwrites what linear attention adds, and has a form of matrix products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mesascope.theory import yang2024 as theory

from .._claim import Claim, Finding, Settings, presets
from .._identity import identities, identity, relative_error
from .._memories import Pairs, answers, gates_of, gaussian_pairs, memory_layer
from .._rotations import rotation

PAPER = "yang2024"
Answer = Callable[[np.ndarray, float], np.ndarray]
"""The values of a key (n, m) and the rate → what is answered (m,)."""
_ONE = 1 - 1e-15
"""A rate of 1: gates are less than 1, by at least a rounding."""


def _last(values: np.ndarray, rate: float) -> np.ndarray:
    return np.asarray(values[-1])


def _moving_average(values: np.ndarray, rate: float) -> np.ndarray:
    """β Σ_i (1 − β)^{n−i} v_i."""
    return np.asarray(rate * (1 - rate) ** np.arange(len(values))[::-1] @ values)


def _sum(values: np.ndarray, rate: float) -> np.ndarray:
    return np.asarray(values.sum(0))


def _written(settings: _Repeated, dim: int, value: int, tokens: int) -> tuple[Pairs, np.ndarray]:
    """Tokens whose keys are orthonormal, most of them several times, and which of them each token has.

    Every query is the key of its own token, so that the answer is what has been written under it so far.
    """
    rng = np.random.default_rng([settings.seed, dim, tokens])
    which = rng.integers(dim, size=tokens)
    keys = rotation(rng, dim)[which]
    return Pairs(keys, rng.normal(size=(tokens, value)), keys), which


def _looked_up(pairs: Pairs, which: np.ndarray, answer: Answer, rate: float) -> np.ndarray:
    """What a table from keys to the list of their values answers, shape (n, m)."""
    table: dict[int, list[np.ndarray]] = {}
    found = []
    for number, value in zip(which.tolist(), pairs.values, strict=True):
        table.setdefault(number, []).append(value)
        found.append(answer(np.array(table[number]), rate))
    return np.array(found)


def _repeated_keys(settings: _Repeated) -> Finding:
    """Layers against tables."""
    delta = {"kind": "delta-net"}
    rules: dict[str, tuple[dict[str, Any], Answer]] = {
        "delta rule, β = 1: the last value": ({**delta, "rate": _ONE}, _last),
        "delta rule, β < 1: a moving average": ({**delta, "rate": settings.rate}, _moving_average),
        "linear attention: the sum": ({"kind": "linear-attention"}, _sum),
    }
    errors: dict[str, dict[str, float]] = {name: {} for name in rules}
    for dim, value, tokens in settings.cases:
        pairs, which = _written(settings, dim, value, tokens)
        for name, (rule, answer) in rules.items():
            found = answers(memory_layer(rule, dim, value, 0.0, 0), pairs)
            expected = _looked_up(pairs, which, answer, settings.rate)
            errors[name][f"w = {dim}, m = {value}, n = {tokens}"] = relative_error(found, expected)
    return identities(errors, settings.tolerance)


def _chunks(settings: _Chunks) -> Finding:
    """The recurrence of the layer against matrix products, for several lengths of chunks."""
    errors: dict[str, float] = {}
    for dim, value, tokens in settings.cases:
        pairs = gaussian_pairs(settings.seed, (tokens,), dim, value)
        layer = memory_layer({"kind": "delta-net"}, dim, value, settings.scale, settings.seed)
        found, rates = answers(layer, pairs), gates_of(layer, pairs.stream)["rate"][:, 0]
        for size in settings.sizes:
            expected = theory.chunkwise(*pairs, rates, size)
            errors[f"w = {dim}, m = {value}, n = {tokens}, chunks of {size}"] = relative_error(
                found, expected
            )
    return identity(errors, settings.tolerance)


class _Repeated(Settings):
    cases: tuple[tuple[int, int, int], ...] = ((1, 1, 5), (4, 3, 30), (8, 8, 60))
    rate: float = 0.6
    seed: int = 0
    tolerance: float = 1e-12


class _Chunks(Settings):
    cases: tuple[tuple[int, int, int], ...] = ((3, 2, 20), (8, 8, 100))
    sizes: tuple[int, ...] = (1, 7, 16, 100)
    scale: float = 0.5
    seed: int = 0
    tolerance: float = 1e-10


CLAIMS = (
    Claim(
        id=f"{PAPER}/repeated-keys",
        title="The delta rule overwrites the value of a key, linear attention adds",
        evidence="exact",
        origin="authors' code",
        statement="""Asked for one of orthonormal keys, the delta rule answers with its last value for β = 1 and with a moving
            average of its values for β < 1, linear attention with their sum.""",
        source="""yang2024, recurrence in `fla/ops/delta_rule/naive.py:12-37` of the authors' program at bc3b101; what it
            gives for repeated keys is derived here""",
        settings=presets(_Repeated()),
        check=_repeated_keys,
        criterion="""The layers answer as a table from keys to their values does, to 10⁻¹² of the largest answer: rounding in
            double precision, and of a gate that is 1 − 10⁻¹⁵ for β = 1.""",
    ),
    Claim(
        id=f"{PAPER}/chunkwise-form",
        title="The chunkwise form of the delta rule is its recurrence",
        evidence="exact",
        origin="authors' code",
        statement="""For chunks of any length the chunkwise form of the delta rule, products of matrices and the inverse of a
            triangular one, gives the answers of its recurrence over tokens.""",
        source="""yang2024, `fla/ops/delta_rule/naive.py:40-70` of the authors' program at bc3b101, there for lengths that
            are multiples of the chunk""",
        settings=presets(_Chunks()),
        check=_chunks,
        criterion="""The largest difference, relative to the largest answer, is at most 10⁻¹⁰: rounding in double precision of
            triangular systems of up to 100 tokens. The layer runs the recurrence in JAX; the chunkwise form is
            written in NumPy.""",
    ),
)
