"""The laws to which the paper's theorems apply, decided from exact moments, with the reason."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import permutations
from math import prod
from typing import Literal, TypeAlias

from mesascope.specs import show

from ...core import exact
from ...processes import Empirical, Law, MomentError
from ...specs import Number
from ._moments import coordinate_moments, token_moments


class AssumptionError(ValueError):
    """A closed form does not hold for the given law; the message gives the moment that violates its assumption."""


MaskName: TypeAlias = Literal["off-diagonal"] | None
"""The gradient entries that are set to zero: those off the two diagonals, or none."""


@dataclass(frozen=True)
class Answer:
    """Whether a statement about a law holds, and why; its truth value is `holds`.

    Attributes:
        holds: whether the statement holds.
        reason: the reason in one line; if it does not hold, the moment that violates it.
    """

    holds: bool
    reason: str

    def __bool__(self) -> bool:
        return self.holds

    def require(self, what: str) -> None:
        """Raise `AssumptionError` unless the statement holds; `what` is the result that needs it."""
        if not self.holds:
            raise AssumptionError(f"{what}: {self.reason}")


# Exponents of products of distinct coordinates of total order 4 or 6, with exactly two odd exponents: the moments
# E[x_p x_q x_r²] and E[x_p x_q x_r² x_s²], p ≠ q, where r and s may equal p, q or each other.
OFF_DIAGONAL = ((3, 1), (2, 1, 1), (5, 1), (3, 3), (4, 1, 1), (3, 2, 1), (2, 2, 1, 1))

# The paper assumes that products of at most four distinct coordinates, one of them to the first power, have mean
# zero; these are the products of total order ≤ 6 that are not in OFF_DIAGONAL.
FIRST_POWER = (
    *((1,), (1, 1), (2, 1), (1, 1, 1), (1, 1, 1, 1)),
    *((4, 1), (3, 1, 1), (2, 2, 1), (2, 1, 1, 1), (3, 1, 1, 1)),
)

KAPPAS = {
    "kappa1": "κ1 = E[x_j^4]",
    "kappa2": "κ2 = E[x_j^6]",
    "kappa3": "κ3 = Σ_r E[x_j^2 x_r^4]",
    "kappa3_swapped": "Σ_r E[x_j^4 x_r^2]",
}


def satisfies_assumption_41(law: Law, dim: int) -> Answer:
    r"""Return whether training on a law gives a mesa-optimizer (zheng2024, Assumption 4.1).

    The condition: every moment $E[x_{1i_1} x_{1i_2}^{r_2} \cdots x_{1i_n}^{r_n}]$ over $n \le 4$ distinct
    coordinates is zero, and $\kappa_1 = E x_{1j}^4$, $\kappa_2 = E x_{1j}^6$, $\kappa_3 = \sum_{r \ne j}
    E x_{1j}^2 x_{1r}^4$ are finite and the same for every $j$. Orders up to 6 are checked; the loss depends
    on no others. Two conditions are added to those of the paper, because the conclusion needs them:
    $E[x_{1p}^3 x_{1q}^3] = 0$ for $p \ne q$ (independent skewed coordinates of mean zero violate it, and
    their off-diagonal gradient is not zero at the limit of Theorem 4.1), and
    $\sum_{r \ne j} E x_{1j}^4 x_{1r}^2$ is the same for every $j$ (always true for exchangeable laws).

    Args:
        law: the law of the initial token.
        dim: the token dimension $d$.

    Returns:
        The answer; its reason gives the first moment that violates the condition.

    Raises:
        ValueError: `dim` does not fit the law.
    """
    return _judge(law, dim, FIRST_POWER + OFF_DIAGONAL)


def diagonal_stays_diagonal(law: Law, dim: int, *, mask: MaskName = None) -> Answer:
    r"""Return whether gradient flow from diagonal weights $a I$, $b I$ keeps that form, as Theorem 4.1 needs.

    At such weights every gradient entry off the two diagonals is a combination of $E[x_{1p} x_{1q} x_{1r}^2]$
    and $E[x_{1p} x_{1q} x_{1r}^2 x_{1s}^2]$ with $p \ne q$, so these must be zero, unless those entries are
    masked; the entries on a diagonal are equal if $\kappa_1$, $\kappa_2$, $\kappa_3$ and $\sum_{r \ne j} E
    x_{1j}^4 x_{1r}^2$ do not depend on $j$. This is weaker than Assumption 4.1: a one-hot token of fixed sign, with $E
    x_{1j} \ne 0$, satisfies it.

    Args:
        law: the law of the initial token.
        dim: the token dimension $d$.
        mask: `"off-diagonal"` if gradients off the two diagonals are masked (zheng2024, Theorem 4.3).

    Returns:
        The answer; its reason gives the first moment that violates the condition.

    Raises:
        ValueError: `dim` does not fit the law, or the mask is unknown.
    """
    if mask not in (None, "off-diagonal"):
        raise ValueError(f"mask: {show(mask)} is unknown; use None or 'off-diagonal'")
    return _judge(law, dim, OFF_DIAGONAL if mask is None else ())


def satisfies_assumption_42(law: Law, dim: int | None = None) -> Answer:
    r"""Return whether the learned mesa-optimizer recovers the data as $T, t \to \infty$ (zheng2024, Assumption 4.2).

    The excess risk per coordinate tends to $E x^2 - (E x^4)^2 / E x^6 \ge 0$. By Cauchy–Schwarz, applied to
    $x$ and $x^3$, it is zero if and only if $|x_{1j}|$ takes a single non-zero value $c$, that is
    $x_{1j} \in \{0, \pm c\}$. This expresses the paper's assumption, a limit over test sequences, as a
    property of the law. It does not imply Assumption 4.1.

    Args:
        law: the law of the initial token, with identically distributed coordinates.
        dim: the token dimension $d$; optional, since the answer does not depend on it.

    Returns:
        The answer, decided exactly: write rationals as strings if rounding matters.

    Raises:
        ValueError: `dim` does not fit the law.
    """
    dim = law.check_dim(law.fixed_dim or 2 if dim is None else dim)
    try:
        moments = token_moments(law, dim)
        uneven = None if law.exchangeable else _uneven(law, dim, {"kappa1": "E[x_j^4]", "kappa2": "E[x_j^6]"})
    except MomentError as error:
        return Answer(False, str(error))
    if uneven is not None:
        return Answer(False, uneven)
    m2, kappa1, kappa2 = moments.m2, moments.kappa1, moments.kappa2
    if kappa2 == 0:
        return Answer(False, "E[x_j^6] = 0: the token is always zero")
    gap = m2 - kappa1**2 / kappa2
    if gap:
        reason = f"E[x_j^2] − E[x_j^4]²/E[x_j^6] = {_show(gap)} is not 0: |x_j| takes several values ≠ 0"
        return Answer(False, reason)
    return Answer(True, f"|x_j| takes only the values 0 and c, with c² = {_show(kappa2 / kappa1)}")


@lru_cache(maxsize=256)
def _judge(law: Law, dim: int, vanishing: tuple[tuple[int, ...], ...]) -> Answer:
    """Return whether the listed moments of distinct coordinates are zero and the κ are the same for all coordinates."""
    dim = law.check_dim(dim)
    try:
        moments = token_moments(law, dim)
        if moments.kappa2 == 0:
            return Answer(False, "E[x_j^6] = 0: the token is always zero")
        failing = _first_nonzero(law, dim, vanishing)
        uneven = None if law.exchangeable else _uneven(law, dim, KAPPAS)
    except MomentError as error:
        return Answer(False, str(error))
    for reason in (failing, uneven):
        if reason is not None:
            return Answer(False, reason)
    values = (moments.kappa1, moments.kappa2, moments.kappa3)
    kappas = ", ".join(f"κ{i} = {_show(kappa)}" for i, kappa in enumerate(values, start=1))
    return Answer(True, f"{kappas} for every coordinate; the moments that must be zero are zero")


def _first_nonzero(law: Law, dim: int, patterns: tuple[tuple[int, ...], ...]) -> str | None:
    """Return the first moment, of distinct coordinates with these exponents, that is not zero, as a text."""
    possible = [orders for orders in sorted(patterns, key=sum) if len(orders) <= dim]
    if law.exchangeable:
        for orders in possible:
            moment = law.joint_moment(orders, dim)
            if moment:
                return f"{_name(orders, 'jrsu')} = {_show(moment)} is not 0{_remedy(law)}"
        return None
    if law.even:
        return None  # each of these moments changes its sign with a coordinate of odd exponent
    terms = law.product_terms(dim)
    for orders in possible:
        for places in permutations(range(dim), len(orders)):
            moment = sum(
                (
                    exact(p) * prod(exact(m[j][n]) for j, n in zip(places, orders, strict=True))
                    for p, m in terms
                ),
                Fraction(0),
            )
            if moment:
                name = _name(orders, [str(j + 1) for j in places])
                return f"{name} = {_show(moment)} is not 0{_remedy(law)}"
    return None


def _remedy(law: Law) -> str:
    """Return for measured tokens how they satisfy the assumption."""
    measured = isinstance(law, Empirical)
    return "; ms.Symmetrized(law) gives every coordinate a random sign" if measured else ""


def _uneven(law: Law, dim: int, names: Mapping[str, str]) -> str | None:
    """Return the first moment that is not the same for all coordinates, as a text."""
    each = coordinate_moments(law, dim)._asdict()
    for attribute, name in names.items():
        values = each[attribute]
        for j, value in enumerate(values):
            if value != values[0]:
                return f"{name} is {_show(values[0])} for j = 1 but {_show(value)} for j = {j + 1}"
    return None


def _name(orders: Sequence[int], places: Sequence[str]) -> str:
    """Return the text of a moment: (3, 1) at j, r as E[x_j^3 x_r]."""
    factors = (f"x_{j}^{n}" if n > 1 else f"x_{j}" for j, n in zip(places, orders, strict=False))
    return f"E[{' '.join(factors)}]"


def _show(moment: Number) -> str:
    """Return a moment as a fraction if that is short, else as a decimal number."""
    text = str(exact(moment))
    return text if len(text) <= 12 else f"{float(moment):.6g}"
