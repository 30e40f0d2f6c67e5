"""The critical points of an objective that are found from many starts."""

from __future__ import annotations

from collections import Counter
from typing import Any, Generic, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy  # its parts are imported where they are first used: half a second, which few programs need
from jax import Array

from mesascope.core import below_one, integer_at_least
from mesascope.models import LinearAttentionModel, PromptModel
from mesascope.objectives import Engine, prompt_heads
from mesascope.processes import FewShot, NextToken
from mesascope.records import Printed

from .._parameters import Mask
from ._conserved import symmetric_generators
from ._critical_point import loss_unit
from ._landscape import Landscape, landscape_of, natural_size
from ._newton import NULL, newton
from ._stability import Stability, stability_at
from ._symmetry import Symmetries, find_symmetries

Model = TypeVar("Model", bound=LinearAttentionModel | PromptModel)
_SMALLEST, _LARGEST = 0.05, 3.0
_ROUNDS, _FOLLOWED, _POLISHED, _RADIUS, _NUDGE = 4, 40, 30, 0.3, 0.1
_BALANCINGS, _LONGEST, _BALANCED = 30, 1.0, 1e-14
_PRINTED = 6  # losses
_SAME_LOSS, _SAME_POINT, _SAME_SPECTRUM = 1e-9, 1e-5, 1e-6


class FoundPoint(eqx.Module, Generic[Model]):
    """A critical point, up to continuous symmetries.

    Attributes:
        model: the shortest weights of its orbit (for merged weights ‖W^KQ‖ = ‖W^PV‖).
        stability: loss, kind, index, curvatures; of these weights.
        found: how many starts led to it.
        family: points of one family have equal loss and equal curvatures, as those have which a sign change or a permutation
            of coordinates maps onto each other.
    """

    model: Model
    stability: Stability[Model]
    found: int
    family: int

    @property
    def isolated(self) -> bool:
        """Whether it is alone up to continuous symmetries.

        Others belong to sets of critical points, on which the loss is constant: those of equal loss count as one, and the
        one of highest index stands for them.
        """
        return self.stability.degenerate == 0


class CriticalPoints(Printed, eqx.Module, Generic[Model]):
    """The critical points found from many starts.

    Attributes:
        points: distinct critical points, by rising loss, then index.
        starts: number of starts.
        lost: how many of them led to no critical point within the tolerance (most often they end near degenerate ones).
    """

    points: tuple[FoundPoint[Model], ...]
    starts: int
    lost: int

    def _printed(self) -> tuple[str, dict[str, str]]:
        kinds = Counter(one.stability.kind for one in self.points)
        values = {
            "points": ", ".join(f"{count} {kind}" for kind, count in kinds.items()) or "none",
            "losses": ", ".join(dict.fromkeys(f"{one.stability.loss:.6g}" for one in self.points[:_PRINTED])),
            "starts": f"{self.starts}, {self.lost} of them lost",
        }
        return "CriticalPoints", values


