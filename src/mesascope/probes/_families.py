"""The learners that models are held against, and what is fitted of each: from the simplest to the most flexible."""

from __future__ import annotations

from typing import Any

from mesascope.learners import (
    Average,
    Chebyshev,
    ConjugateGradients,
    DirichletPosterior,
    GradientDescent,
    GradientDescentPlusPlus,
    KalmanFilter,
    KernelSmoother,
    Lasso,
    LastToken,
    LeastSquares,
    Momentum,
    NearestNeighbours,
    Nesterov,
    Newton,
    OnlineGradientDescent,
    PosteriorMean,
    RecursiveLeastSquares,
    Ridge,
    Zero,
)

from ._fit import Family, Scalar
from ._fit_preconditioner import PreconditionedFamily
from ._problems import vocabulary

_STEP = Scalar("step_size", 1e-2, 4.0, power=-1)
_MOMENTUM = Scalar("momentum", 0.05, 0.95, bounded=True)
_PENALTY = Scalar("penalty", 1e-3, 1e3, power=1)
_STEPS = 48


def _chebyshev(lower: Any, spread: Any, steps: int) -> Chebyshev:
    """Upper = lower · (1 + spread), so that it is the larger."""
    return Chebyshev(lower, lower * (1 + spread), steps)


FAMILIES: dict[str, Family | PreconditionedFamily] = {
    family.kind.name: family
    for family in (
        Family(Zero),
        Family(LastToken),
        Family(Average),
        Family(LeastSquares),
        Family(GradientDescent, (_STEP,), "steps", 128),
        Family(Ridge, (_PENALTY,)),
        Family(NearestNeighbours, (), "neighbours", 128),
        Family(ConjugateGradients, (), "steps", _STEPS),
        Family(OnlineGradientDescent, (_STEP,)),
        Family(KernelSmoother, (Scalar("sharpness", 1e-2, 1e2, power=-1),)),
        Family(Lasso, (Scalar("penalty", 1e-2, 10.0, power=1),), tasks=48),
        Family(Newton, (Scalar("start", 0.05, 1.9),), "steps", 24),
        Family(PosteriorMean, (Scalar("noise_variance", 1e-3, 1e3, power=1),), fixed=(("prior", 1.0),)),
        Family(RecursiveLeastSquares, (_PENALTY, Scalar("forgetting", 0.5, 0.99, bounded=True))),
        Family(KalmanFilter, (_PENALTY, Scalar("drift", 1e-4, 1.0))),
        Family(Momentum, (_STEP, _MOMENTUM), "steps", _STEPS),
        Family(Nesterov, (_STEP, _MOMENTUM), "steps", _STEPS),
        Family(GradientDescentPlusPlus, (_STEP, Scalar("curvature", 1e-2, 1.0, power=-1)), "steps", _STEPS),
        Family(
            Chebyshev,
            (Scalar("lower", 1e-2, 1.0, power=1), Scalar("spread", 1.0, 1e2)),
            "steps",
            _STEPS,
            make=_chebyshev,
        ),
        PreconditionedFamily(),
        Family(DirichletPosterior, (Scalar("concentration", 1e-3, 1e2),)),
    )
}
_OF_SYMBOLS = {DirichletPosterior.name}


def fitting_families(process: Any) -> tuple[str, ...]:
    """The ids of the learners that read what a process draws."""
    symbols = vocabulary(process) is not None
    return tuple(name for name in FAMILIES if symbols or name not in _OF_SYMBOLS)
