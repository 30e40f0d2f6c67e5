"""Stated properties: each with the exact quantity that is negative if a law breaks it, and what a search proposes.

A witness is what breaks a property: weights, a direction, a context length. `decide` computes in rational numbers and needs
neither the search nor floating point; `propose` may use both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
from scipy.optimize import minimize

from mesascope.processes import NextToken
from mesascope.theory import zheng2024

from ..certificates._balls import as_fmpq, as_fraction
from ._families import FAMILIES
from ._setting import FLAT, Setting, Witness, as_float

_PLACES = 6  # decimal places of proposed numbers, relative to the largest
_NEAR = Fraction(1, 100)
_LONGEST_CONTEXT = 200
_ROUNDS = 300  # of minimizing over a and b in turn
_WIDE = tuple(FAMILIES)
_SIGNED = ("exchangeable", "cyclic")

Proposal = tuple[Witness, float]
"""A witness, and a number by which a search compares laws: the smaller, the nearer to a violation."""


@dataclass(frozen=True)
class Property:
    """What may hold for all laws of some families.

    Attributes:
        statement: the property, a sentence.
        witness: what breaks it.
        quantity: what is computed from the witness; negative exactly if the property is broken.
        families: the families of laws that are searched unless others are named.
        normalizers: the same for ρ_t.
        decide: the quantity of a witness, exactly; a `ValueError` if it is none of the setting.
        propose: a witness for a setting.
    """

    statement: str
    witness: str
    quantity: str
    families: tuple[str, ...]
    normalizers: tuple[str, ...]
    decide: Callable[[Setting, Witness], Fraction]
    propose: Callable[[Setting, np.random.Generator], Proposal]


PROPERTIES: dict[str, Property] = {}
"""All properties by name."""


def _rounded(values: np.ndarray) -> Witness:
    scale = 10**_PLACES
    size = float(np.abs(values).max()) or 1.0
    unit = Fraction(2) ** int(np.round(np.log2(size)))
    return tuple(unit * Fraction(round(float(one / float(unit)) * scale), scale) for one in values)


def _require_size(witness: Witness, size: int) -> None:
    if len(witness) != size:
        raise ValueError(f"witness: must be {size} numbers, got {len(witness)}")


def _slope(setting: Setting, witness: Witness) -> Fraction:
    _require_size(witness, 1)
    if witness[0] not in range(setting.loss.size):
        raise ValueError(
            f"witness: must be the place of a weight, 0 … {setting.loss.size - 1}, got {witness[0]}"
        )
    return -abs(setting.gradient[int(witness[0])])


def _steepest(setting: Setting, rng: np.random.Generator) -> Proposal:
    place = max(range(setting.loss.size), key=lambda n: abs(setting.gradient[n]))
    return (Fraction(place),), 0.0 - float(abs(setting.gradient[place])) / float(setting.limit_loss or 1)


PROPERTIES["limit-is-critical"] = Property(
    "The limit of Theorem 4.1 is a critical point among all weights, so that training from diagonal weights ends there.",
    "the place of a weight, counted from 0 through W^KQ row by row and then W^PV",
    "−|∂L/∂θ_n| at the limit",
    _WIDE,
    ("t-1",),
    _slope,
    _steepest,
)


def _fall(setting: Setting, witness: Witness) -> Fraction:
    _require_size(witness, setting.loss.size)
    slope = sum((g * v for g, v in zip(setting.gradient, witness, strict=True)), Fraction(0))
    if slope:
        return -abs(slope)
    used = [n for n, v in enumerate(witness) if v]
    terms = (setting.hessian[n][m] * as_fmpq(witness[n] * witness[m]) for n in used for m in used)
    return as_fraction(sum(terms, as_fmpq(0)))


def _downhill(setting: Setting, rng: np.random.Generator) -> Proposal:
    direction, fall = setting.descent
    return _rounded(direction), fall


PROPERTIES["limit-is-minimum"] = Property(
    "At the limit of Theorem 4.1 the loss has no direction of descent among all weights: training that is disturbed returns.",
    "a direction v, of as many numbers as there are weights",
    "−|∇L·v| at the limit, or vᵀ∇²L v if ∇L·v = 0",
    _SIGNED,
    ("t-1",),
    _fall,
    _downhill,
)


def _below(setting: Setting, witness: Witness) -> Fraction:
    _require_size(witness, setting.loss.size)
    return setting.loss_at(witness) - setting.limit_loss


def _start(setting: Setting, witness: Witness) -> Fraction:
    _require_size(witness, setting.loss.size)
    kq = 4 * setting.dim**2
    for n, (one, limit) in enumerate(zip(witness, setting.point, strict=True)):
        if abs(one - limit) > _NEAR * (setting.product if n < kq else 1):
            raise ValueError(
                f"witness: weight {n} is further than 1/100 of a or b from the limit; take a nearer start"
            )
    return _below(setting, witness)


def _disturbed(setting: Setting, rng: np.random.Generator) -> Proposal:
    direction, fall = setting.descent
    units = np.ones(setting.loss.size)
    units[: 4 * setting.dim**2] = float(setting.product)
    step = direction / np.abs(direction / units).max() * float(_NEAR) * 0.999
    return tuple(p + v for p, v in zip(setting.point, _rounded(step), strict=True)), fall


PROPERTIES["flow-returns"] = Property(
    "Gradient flow from every start within 1/100 of a and b of the limit of Theorem 4.1 goes back to it.",
    "a start, whose loss is below that of the limit: no flow, along which the loss falls, goes from there to the limit",
    "L at the start − L at the limit",
    _SIGNED,
    ("t-1",),
    _start,
    _disturbed,
)


def _minimized(setting: Setting, rng: np.random.Generator) -> Proposal:
    loss, point = setting.loss.over(as_float), np.array([float(one) for one in setting.point])
    direction, fall = setting.descent
    scale = float(setting.limit_loss or 1)
    start = point + 0.1 * direction
    if fall > -1e-9:  # no direction of descent: from anywhere
        start = point + rng.normal(size=point.size) * np.abs(point).max()
    found = minimize(
        lambda x: loss.value(x.tolist()) / scale,
        start,
        jac=lambda x: np.array(loss.gradient(x.tolist())) / scale,
        method="L-BFGS-B",
        options={"maxiter": 200},
    )
    return _rounded(found.x), float(found.fun) - float(setting.limit_loss) / scale


PROPERTIES["one-gradient-step"] = Property(
    "No weights have a lower loss than the best single step of gradient descent, which is the limit of Theorem 4.1.",
    "weights with a lower loss",
    "L at these weights − L at the limit",
    _WIDE,
    ("t-1",),
    _below,
    _minimized,
)


def _diagonal(setting: Setting, witness: Witness) -> Fraction:
    _require_size(witness, 2 * setting.dim)
    return _below(setting, setting.diagonal(witness))


def _alternating(setting: Setting, rng: np.random.Generator) -> Proposal:
    r"""Minimize $\sum_{jr} S_{jr} b_j^2 a_r^2 - \sum_j \beta_j a_j b_j$ over a for given b, and over b for given a, in turn."""
    squares, cross, constant = _diagonal_coefficients(setting)
    a = rng.uniform(0.2, 1.8, setting.dim)
    for _ in range(_ROUNDS):
        b = cross * a / (2 * squares @ a**2)
        a = cross * b / (2 * squares.T @ b**2)
    lowest = b**2 @ squares @ a**2 - cross @ (a * b) + constant
    limit = float(zheng2024.diagonal_loss(setting.process, setting.task, setting.product))
    fall = float(lowest - limit) / constant
    score = fall if fall < -FLAT else _diagonal_curvature(setting, squares, cross)
    return _rounded(np.concatenate([a, b])), score


def _diagonal_curvature(setting: Setting, squares: np.ndarray, cross: np.ndarray) -> float:
    """Return the least curvature at the limit along diagonal weights in units of a and b, relative to the largest."""
    product = float(setting.product)
    mixed = 4 * product**2 * squares - np.diag(product * cross)
    rows, columns = (np.diag(2 * product**2 * squares.sum(axis)) for axis in (1, 0))
    values = np.linalg.eigvalsh(np.block([[columns, mixed.T], [mixed, rows]]))
    least = values[np.abs(values) > FLAT * values[-1]][0]
    return max(0.0, float(least / values[-1]))  # only a lower loss makes a score negative


def _diagonal_coefficients(setting: Setting) -> tuple[np.ndarray, np.ndarray, float]:
    r"""Return $S$, $\beta_j$ and the loss of weights 0, from the moments, for $\rho_t = t - 1$.

    With $H = \sum_t 1/(t-1)$: $2 S_{jj} = (T-2) E x_{1j}^6$, $2 S_{jr} = H E x_{1j}^2 x_{1r}^4$, $\beta_j = (T-2) E x_{1j}^4$.
    """
    sums, d = zheng2024.weight_sums(setting.task), setting.dim
    mixed, own = np.zeros((d, d)), np.zeros((7, d))
    for probability, lines in setting.law.product_terms(d):
        moments = np.array([[float(one) for one in line] for line in lines]).T
        mixed += float(probability) * np.outer(moments[2], moments[4])
        own += float(probability) * moments
    squares = float(sums.cross) * mixed
    np.fill_diagonal(squares, float(sums.quadratic) * own[6])
    return squares / 2, float(sums.linear) * own[4], float(sums.linear * own[2].sum() / 2)


PROPERTIES["diagonal-optimum"] = Property(
    "Among all diagonal weights a_1 … a_d, b_1 … b_d none have a lower loss than the limit of Theorem 4.1.",
    "diagonal weights a_1 … a_d, b_1 … b_d with a lower loss",
    "L at these weights − L at the limit",
    _SIGNED,
    ("t-1",),
    _diagonal,
    _alternating,
)


def _risk(setting: Setting, length: int) -> Fraction:
    """The risk of the limit after a context of this length."""
    last = NextToken.last(length + 1)
    risk = zheng2024.diagonal_loss(setting.process, last, setting.product, normalizer=str(setting.normalizer))
    return Fraction(risk)


def _rise(setting: Setting, witness: Witness) -> Fraction:
    _require_size(witness, 1)
    if witness[0].denominator != 1 or witness[0] < 2:
        raise ValueError(f"witness: must be a context length of at least 2, got {witness[0]}")
    return _risk(setting, int(witness[0])) - _risk(setting, int(witness[0]) + 1)


def _largest_rise(setting: Setting, rng: np.random.Generator) -> Proposal:
    risks = [_risk(setting, t) for t in range(2, _LONGEST_CONTEXT)]
    falls = [one - other for one, other in pairwise(risks)]
    least = min(range(len(falls)), key=falls.__getitem__)
    return (Fraction(least + 2),), float(falls[least] / (risks[0] or 1))


PROPERTIES["monotone-risk"] = Property(
    "The risk of the layer at the limit of Theorem 4.1 does not rise with the length of the context.",
    "a context length t after which it rises",
    "risk after t tokens − risk after t + 1",
    _WIDE,
    ("t-1", "t"),
    _rise,
    _largest_rise,
)
