"""Statements of the paper with proofs by computation: exact rationals and balls instead of floating point."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from itertools import product as signs_of
from typing import Any

import numpy as np

from mesascope.dynamics import critical_points
from mesascope.dynamics.certificates import (
    Certificate,
    Inertia,
    NotProvedError,
    SequenceQuestion,
    certify_near,
    diagonal_point,
    exact_gradient,
    prove_exactly,
)
from mesascope.models import LinearAttention
from mesascope.processes import DiagonalUnitary, NextToken
from mesascope.records import Decision
from mesascope.theory import zheng2024 as theory

from .._claim import Claim, Finding, Settings, UnsettledError, presets, verdict_if
from .._minimized import REACHED
from ._common import LAWS, PAPER, LawAndSizes, Sizes, diagonal_run

_EXACT = "nothing is rounded, rational numbers are equal or not, and bounds are proved"


def _question(law: str, dim: int, horizon: int, **mask: Any) -> SequenceQuestion:
    return SequenceQuestion(DiagonalUnitary(LAWS[law](1), dim), NextToken(horizon), "t-1", **mask)


def _near(question: SequenceQuestion, point: Any, digits: int) -> Certificate:
    """The certificate of the critical point near these weights.

    Raises:
        UnsettledError: nothing is proved.
    """
    try:
        return certify_near(question, np.array(point, float), digits)
    except NotProvedError as error:
        raise UnsettledError(f"not proved: {error}") from None


def _theorem_41(settings: _Theorem41) -> Finding:
    """The limit of Theorem 4.1: exactly critical among all weights, and where it is isolated, alone in a printed ball."""
    cases: list[dict[str, Any]] = []
    minima = True
    for law, dim, horizon in settings.cases:
        question = _question(law, dim, horizon)
        product = Fraction(theory.limit_product(question.process, question.task))
        point = diagonal_point(product, [1] * dim)
        if any(exact_gradient(question, point)):
            where = f"not at {law} tokens, d = {dim}, T = {horizon}"
            expected = {"exactly_critical": len(settings.cases)}
            parts: dict[str, Decision] = {"critical": "not met"}
            return Finding({"exactly_critical": where}, expected, None, "not met", parts=parts)
        proved = _near(question, point, settings.digits).proved
        minima = minima and proved.inertia.negative == 0 and proved.theorem == product
        case = {"law": law, "dim": dim, "horizon": horizon, "product": str(product)}
        alone = None if proved.unique_within is None else str(proved.unique_within)
        cases.append({**case, "hessian": proved.inertia._asdict(), "alone_within": alone})
    isolated = [case["hessian"]["zero"] == 1 for case in cases if case["alone_within"]]
    measured = {"exactly_critical": len(cases), "isolated": len(isolated)}
    expected = {"exactly_critical": len(cases), "isolated": settings.isolated}
    parts = {
        "critical": "met",
        "no direction of descent": verdict_if(minima),
        "alone but for one-hot": verdict_if(all(isolated) and len(isolated) == settings.isolated),
    }
    return Finding.of_parts(measured, expected, None, parts, {"cases": cases})


def _masked_limit(settings: _MaskedLimit) -> Finding:
    """Critical with the mask, and not without it, on the whole curve ab = c*.

    Along the curve W^KQ is multiplied by some s and W^PV divided by it, which leaves the loss as it is: ∂L/∂W^KQ is divided by
    s and ∂L/∂W^PV multiplied. The product of their largest entries is the same everywhere on the curve, and not 0.
    """
    dim, horizon = settings.dim, settings.horizon
    free = _question("full-one", dim, horizon)
    masked = _question("full-one", dim, horizon, mask="off-diagonal")
    product = Fraction(theory.masked_full_one_limit(dim, free.task))
    point = diagonal_point(product, [1] * dim)
    critical = not any(exact_gradient(masked, point))
    slope = exact_gradient(free, point)
    cut = 4 * dim**2
    least = max(map(abs, slope[:cut])) * max(map(abs, slope[cut:]))
    parts = {
        "critical with the mask": verdict_if(critical),
        "nowhere without": verdict_if(least > Fraction(settings.threshold)),
    }
    return Finding.of_parts(
        float(least), f"> {settings.threshold}", None, parts, {"product_of_largest_entries": str(least)}
    )


def _full_one(settings: _FullOne) -> Finding:
    """The end of the unmasked flow, enclosed."""
    question = _question("full-one", settings.dim, settings.horizon)
    flow = diagonal_run(question.process, question.task, settings.start)
    point = np.concatenate([np.ravel(flow.model.w_kq), np.ravel(flow.model.w_pv)])
    proved = _near(question, point, settings.digits).proved
    (low, high), size = proved.products[0], 6 * settings.dim**2
    holds = proved.unique_within is not None and proved.inertia == Inertia(size - 1, 0, 1)
    return Finding(
        {"radius": float(proved.radius), "hessian": list(proved.inertia)},
        {"radius": f"≤ 1e-{settings.digits}", "hessian": [size - 1, 0, 1]},
        None,
        verdict_if(holds and proved.theorem is None),
        {
            "loss": [str(end) for end in map(float, proved.loss)],
            "product": [f"{float(low):.17g}", f"{float(high):.17g}"],
            "alone_within": str(proved.unique_within),
        },
    )


def _signed(settings: LawAndSizes) -> Finding:
    """Every choice of signs, at rational weights."""
    question = _question(settings.law, settings.dim, settings.horizon)
    product = Fraction(theory.limit_product(question.process, question.task))
    found = []
    for signs in signs_of((1, -1), repeat=settings.dim):
        try:
            found.append(prove_exactly(question, diagonal_point(product, signs)))
        except NotProvedError as error:
            return Finding(str(error), "critical for every choice of signs", None, "not met")
    losses, kinds = {one.loss[0] for one in found}, {one.inertia for one in found}
    size = 6 * settings.dim**2
    expected = {"points": 2**settings.dim, "losses": 1, "hessians": [[size - 1, 0, 1]]}
    measured = {"points": len(found), "losses": len(losses), "hessians": [list(kind) for kind in kinds]}
    return Finding(measured, expected, None, verdict_if(measured == expected), {"loss": str(min(losses))})


def _gaps(settings: _Gaps) -> Finding:
    """The limit's loss against that of other critical points: exact for learned coordinates, else found by a search."""
    dim, law = settings.dim, settings.law
    question = _question(law, dim, settings.horizon)
    cases = []
    for learned in range(dim + 1):
        product = Fraction(0)
        if learned:
            smaller = DiagonalUnitary(LAWS[law](1), learned)
            product = Fraction(theory.limit_product(smaller, question.task))
        try:
            proved = prove_exactly(question, diagonal_point(product, [1] * learned + [0] * (dim - learned)))
        except NotProvedError as error:
            return Finding(str(error), "critical for every number of learned coordinates", None, "not met")
        cases.append((proved.loss[0], proved.inertia))
    losses, inertias = zip(*cases, strict=True)
    gaps = [one - other for one, other in pairwise(losses)]
    saddles = all(inertia.negative > 0 for inertia in inertias[:-1])
    lowest, found = float(losses[-1]), _found_losses(question, settings)
    reached = sum(count for loss, count in found if abs(loss / lowest - 1) <= settings.tolerance)
    others = [
        loss
        for loss, _ in found
        if not min(abs(loss / float(one) - 1) for one in losses)
        <= settings.tolerance  # NaN counts as another
    ]
    if reached < REACHED and not others:
        raise UnsettledError(f"{reached} of {settings.starts} searches reach the limit; {REACHED} have to")
    parts = {
        "the loss falls with every learned coordinate": verdict_if(min(gaps) > 0),
        "only the limit is no saddle": verdict_if(saddles and inertias[-1].negative == 0),
        "no other loss is found": verdict_if(not others),
    }
    return Finding.of_parts(
        {"least_gap": float(min(gaps)), "other_losses": others, "starts_that_reach_the_limit": reached},
        {"least_gap": "> 0", "other_losses": [], "starts_that_reach_the_limit": f"≥ {REACHED}"},
        settings.tolerance,
        parts,
        {
            "loss_by_learned_coordinates": [str(loss) for loss in losses],
            "hessian": [inertia._asdict() for inertia in inertias],
            "losses_found": [loss for loss, _ in found],
            "found_by": [count for _, count in found],
        },
    )