def critical_points(
    model: Model,
    process: Any,
    task: NextToken | FewShot,
    *,
    starts: int = 200,
    engine: Engine | None = None,
    mask: Mask | None = None,
    seed: int = 0,
    tolerance: float = 1e-11,
) -> CriticalPoints[Model]:
    """Look for the critical points of the objective from many starts: minima, and saddles of every low index.

    Three quarters of the starts are Gaussian weights of several sizes (small ones start near the saddle at 0), the
    others lie near points found so far. From each, a step descends along all eigenvectors of the Hessian but the k lowest,
    and climbs along those: this leads to saddles of index k, with k = 0, 1, … in turn. Newton's method ends it. Finding is no
    proof that there are no others.

    Args:
        model: gives the structure (and the values of masked entries); its own weights are not a start. Linear attention on
            sequences, or one layer of it on regression prompts.
        process: what generates the sequences or prompts.
        task: horizon and weights of the context lengths, or number of examples.
        starts: number of starts, rounded up to a multiple of 4.
        engine: how the expectation is computed; `ExactMoments()` by default.
        mask: masked entries (see `Mask`).
        seed: of the starts.
        tolerance: on the residual (see `CriticalPoint`).

    Raises:
        TypeError: for a model other than linear attention, or of several layers.
        ValueError, TypeError: as `gradient_flow`; ValueError when 64-bit mode is off.
    """
    integer_at_least("starts", starts, 1)
    tolerance = below_one("tolerance", tolerance)
    if not isinstance(model, LinearAttentionModel | PromptModel):
        raise TypeError(f"model: must be linear attention, got {type(model).__name__}")
    landscape = landscape_of("critical_points", model, process, task, engine, mask)
    _require_one_layer(model)
    known = find_symmetries(landscape)
    search = _Search(landscape, known, seed, tolerance)
    count = -(-starts // _ROUNDS)
    for _ in range(_ROUNDS - 1):
        search.add(search.gaussian(count))
    search.add(search.nudged(count))
    return CriticalPoints(search.points(), _ROUNDS * count, search.lost)


def _require_one_layer(model: Any) -> None:
    """Refuse preconditioned layers, whose loss is known, too."""
    if isinstance(model, PromptModel):
        try:
            prompt_heads(model)
        except TypeError:
            raise TypeError(
                "model: critical_points searches one layer of linear attention; for others critical_point finds the point "
                "next to a guess, such as the end of a flow"
            ) from None


class _Search:
    """Points found so far, merged up to continuous symmetries."""

    def __init__(self, landscape: Landscape, known: Symmetries, seed: int, tolerance: float):
        self._landscape, self._known, self._tolerance = landscape, known, tolerance
        self._rng, self._size = (
            np.random.default_rng(integer_at_least("seed", seed, 0)),
            natural_size(landscape),
        )
        self._unit = loss_unit(landscape)
        self._generators = symmetric_generators(known)
        heads, dim = self._read(landscape.start)[1].shape[:2]
        self._indices = heads * dim + 2
        self._found: list[tuple[np.ndarray, Stability[Any], int]] = []
        self.lost = 0

    def gaussian(self, count: int) -> np.ndarray:
        """Gaussian weights of several sizes, (count, n)."""
        sizes = np.exp(self._rng.uniform(np.log(_SMALLEST), np.log(_LARGEST), size=(count, 1)))
        return self._size * sizes * self._rng.normal(size=(count, len(self._landscape.start)))

    def nudged(self, count: int) -> np.ndarray:
        """Weights near points found so far, (count, n)."""
        if not self._found:
            return self.gaussian(count)
        base = np.stack([self._found[i % len(self._found)][0] for i in range(count)])
        return base + _NUDGE * self._size * self._rng.normal(size=base.shape)

    def add(self, guesses: np.ndarray) -> None:
        """Add the critical points to which the guesses lead."""
        placed = self._landscape.placed(jnp.asarray(guesses))
        indices = jnp.asarray(np.arange(len(guesses)) % self._indices)
        near = _follow(self._landscape, placed, indices, jnp.asarray(_RADIUS * self._size))
        ends = jax.device_get(newton(self._landscape, near, self._unit, _POLISHED))
        left = ends.residuals[np.arange(len(guesses)), ends.steps]
        for vector in ends.vector[left <= self._tolerance]:
            self._merge(_balanced(vector, self._generators))
        self.lost += int(np.sum(~(left <= self._tolerance)))

    def _merge(self, vector: np.ndarray) -> None:
        now = stability_at(self._landscape, vector, self._known)
        for i, (other, its, count) in enumerate(self._found):
            if self._same(vector, now, other, its):
                first = (vector, now) if _rank(now) > _rank(its) else (other, its)
                self._found[i] = (*first, count + 1)
                return
        self._found.append((vector, now, 1))

    def _same(self, vector: np.ndarray, now: Stability[Any], other: np.ndarray, its: Stability[Any]) -> bool:
        if abs(now.loss - its.loss) > _SAME_LOSS * float(self._unit):
            return False
        if now.degenerate or its.degenerate:
            return bool(now.degenerate and its.degenerate)
        return now.index == its.index and _same_predictions(
            self._heads(vector), self._heads(other), _SAME_POINT
        )

    def _read(self, vector: np.ndarray) -> tuple[np.ndarray, ...]:
        """The parts of W^KQ and W^PV of every head on which predictions depend."""
        model = self._landscape.rebuild(vector)
        heads = prompt_heads(model) if isinstance(model, PromptModel) else model.heads()
        return tuple(np.asarray(w) for w in heads)

    def _heads(self, vector: np.ndarray) -> tuple[np.ndarray, ...]:
        """Heads that predict the same; of prompts one, as the memory Σ_i e_i e_iᵀ, read from two sides, is symmetric."""
        kq, pv = self._read(vector)
        if not isinstance(self._landscape.model, PromptModel):
            return kq, pv
        product = np.einsum("hra,hij->aij", pv, kq)
        return (product + np.swapaxes(product, 0, 1)).reshape(1, -1, 1), np.ones((1, 1, 1))

    def points(self) -> tuple[FoundPoint[Any], ...]:
        """The points found, by increasing loss, then index."""
        ordered = sorted(
            self._found, key=lambda one: (round(one[1].loss / float(self._unit), 8), one[1].index)
        )
        made: list[FoundPoint[Any]] = []
        for vector, its, count in ordered:
            alike = (point.family for point in made if _alike(point.stability, its, float(self._unit)))
            family = next(alike, 1 + max((point.family for point in made), default=-1))
            made.append(FoundPoint(self._landscape.rebuild(vector), its, count, family))
        return tuple(made)


def _rank(one: Stability[Any]) -> tuple[int, int]:
    return one.index, one.degenerate


def _alike(one: Stability[Any], other: Stability[Any], unit: float) -> bool:
    if abs(one.loss - other.loss) > _SAME_LOSS * unit or one.degenerate != other.degenerate:
        return False
    difference = np.abs(one.curvatures - other.curvatures).max()
    return bool(difference <= _SAME_SPECTRUM * np.abs(one.curvatures).max())


@eqx.filter_jit
def _follow(landscape: Landscape, guesses: Array, indices: Array, radius: Array) -> Array:
    """Newton steps that climb along the k lowest eigenvectors and descend along all others, (starts, n)."""

    def one(start: tuple[Array, Array]) -> Array:
        guess, index = start

        def step(_: Array, vector: Array) -> Array:
            _, gradient, hessian = landscape.expansion(vector)
            curvatures, basis = jnp.linalg.eigh(hessian)
            slopes, size = basis.T @ gradient, jnp.abs(curvatures)
            steep = size > NULL * jnp.max(size)
            sign = jnp.where(jnp.arange(len(size)) < index, 1.0, -1.0)
            along = jnp.where(steep, sign * slopes / jnp.where(steep, size, 1.0), 0.0)
            return vector + basis @ jnp.clip(along, -radius, radius)

        return jax.lax.fori_loop(0, _FOLLOWED, step, guess)

    return jax.lax.map(one, (guesses, indices))


def _balanced(vector: np.ndarray, generators: np.ndarray) -> np.ndarray:
    """The shortest vector of the orbit of θ under the symmetric generators: where every θᵀS_iθ = 0.

    The length is convex along exp(sS)θ, so that there is one such point up to rotations (Kempf and Ness); Newton's method on
    θᵀS_iθ finds it. Where the orbit reaches its least length only in the limit, θ itself is returned.

    Args:
        vector: θ, shape (n,).
        generators: orthonormal S_i, shape (r, n, n).
    """
    shortest = vector
    for _ in range(_BALANCINGS if len(generators) else 0):
        moved = generators @ shortest
        values = moved @ shortest
        if np.abs(values).max() <= _BALANCED * float(shortest @ shortest):
            return shortest
        step = np.linalg.lstsq(2 * moved @ moved.T, values, rcond=1e-12)[0]
        step *= min(1.0, _LONGEST / np.linalg.norm(step))
        shortest = scipy.linalg.expm(-np.tensordot(step, generators, 1)) @ shortest
    return vector


def _same_predictions(one: Any, other: Any, tolerance: float) -> bool:
    """Whether two models of linear attention, or equal weights, predict the same: Σ_h W^PV_h ⊗ W^KQ_h is equal.

    Args:
        one: W^KQ and W^PV of every head, shapes (heads, 2d, 2d) and (heads, d, 2d); for prompts, the parts that are read.
        other: likewise.
        tolerance: on the difference of the tensors, relative to the larger one.
    """
    own, its, mixed = _product(one, one), _product(other, other), _product(one, other)
    return own + its - 2 * mixed <= max(tolerance**2 * max(own, its), 1e-14 * max(own, its))


def _product(one: Any, other: Any) -> float:
    """The real inner product of the tensors Σ_h W^PV_h ⊗ W^KQ_h."""
    (kq, pv), (its_kq, its_pv) = one, other
    keys = np.einsum("hij,gij->hg", kq.conj(), its_kq)
    values = np.einsum("hij,gij->hg", pv.conj(), its_pv)
    return float(np.real(np.sum(keys * values)))
