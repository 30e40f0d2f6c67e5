"""Which flows ended at the same critical point.

A layer of linear attention acts through S = Σ_h W^PV_h ⊗ W^KQ_h alone, and so does its loss. S does not change under
(W^KQ, W^PV) → (sW^KQ, W^PV/s), and along a ray {cS : c > 0} the loss is a parabola: it has one critical point there, besides
c = 0. So two ends are the same critical point when S/‖S‖ is the same, or both predict nothing, and ends of two objectives
(two horizons, two scales of a law) can be compared at all.
"""

from __future__ import annotations

from itertools import permutations, product

import numpy as np

_CLOSE = 0.05
"""Distance of S/‖S‖ below which two ends are linked; two sign patterns are √(8(d − 1))/d apart or more."""
_CHUNK = 256
_NOTHING = 1e-9
_OFF_PATTERN, _NEAR = 1e-2, 0.5
_MAX_DIM, _MAX_POINTS = 6, 256

Heads = tuple[np.ndarray, np.ndarray]
"""Merged weights W^KQ, shape (…, heads, 2d, 2d), and W^PV, shape (…, heads, d, 2d)."""


def same_ends(heads: Heads, nothing: np.ndarray) -> np.ndarray:
    """The number of the critical point that every flow reached, from 0 on, the most frequent first.

    Points are one when a chain of ends leads from one to the other, each within a distance 0.05 of the next: a branch of
    critical points that moves with the parameters of a diagram is one, and so is a connected set of them.

    Args:
        heads: ends of n flows.
        nothing: which of them predict zero, shape (n,).
    """
    kq, pv = _unit(heads)
    numbers = np.full(len(kq), -1)
    numbers[nothing] = 0
    found = int(nothing.any())
    for first in range(len(kq)):
        if numbers[first] < 0:
            _spread(numbers, first, found, (kq, pv))
            found += 1
    counts = np.bincount(numbers, minlength=found)
    rank = np.argsort(np.argsort(-counts, kind="stable"), kind="stable")
    return np.asarray(rank[numbers])


