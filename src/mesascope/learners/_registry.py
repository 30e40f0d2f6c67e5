"""All learners by their ids."""

from __future__ import annotations

from types import MappingProxyType

from ._chebyshev import Chebyshev
from ._conjugate_gradients import ConjugateGradients
from ._dirichlet import DirichletPosterior
from ._gradient_descent import GradientDescent
from ._gradient_descent_plus_plus import GradientDescentPlusPlus
from ._kernel_smoother import KernelSmoother
from ._lasso import Lasso
from ._learner import Learner
from ._least_squares import LeastSquares
from ._momentum import Momentum, Nesterov
from ._nearest_neighbours import NearestNeighbours
from ._newton import Newton
from ._online_gradient_descent import OnlineGradientDescent
from ._posterior_mean import PosteriorMean
from ._preconditioned import PreconditionedGradientDescent
from ._recursive import KalmanFilter, RecursiveLeastSquares
from ._ridge import Ridge
from ._without_inputs import Average, LastToken, Zero

_KINDS: tuple[type[Learner], ...] = (
    Zero,
    LastToken,
    Average,
    GradientDescent,
    Momentum,
    Nesterov,
    Chebyshev,
    OnlineGradientDescent,
    PreconditionedGradientDescent,
    GradientDescentPlusPlus,
    Newton,
    ConjugateGradients,
    LeastSquares,
    Ridge,
    PosteriorMean,
    DirichletPosterior,
    KalmanFilter,
    RecursiveLeastSquares,
    NearestNeighbours,
    KernelSmoother,
    Lasso,
)

LEARNERS = MappingProxyType({kind.name: kind for kind in _KINDS})
"""Every kind of learner by its id."""
