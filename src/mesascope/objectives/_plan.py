"""The moment plan: the population loss as a short list of matrix contractions with exact coefficients.

For one set partition π of the slots (see `_counts`), the average over the spectrum gives a count N(π,
labels), the average over the initial token a moment m(π) = E Π_{B∈π} x_{j_B}^{|B|} over *distinct*
coordinates j_B. Möbius inversion expresses sums over distinct coordinates by free sums:

    E[term] = Σ_σ Σ_labels c(σ, labels) × (contraction with one free index per block of σ),
    c(σ, labels) = Σ_{π ≤ σ} μ(π, σ) m(π) N(π, labels).

If the coordinates are independent but not identical, m(π) is a product of moment *vectors* Π_B
m_{|B|}[j_B]; a block of σ that is the union of blocks of π of sizes (n_1, n_2, …) then has the weight vector
m_{n_1} m_{n_2} ⋯, its *type* is the sorted tuple of those sizes, and c depends on the types, too. With one
joint moment per π all types are empty.

Every free contraction of the three matrices A = P*P, K, K̄ (two indices each) is one of six forms, after each
matrix is reduced to the indices that it shares with the others (an index of no other matrix is summed; of a matrix
with both indices in one block the diagonal is taken):

    vector       Σ_i   a_i k_i z_i            (scalars count as constant vectors, divided by dim)
    middle-a     Σ_ij  k_i A_ij z_j
    middle-k     Σ_ij  a_i K_ij z_j
    pair-kz      Σ_ij  K_ij Z_ij a            a: matrix, vector along i or j, or scalar
    pair-ak      Σ_ij  A_ij K_ij z            z: vector along i or j, or scalar
    triangle     Σ_ijk A_ij K_jk Z_ki

Terms with K and K̄ exchanged are complex conjugates of terms of these forms (A is Hermitian), so
they are added to them and the real part is taken at the end. The cross term has the same forms with K̄
replaced by the constant 1.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache

import equinox as eqx
import jax
import numpy as np
from jax import Array

from ._counts import counts
from ._partitions import Block, Partition, moebius, refines

Type = tuple[int, ...]
"""Sizes of the distinct-coordinate blocks in the block of a free index; empty without weights."""


@dataclass(frozen=True, order=True)
class Feature:
    """One reduced factor: its reduction and its free indices.

    `kind` is unit, trace, total, diagonal, row-sum, column-sum or matrix; `place` the orientation of a matrix
    ("ij", "ji"), the axis of a vector ("i", "j") or "" for a scalar; `weights` the types of the blocks of σ
    by whose weights it is multiplied, in the order (row, column).
    """

    kind: str
    place: str
    weights: tuple[Type, ...]


Features = tuple[Feature, ...]
"""The three reduced factors of one contraction."""


class Form(eqx.Module):
    """Σ of `coefficients[a, k, z]` × one contraction form; axes run over (feature, label), labels fastest.

    Only the coefficients are arrays: plans with the same features share compiled code.
    """

    coefficients: Array
    name: str = eqx.field(static=True)
    features: tuple[tuple[Feature, ...], ...] = eqx.field(static=True)


Plan = tuple[Form, ...]
Moment = Callable[[Partition], float]
_FACTORS = {"quadratic": ((0, 1), (2, 3), (4, 5)), "cross": ((0, 1), (2, 3))}
_DIGITS = {"quadratic": (2, 2, 2), "cross": (1, 2, 0)}


@cache
def _intervals(term: str) -> tuple[tuple[Partition, tuple[tuple[int, int], ...]], ...]:
    """Return every coarse partition σ with the indices of all π ≤ σ and μ(π, σ)."""
    partitions = counts(term).partitions
    return tuple(
        (
            coarse,
            tuple((i, moebius(fine, coarse)) for i, fine in enumerate(partitions) if refines(fine, coarse)),
        )
        for coarse in partitions
    )


def _types(fine: Partition, block: Block) -> Type:
    return tuple(sorted(len(part) for part in fine if part <= block))


def moment_plan(term: str, schedule: np.ndarray, moment: Moment | None, dim: int) -> Plan:
    """Return the plan of one term.

    Args:
        term: `"quadratic"` or `"cross"`.
        schedule: sums of the context weights, from `schedule_features`.
        moment: m(π) for exchangeable laws; `None` for independent non-identical coordinates (typed plan).
        dim: token dimension d ≥ 1.
    """
    table = counts(term)
    survivors = np.concatenate([table.table, table.polynomial], -1) @ schedule
    moments = np.array([1.0 if moment is None else float(moment(p)) for p in table.partitions])
    labels = tuple(2**width for width in _DIGITS[term])
    gathered: dict[str, dict[Features, np.ndarray]] = defaultdict(
        lambda: defaultdict(lambda: np.zeros(labels))
    )
    for coarse, refinements in _intervals(term):
        exact: dict[tuple[Type, ...], np.ndarray] = {}
        size: dict[tuple[Type, ...], np.ndarray] = {}
        blocks = sorted(coarse, key=min)
        for i, sign in refinements:
            if moments[i] == 0:
                continue
            fine = table.partitions[i]
            types = tuple(_types(fine, b) if moment is None else () for b in blocks)
            contribution = sign * moments[i] * survivors[i]
            exact[types] = exact.get(types, 0) + contribution
            size[types] = size.get(types, 0) + np.abs(contribution)
        for types, row in exact.items():
            # Sums that cancel up to rounding are exactly zero: the counts satisfy integer identities.
            kept = np.where(np.abs(row) > 1e-13 * size[types], row, 0.0)
            if kept.any():
                form, features, coefficients = _reduce(term, blocks, types, kept.reshape(labels), dim)
                gathered[form][features] += coefficients
    return tuple(_form(name, terms, labels) for name, terms in sorted(gathered.items()))


def _form(name: str, terms: dict[Features, np.ndarray], labels: tuple[int, ...]) -> Form:
    features = tuple(tuple(sorted({chosen[f] for chosen in terms})) for f in range(3))
    coefficients = np.zeros(
        [n for side, width in zip(features, labels, strict=True) for n in (len(side), width)]
    )
    for chosen, values in terms.items():
        a, k, z = (side.index(feature) for side, feature in zip(features, chosen, strict=True))
        coefficients[a, :, k, :, z, :] += values
    sizes = [len(side) * width for side, width in zip(features, labels, strict=True)]
    # `jnp.asarray` would be compiled
    return Form(jax.device_put(coefficients.reshape(sizes)), name, features)


@dataclass(frozen=True)
class _Reduced:
    """A factor with its free blocks: (row, column) for a matrix, (block,) for a vector, () for a scalar."""

    kind: str
    blocks: tuple[int, ...]
    weights: tuple[Type, ...]

    def at(self, place: str) -> Feature:
        return Feature(self.kind, place, self.weights)

    def axis(self, i: int) -> Feature:
        """Return this factor as a feature of Σ_ij, where `i` is the block of the first index."""
        if len(self.blocks) == 2:
            return self.at("ij" if self.blocks[0] == i else "ji")
        return self.at("" if not self.blocks else ("i" if self.blocks[0] == i else "j"))

    def other(self, block: int) -> int:
        return self.blocks[1] if self.blocks[0] == block else self.blocks[0]


_UNIT = _Reduced("unit", (), ())


def _reduce(
    term: str, blocks: list[Block], types: tuple[Type, ...], coefficients: np.ndarray, dim: int
) -> tuple[str, Features, np.ndarray]:
    """Return the form, its features and the coefficients of one free contraction, for all labels (a, k, z)."""
    factors = [*_factors(term, blocks, types)]
    if term == "cross":
        factors.append(_UNIT)
    a, k, z = factors
    ranks = tuple(len(f.blocks) for f in factors)
    if term == "quadratic" and _is_conjugate(ranks):
        a, k, z = _conjugate(a), z, k
        # conj(A_{α'α}) = A_{αα'} transposed: the digits of a's label are exchanged, and so are k and z
        coefficients = coefficients[[0, 2, 1, 3]].swapaxes(1, 2)
        ranks = (ranks[0], ranks[2], ranks[1])
    matrices = tuple(r == 2 for r in ranks)
    if not any(matrices):
        return "vector", (a.at(""), k.at(""), z.at("")), coefficients / (1 if any(ranks) else dim)
    if matrices == (True, False, False):
        return "middle-a", (a.axis(k.blocks[0]), k.at(""), z.at("")), coefficients
    if matrices == (False, True, False):
        return "middle-k", (a.at(""), k.axis(a.blocks[0]), z.at("")), coefficients
    if matrices == (True, True, False):
        return "pair-ak", tuple(f.axis(a.blocks[0]) for f in (a, k, z)), coefficients
    if matrices == (False, True, True) or len({*a.blocks, *k.blocks, *z.blocks}) == 2:
        return "pair-kz", tuple(f.axis(k.blocks[0]) for f in (a, k, z)), coefficients
    (j,) = set(a.blocks) & set(k.blocks)
    i, last = a.other(j), k.other(j)
    return "triangle", (a.axis(i), k.axis(j), z.axis(last)), coefficients


def _factors(term: str, blocks: list[Block], types: tuple[Type, ...]) -> Iterable[_Reduced]:
    where = {slot: n for n, block in enumerate(blocks) for slot in block}
    weighted: set[int] = set()
    for row, column in _FACTORS[term]:
        ends = (where[row], where[column])
        inner = {row, column}
        shared = [n for n in dict.fromkeys(ends) if not blocks[n] <= inner]
        # the weight of a block multiplies only the first factor that has an index in it
        weights = tuple(() if n in weighted else types[n] for n in dict.fromkeys(ends))
        weighted.update(ends)
        if ends[0] == ends[1]:
            kind = "diagonal" if shared else "trace"
        elif len(shared) == 2:
            kind = "matrix"
        elif not shared:
            kind = "total"
        else:
            kind = "row-sum" if shared[0] == ends[0] else "column-sum"
        yield _Reduced(kind, tuple(shared), weights)


def _is_conjugate(ranks: tuple[int, ...]) -> bool:
    """Return whether K̄ is a matrix and K is not: such a term is the conjugate of one in which K is."""
    return ranks[1] < 2 and ranks[2] == 2


def _conjugate(a: _Reduced) -> _Reduced:
    """Return the factor with row and column exchanged."""
    kind = {"row-sum": "column-sum", "column-sum": "row-sum"}.get(a.kind, a.kind)
    return _Reduced(kind, a.blocks[::-1], a.weights[::-1])
