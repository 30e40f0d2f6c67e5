"""Hyperparameters of learners fitted to predictions: scalars by least squares, integers by trial."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from mesascope.learners import Fitting, Learner

from ._evidence import Evidence
from ._integer_search import best_integer
from ._least_squares import EXACT, Data, End, Equations, best_starts, minimize
from ._problems import Problems

TRIAL = (
    48,
    8,
)  # tasks and numbers of examples: enough to find integers, and good initial values of other hyperparameters
_CONTENDERS = 4  # integers with which all tasks are fitted
TRIAL_GAIN, FIT_GAIN = 1e-2, 1e-13  # relative gains of an iteration below which a trial, and a fit, stops


class Fitted(NamedTuple):
    """A learner with fitted hyperparameters.

    Attributes:
        learner: the learner.
        cost: the remaining squared distance, relative to the size of the predictions.
        determined: whether the data determine the hyperparameters.
        or_more: whether larger values of its integer, such as more steps, fit as well.
        coordinates: of its scalars, where they were fitted.
        integer: its integer.
    """

    learner: Learner
    cost: float
    determined: bool = True
    or_more: bool = False
    coordinates: np.ndarray | None = None
    integer: int = 1


class Fitter(eqx.Module):
    """Fits learners of one kind to predictions.

    Attributes:
        kind: the class.
        fitting: the hyperparameters, and how they are fitted.
        given: hyperparameters that come from the process of the data, by name.
    """

    kind: type[Learner] = eqx.field(static=True)
    fitting: Fitting = eqx.field(static=True)
    given: dict[str, Array] = eqx.field(default_factory=dict)

    def build(self, coordinates: Any, integer: Any) -> Learner:
        """Return the learner at the coordinates of its scalars."""
        how = self.fitting
        values = {s.name: s.value(coordinates[i]) for i, s in enumerate(how.scalars)}
        values |= dict(how.fixed) | self.given
        if how.integer is not None:
            values[how.integer] = integer
        return (how.make or self.kind)(**values)

    def features(self, evidence: Evidence) -> Any:
        """Return what the learner reads."""
        return evidence.problems.features(self.kind)

    def fit(self, evidence: Sequence[Evidence]) -> Fitted:
        """Return the minimum of the sum over the evidence of the weighted |f − g|², relative to the size of f in each.

        Of integers whose costs are not distinguished, by their mean or by the number of tasks on which each is better, the
        smallest is taken: the mean of a few tasks on which an algorithm diverges would choose at random.
        """
        trial = Data.of(self, evidence, *TRIAL)
        grid = self.grid(evidence[0].problems)
        ends: dict[int, End] = {}

        def cost(integer: int) -> float:
            equations = Equations(trial, integer)
            starts = best_starts(equations, grid)
            if ends and len(starts) > 1:  # the best point of the nearest integer
                starts[-1] = ends[min(ends, key=lambda tried: abs(tried - integer))].point
            ends[integer] = minimize(equations, starts, TRIAL_GAIN)
            return ends[integer].cost

        best = best_integer(cost, self.fitting.largest, EXACT)
        contenders = [k for k in sorted(ends) if k <= best and not ends[k].is_worse_than(ends[best])]
        places = np.linspace(0, len(contenders) - 1, min(_CONTENDERS, len(contenders))).round().astype(int)
        many = Data.of(self, evidence, self.fitting.tasks)
        fits = {
            k: minimize(Equations(many, k), ends[k].point[None], FIT_GAIN)
            for k in (contenders[i] for i in places)
        }
        least = min(fits.values(), key=lambda end: end.cost)
        chosen = next(k for k, end in fits.items() if not end.is_worse_than(least))
        learner = self.build(jnp.asarray(fits[chosen].point), chosen)
        or_more = chosen < max(ends) and not ends[max(ends)].is_worse_than(ends[chosen])
        point = fits[chosen].point
        return Fitted(learner, fits[chosen].cost, or_more=or_more, coordinates=point, integer=chosen)

    def fit_beyond(self, special: Fitted, fitted: Fitted, evidence: Sequence[Evidence]) -> Fitted:
        """Return the special case itself, unless the fit, or one that starts from it, is better than by chance."""
        same = self.like(special.learner) or self.like(special.learner, fitted.learner)
        if same is None:
            return fitted
        values = same.hyperparameters
        integer = int(values[self.fitting.integer]) if self.fitting.integer else 1
        start = np.array([[s.coordinate(float(values[s.name])) for s in self.fitting.scalars]])
        equations = Equations(Data.of(self, evidence, self.fitting.tasks), integer)
        end = minimize(equations, start, FIT_GAIN)
        near = Fitted(
            self.build(jnp.asarray(end.point), integer), end.cost, coordinates=end.point, integer=integer
        )
        best = min(fitted, near, key=lambda one: one.cost)
        ends = [End(end.point, equations.costs_of(learner)) for learner in (same, best.learner)]
        same_fit = Fitted(same, ends[0].cost, or_more=special.or_more, coordinates=start[0], integer=integer)
        return best if ends[0].is_worse_than(ends[1]) else same_fit

    def like(self, special: Learner, near: Learner | None = None) -> Learner | None:
        """Return the learner that equals its special case; None if there is none, as for a filter with the penalty 0.

        Args:
            special: the special case.
            near: gives the hyperparameters that are 0 in the special case, if it is not None.
        """
        assert self.fitting.extends is not None
        values = special.hyperparameters | dict(self.fitting.extends[1]) | self.given
        if near is not None:
            zeros = {
                name for name, value in special.hyperparameters.items() if np.all(np.asarray(value) == 0)
            }
            values |= {name: near.hyperparameters[name] for name in zeros & set(near.hyperparameters)}
        try:
            found: Learner = (self.fitting.make or self.kind)(**values)
        except ValueError:
            return None
        return found

    def grid(self, problems: Problems) -> np.ndarray:
        """Return initial coordinates of the scalars, shape (points, scalars)."""
        scalars, eigenvalue = self.fitting.scalars, typical_eigenvalue(problems)
        if not scalars:
            return np.zeros((1, 0))
        count = {1: 16, 2: 6, 3: 4}[len(scalars)]
        return np.array(list(product(*(s.starts(count, eigenvalue) for s in scalars))))


def typical_eigenvalue(problems: Problems) -> float:
    """Return the mean eigenvalue of the Gram matrix of one example, E‖x‖²/p."""
    return max(float(jnp.mean(jnp.abs(problems.queries) ** 2)), 1e-300)
