"""The learners that models are held against, from the simplest to the most flexible, and what is fitted of each."""

from __future__ import annotations

from mesascope.learners import GradientDescent, LeastSquares, Ridge

from ._fit import Family, Scalar

_STEP = Scalar("step_size", 1e-2, 4.0, power=-1)

FAMILIES: dict[str, Family] = {
    family.kind.name: family
    for family in (
        Family(LeastSquares),
        Family(GradientDescent, (_STEP,), "steps", 24),
        Family(Ridge, (Scalar("penalty", 1e-4, 1e3, power=1),)),
    )
}