def _found_losses(question: SequenceQuestion, settings: _Gaps) -> list[tuple[float, int]]:
    """The losses of all critical points that Newton's method finds from random starts, and from how many of them."""
    model = LinearAttention.diagonal(settings.dim, 1.0, 1.0)
    starts, seed = settings.starts, settings.seed
    points = critical_points(model, question.process, question.task, starts=starts, seed=seed).points
    return [(float(point.stability.loss), point.found) for point in points]


class _Theorem41(Settings):
    cases: tuple[tuple[str, int, int], ...] = (
        ("gaussian", 2, 10),
        ("gaussian", 5, 20),
        ("rademacher", 3, 10),
        ("uniform", 3, 10),
        ("one-hot", 3, 10),
    )
    isolated: int = 4
    digits: int = 30


class _MaskedLimit(Sizes):
    threshold: str = "1/100"


class _FullOne(Sizes):
    start: tuple[float, float] = (0.1, 0.1)
    digits: int = 40


class _Gaps(LawAndSizes):
    dim: int = 2
    horizon: int = 20
    starts: int = 32
    seed: int = 0
    tolerance: float = 1e-8


CLAIMS = (
    Claim(
        id=f"{PAPER}/theorem-4.1-certified",
        title="Theorem 4.1's limit has no direction of descent, proved in five cases",
        evidence="proved",
        origin="ours",
        statement="""Among all weights the limit of Theorem 4.1 is exactly critical without a direction of descent; up to
            scaling it is isolated for Gaussian, Rademacher and uniform tokens, but not for one-hot ones.""",
        source="zheng2024: proved here, beyond Theorem 4.1 (second-hand), which is about the flow from diagonal starts",
        settings=presets(
            _Theorem41(),
            cases=(
                ("gaussian", 2, 100),
                ("gaussian", 5, 100),
                ("rademacher", 5, 100),
                ("uniform", 5, 100),
                ("one-hot", 5, 100),
            ),
        ),
        check=_theorem_41,
        criterion=f"""For five combinations of law, d and T: {_EXACT}. The scaling is (W^KQ, W^PV) → (s W^KQ, W^PV/s), and the
            radius of the ball in which the point is alone is printed.""",
        cost="about 5 min",
    ),
    Claim(
        id=f"{PAPER}/masked-limit-certified",
        title="The masked limit is not critical without the mask, proved",
        evidence="proved",
        origin="review",
        statement="""For the full-one token the limit of Theorem 4.3 is exactly critical with the mask, and without it nowhere
            on its curve ab = c*, whatever start led there.""",
        source="zheng2024, Theorem 4.3, Proposition 4.2 and the rebuttal, for every initialization (all second-hand)",
        settings=presets(_MaskedLimit()),
        check=_masked_limit,
        criterion=f"""The product of the largest entries of ∂L/∂W^KQ and ∂L/∂W^PV, the same on the whole curve, is a rational
            number above 1/100; {_EXACT}.""",
    ),
    Claim(
        id=f"{PAPER}/full-one-limit-certified",
        title="One critical point near the full-one end, proved",
        evidence="proved",
        statement="""Near the end of unmasked training on the full-one token there is exactly one critical point with its a² −
            b², a strict minimum but for the scaling.""",
        source="zheng2024: proved here, beside Proposition 4.2 (second-hand)",
        origin="ours",
        settings=presets(_FullOne()),
        check=_full_one,
        criterion=f"""Newton's method leads from the end of the flow to a centre within whose 1e-40 the point lies, and it is
            alone in a larger ball that is printed; {_EXACT}.""",
    ),
    Claim(
        id=f"{PAPER}/signed-diagonals-certified",
        title="2^d sign patterns are minima of exactly equal loss, proved",
        evidence="proved",
        statement="""On Gaussian tokens the diagonals a_j = ±c*, b_j = ±1, with equal signs in each coordinate, are strict
            minima up to scaling with exactly equal losses, for all 2^d choices.""",
        source="zheng2024: found here",
        origin="ours",
        settings=presets(LawAndSizes(dim=3, horizon=20), dim=5, horizon=100),
        check=_signed,
        criterion=f"All choices are proved, for d = 3, T = 20 (small) and d = 5, T = 100 (full); {_EXACT}.",
        cost="about 1 min",
    ),
    Claim(
        id=f"{PAPER}/global-minimum",
        title="No known critical point lies below the limit of Theorem 4.1",
        evidence="exact",
        statement="""On Gaussian tokens, points with k < d learned coordinates are saddles whose loss falls with k, and no other
            loss is found at critical points from random starts.""",
        source="zheng2024: asked here",
        origin="ours",
        settings=presets(_Gaps(), dim=3, starts=400),
        check=_gaps,
        criterion=f"""Gaps and saddles: {_EXACT}. Newton's method from 32 (small) or 400 (full) random starts finds minima and
            saddles, at rest to 1e-11, where the loss is quadratic, so that losses are known to 1e-8; at least three starts must
            reach the limit itself. This is a search, not a proof.""",
        cost="about 5 min",
    ),
)
