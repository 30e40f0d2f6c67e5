"""Which laws the paper's theorems speak about, decided from exact moments, with the reason."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import permutations
from math import prod
from typing import Literal, TypeAlias

from ...core import exact
from ...processes import Law, MomentError
from ...specs import Number
from ._moments import coordinate_moments, token_moments


class AssumptionError(ValueError):
    """A closed form was asked for a law it does not hold for; the message names the moment that fails."""


NamedMask: TypeAlias = Literal["off-diagonal"] | None
"""Which gradient entries are held at zero: those off the two diagonals, or none."""


@dataclass(frozen=True)
class Answer:
    """The answer to a yes-or-no question about a law; true in a condition when it holds.

    Attributes:
        holds: the answer.
        reason: why, in one line; names the moment that fails when the answer is no.
    """

    holds: bool
    reason: str

    def __bool__(self) -> bool:
        return self.holds

    def require(self, what: str) -> None:
        """Raise `AssumptionError` unless the answer is yes, naming `what` needed it."""
        if not self.holds:
            raise AssumptionError(f"{what}: {self.reason}")


# Exponents of products of distinct coordinates, exactly two of them odd, of total order 4 or 6: the moments
# E[x_p x_q x_r²] and E[x_p x_q x_r² x_s²], p ≠ q, where r and s may coincide with p, q or each other.
OFF_DIAGONAL = ((3, 1), (2, 1, 1), (5, 1), (3, 3), (4, 1, 1), (3, 2, 1), (2, 2, 1, 1))

# The paper asks that products of at most four distinct coordinates, one of them to the first power, average
# to zero; these are the products of total order ≤ 6 that OFF_DIAGONAL lacks.
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
    r"""Whether training on a law makes a mesa-optimizer emerge (zheng2024, Assumption 4.1).

    The condition: every moment $E[x_{1i_1} x_{1i_2}^{r_2} \cdots x_{1i_n}^{r_n}]$ over $n \le 4$ distinct
    coordinates vanishes, and $\kappa_1 = E x_{1j}^4$, $\kappa_2 = E x_{1j}^6$, $\kappa_3 = \sum_{r \ne j}
    E x_{1j}^2 x_{1r}^4$ are finite and the same for every $j$. Orders up to 6 are examined; no other enters
    the loss. Two things are asked here beyond that wording, because the conclusion needs them:
    $E[x_{1p}^3 x_{1q}^3] = 0$ for $p \ne q$ (independent skewed coordinates of mean zero violate it, and
    their off-diagonal gradient does not vanish at the limit of Theorem 4.1), and
    $\sum_{r \ne j} E x_{1j}^4 x_{1r}^2$ the same for every $j$ (no further condition on exchangeable laws).

    Args:
        law: the law of the initial token.
        dim: the token dimension $d$.

    Returns:
        The verdict; its reason names the first moment that fails.

    Raises:
        ValueError: `dim` does not fit the law.
    """
    return _judge(law, dim, FIRST_POWER + OFF_DIAGONAL)


def diagonal_stays_diagonal(law: Law, dim: int, *, mask: NamedMask = None) -> Answer:
    r"""Whether gradient flow from diagonal weights $a I$, $b I$ keeps that form, as Theorem 4.1 needs.

    At such weights every gradient entry off the two diagonals is a combination of $E[x_{1p} x_{1q} x_{1r}^2]$
    and $E[x_{1p} x_{1q} x_{1r}^2 x_{1s}^2]$ with $p \ne q$, so they must vanish, unless those entries are
    masked; the entries on a diagonal are equal when $\kappa_1$, $\kappa_2$, $\kappa_3$ and $\sum_{r \ne j} E
    x_{1j}^4 x_{1r}^2$ do not depend on $j$. Weaker than Assumption 4.1: a one-hot token of fixed sign has $E
    x_{1j} \ne 0$ and passes.

    Args:
        law: the law of the initial token.
        dim: the token dimension $d$.
        mask: `"off-diagonal"` when gradients off the two diagonals are masked (zheng2024, Theorem 4.3).

    Returns:
        The verdict; its reason names the first moment that fails.

    Raises:
        ValueError: `dim` does not fit the law, or the mask is unknown.
    """
    if mask not in (None, "off-diagonal"):
        raise ValueError(f"mask: {mask!r} is unknown; use None or 'off-diagonal'")
    return _judge(law, dim, OFF_DIAGONAL if mask is None else ())


def satisfies_assumption_42(law: Law, dim: int | None = None) -> Answer:
    r"""Whether the learned mesa-optimizer recovers the data as $T, t \to \infty$ (zheng2024, Assumption 4.2).

    The excess risk per coordinate tends to $E x^2 - (E x^4)^2 / E x^6 \ge 0$. By Cauchy–Schwarz, applied to
    $x$ and $x^3$, it is zero exactly when $|x_{1j}|$ takes a single non-zero value $c$, that is
    $x_{1j} \in \{0, \pm c\}$. This turns the paper's assumption, a limit along test sequences, into a
    property of the law. Assumption 4.1 is a separate question.

    Args:
        law: the law of the initial token, with identically distributed coordinates.
        dim: the token dimension $d$; it does not change the answer, and may be left out.

    Returns:
        The verdict, decided exactly: write rationals as strings where it hangs on a rounding.

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
    """Whether the listed moments of distinct coordinates vanish and the κ are the same for every one."""
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
    return Answer(True, f"{kappas} for every coordinate; the moments that must vanish do")


def _first_nonzero(law: Law, dim: int, patterns: tuple[tuple[int, ...], ...]) -> str | None:
    """Name the first moment, over distinct coordinates with these exponents, that is not zero."""
    possible = [orders for orders in sorted(patterns, key=sum) if len(orders) <= dim]
    if law.exchangeable:
        for orders in possible:
            moment = law.joint_moment(orders, dim)
            if moment:
                return f"{_name(orders, 'jrsu')} = {_show(moment)} is not 0"
        return None
    if law.even:
        return None  # every one of these moments changes sign with a coordinate of odd exponent
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
                return f"{_name(orders, [str(j + 1) for j in places])} = {_show(moment)} is not 0"
    return None


def _uneven(law: Law, dim: int, names: Mapping[str, str]) -> str | None:
    """Name the first moment that is not the same for all coordinates."""
    each = coordinate_moments(law, dim)._asdict()
    for attribute, name in names.items():
        values = each[attribute]
        for j, value in enumerate(values):
            if value != values[0]:
                return f"{name} is {_show(values[0])} for j = 1 but {_show(value)} for j = {j + 1}"
    return None


def _name(orders: Sequence[int], places: Sequence[str]) -> str:
    """Write a moment: (3, 1) at j, r as E[x_j^3 x_r]."""
    factors = (f"x_{j}^{n}" if n > 1 else f"x_{j}" for j, n in zip(places, orders, strict=False))
    return f"E[{' '.join(factors)}]"


def _show(moment: Number) -> str:
    """Write a moment as a fraction when that is short, else as a decimal number."""
    text = str(exact(moment))
    return text if len(text) <= 12 else f"{float(moment):.6g}"