def _spread(numbers: np.ndarray, first: int, number: int, unit: Heads) -> None:
    """Give a number to all ends that a chain connects with the first."""
    front = np.array([first])
    numbers[front] = number
    while len(front):
        free = np.flatnonzero(numbers < 0)
        near = np.zeros(len(free), bool)
        for part in np.array_split(front, -(-len(front) // _CHUNK)):
            near |= (distances((unit[0][part], unit[1][part]), (unit[0][free], unit[1][free])) < _CLOSE).any(
                0
            )
        front = free[near]
        numbers[front] = number


def distances(left: Heads, right: Heads) -> np.ndarray:
    """‖S − S'‖ for every pair of layers with ‖S‖ = 1, shape (n, m)."""
    kq = np.einsum("ngij,mhij->nmgh", left[0].conj(), right[0], optimize=True)
    pv = np.einsum("ngij,mhij->nmgh", left[1].conj(), right[1], optimize=True)
    return np.sqrt(np.maximum(2 - 2 * (kq * pv).sum((2, 3)).real, 0))


def _unit(heads: Heads) -> Heads:
    """The layers with S divided by its norm; those without a direction stay."""
    kq, pv = heads
    gram = np.einsum("ngij,nhij->ngh", kq.conj(), kq) * np.einsum("ngij,nhij->ngh", pv.conj(), pv)
    norm = np.sqrt(np.abs(gram.sum((1, 2))))[:, None, None, None]
    return kq / np.where(norm > 0, norm, 1), pv


def predict_nothing(loss: np.ndarray, loss_zero: np.ndarray) -> np.ndarray:
    """Which ends are no better than weights of zero: at a critical point other than these the loss is less."""
    return np.abs(loss - loss_zero) <= _NOTHING * loss_zero


def up_to_symmetry(heads: Heads, nothing: np.ndarray) -> np.ndarray:
    """The number of every critical point, the same for points that differ by signs and order of the coordinates only.

    Every number is the least of those that became one. Beyond d = 6, or 256 points, nothing is compared: NaN.

    Args:
        heads: of one representative of every critical point.
        nothing: which of them predict zero.
    """
    kq, pv = _unit(heads)
    count, dim = len(pv), pv.shape[-2]
    if dim > _MAX_DIM or count > _MAX_POINTS:
        return np.full(count, np.nan)
    numbers = np.arange(count, dtype=float)
    leaders: list[int] = []
    turns = [_turns(dim, signs) for signs in product((1.0, -1.0), repeat=dim - 1)]
    for point in range(count):
        same = [one for one in leaders if nothing[one] == nothing[point]]
        hit = next((one for one in same if nothing[point] or _turned((kq, pv), one, point, turns)), None)
        if hit is None:
            leaders.append(point)
        else:
            numbers[point] = hit
    return numbers


def _turns(dim: int, signs: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray]:
    """All orders of the coordinates, and one pattern of signs with the first +: −1 for all has no effect."""
    return np.array(list(permutations(range(dim)))), np.array([1.0, *signs])


def _turned(unit: Heads, one: int, point: int, turns: list[tuple[np.ndarray, np.ndarray]]) -> bool:
    """Whether some signed permutation turns one point into the other."""
    kq, pv = (weights[[one, point]] for weights in unit)
    if not np.allclose(
        np.sort(np.abs(_entries(kq, pv)[0])), np.sort(np.abs(_entries(kq, pv)[1])), atol=_CLOSE
    ):
        return False
    dim = pv.shape[-2]
    for orders, signs in turns:
        both, twice = np.concatenate([orders, orders + dim], 1), np.tile(signs, 2)
        rows = both[:, :, None], both[:, None, :]
        turned_kq = (kq[0] * twice[:, None] * twice)[:, *rows].swapaxes(0, 1)
        turned_pv = (pv[0] * signs[:, None] * twice)[:, orders[:, :, None], both[:, None, :]].swapaxes(0, 1)
        if (distances((turned_kq, turned_pv), (kq[1:], pv[1:])) < _CLOSE).any():
            return True
    return False


def _entries(kq: np.ndarray, pv: np.ndarray) -> np.ndarray:
    """Entries of two layers with ‖S‖ = 1 that signs and orders only permute, up to sign: a slice of S of the first head."""
    size = np.linalg.norm(pv[:, 0], axis=(1, 2))[:, None, None]
    return np.concatenate([(kq[:, 0] * size).reshape(2, -1), (pv[:, 0] / size).reshape(2, -1)], 1)


def typical_ends(heads: Heads, nothing: np.ndarray, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For every critical point the place of a typical end, and its name.

    Names are "zero", "diagonal + + −" by the signs of the diagonal of W^PV, the first +, "near-diagonal + + −" where other
    entries are up to half as large, or "point 3"; what most of the ends are is typical.
    """
    kq, pv = _unit(heads)
    words = np.array(["zero" if none else _signs(*one) for *one, none in zip(kq, pv, nothing, strict=True)])
    places, names = [], []
    for number in range(numbers.max() + 1):
        members = np.flatnonzero(numbers == number)
        kinds, counts = np.unique(words[members], return_counts=True)
        most = kinds[np.argmax(counts)]
        places.append(members[words[members] == most][0])
        names.append(most or f"point {number}")
    twice = {name for name in names if names.count(name) > 1}
    return np.array(places), np.array(
        [f"{name} ({n})" if name in twice else name for n, name in enumerate(names)]
    )


def _signs(kq: np.ndarray, pv: np.ndarray) -> str:
    """Signs of the diagonal of W^PV, the first of them +, if the two diagonals of one head dominate; else empty."""
    dim = pv.shape[-2]
    if len(pv) > 1:
        return ""
    off = pv[0].copy(), kq[0].copy()
    np.fill_diagonal(off[0][:, :dim], 0)
    np.fill_diagonal(off[1][dim:, :dim], 0)
    outside = max(
        np.abs(part).max() / np.abs(all_).max() for part, all_ in zip(off, (pv[0], kq[0]), strict=True)
    )
    if outside > _NEAR:
        return ""
    diagonal = np.diag(pv[0, :, :dim]).real
    small = np.abs(diagonal) <= _OFF_PATTERN * np.abs(diagonal).max()
    if small.all():
        return ""
    turned = diagonal * np.sign(diagonal[~small][0])
    signs = ["0" if tiny else "+" if value > 0 else "−" for value, tiny in zip(turned, small, strict=True)]
    return f"{'diagonal' if outside <= _OFF_PATTERN else 'near-diagonal'} {' '.join(signs)}"
