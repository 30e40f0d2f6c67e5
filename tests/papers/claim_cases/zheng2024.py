"""How the claims of zheng2024 are tested."""

from fractions import Fraction
from functools import cache

import equinox as eqx
import numpy as np

from mesascope.dynamics import _flow
from mesascope.models import LinearAttention
from mesascope.objectives import _exact
from mesascope.papers.zheng2024 import (
    _capability,
    _certified,
    _depth,
    _descent,
    _factored,
    _found_here,
    _full_one,
    _reviews,
    _theorem_41,
)
from mesascope.processes import Gaussian, NextToken, Rademacher
from mesascope.theory import zheng2024 as theory

from . import Case, scaled


def larger_cross_term(patch):
    """The exact engine's cross term is 1 % too large: every limit moves by a percent."""
    right = _exact.schedule_features
    patch.setattr(
        _exact,
        "schedule_features",
        lambda task, normalizer, power: right(task, normalizer, power) * (1.01 if power == 1 else 1),
    )
    # what is prepared here must not be kept
    patch.setattr(_exact, "exact_objective", cache(_exact.exact_objective.__wrapped__))
    for module, name in ((_theorem_41, "_random_ends"), (_descent, "_exact_runs")):
        patch.setattr(module, name, getattr(module, name).__wrapped__)


def faster_attention(patch):
    """W^KQ moves twice as fast: the same limits of the product, other invariants and paths."""
    right = _flow.masked_gradient

    def skewed(objective, rebuild, allowed):
        gradient = right(objective, rebuild, allowed)

        def field(vector):
            half = 2 * vector.size // 3  # W^KQ has 4d² of the 6d² weights
            return gradient(vector).at[:half].multiply(2.0)

        return field

    patch.setattr(_flow, "masked_gradient", skewed)


def another_plateau(place, change, weights=None):
    """A world in which one plateau from the smaller start is another, for weights of one kind or all."""

    def break_it(patch):
        right, smaller = _factored._plateaus, min(_factored._Factored().scales)

        def wrong(settings):
            found = right(settings)
            if settings.scale != smaller or weights not in (None, settings.weights):
                return found
            return eqx.tree_at(lambda one: one.points[place], found, change(found.points[place]))

        patch.setattr(_factored, "_plateaus", wrong)

    return break_it


def with_number(name, change):
    """A plateau of which one number is another."""
    return lambda point: eqx.tree_at(lambda one: getattr(one, name), point, change(getattr(point, name)))


def one_start(patch):
    """All starts are the same one."""
    right = _theorem_41.diagonal_run
    patch.setattr(_theorem_41, "diagonal_run", lambda process, task, start: right(process, task, (0.1, 0.1)))


def limits_of_the_start(patch):
    """The limit depends a little on the start."""
    right = _theorem_41.diagonal_run

    def wrong(process, task, start):
        flow = right(process, task, start)
        return eqx.tree_at(lambda one: one.model.w_pv, flow, replace_fn=lambda w: w * (1 + 1e-7 * start[0]))

    patch.setattr(_theorem_41, "diagonal_run", wrong)


def other_weights_grow(patch):
    """Weights beside the two diagonals are left at a ten-thousandth."""
    right = _theorem_41.off_diagonal_size
    patch.setattr(_theorem_41, "off_diagonal_size", lambda model: right(model) + 1e-4)


def one_sign(patch):
    """All starts that are drawn are the same one, which ends with one sign."""
    right = _theorem_41.LinearAttention.diagonal
    patch.setattr(_theorem_41, "_gaussian_start", lambda dim, *args: right(dim, 0.1, 0.1))
    patch.setattr(_theorem_41, "_random_ends", _theorem_41._random_ends.__wrapped__)


def heavier_tails(patch):
    """Laws have one degree of freedom less than is said."""
    right = _capability.StudentT
    patch.setattr(_capability, "StudentT", lambda df, scale: right(float(df) - 1, scale))


def larger_predictions(patch):
    """Predictions are 5 % too large."""
    scaled(LinearAttention, "predictions", 1.05)(patch)


def critical_token(patch):
    """A token for which the masked limit is critical: nothing is left of Proposition 4.2."""
    patch.setattr(_full_one, "Constant", Rademacher)


def longer_steps(factor):
    """A world in which exact descent, and the recursion beside it, take steps that are longer than is said."""

    def world(patch):
        for name in ("_descent", "_recursion"):
            right = getattr(_descent, name)

            def wrong(process, task, start, rate, epochs, _right=right):
                return _right(process, task, start, factor * rate, epochs)

            patch.setattr(_descent, name, wrong)
        patch.setattr(_descent, "_exact_runs", _descent._exact_runs.__wrapped__)

    return world


def other_draws(patch):
    """The program is taken to have another seed."""
    patch.setattr(_descent, "_PROGRAM_SEED", 2)
    patch.setattr(_descent, "_own_products", _descent._own_products.__wrapped__)


def larger_products(patch):
    """The limit of training is a hundredth larger than it is."""
    scaled(_capability.theory, "limit_product", Fraction(101, 100))(patch)


def recovers(always):
    """A world in which every law is taken to satisfy the condition of recovery, or none is."""
    return lambda patch: patch.setattr(_capability, "_recovers", lambda law, settings: always)


def larger_sixth_moments(patch):
    """Theory has a sixth moment that is a thousandth too large: gaps and limits move."""
    right = _found_here.theory.capability_gap
    patch.setattr(_found_here.theory, "capability_gap", lambda process: right(process) * Fraction(1001, 1000))


def symmetric_tokens(patch):
    """Tokens are signs: nothing is skewed, and training stays on the diagonal."""
    patch.setattr(_found_here, "Empirical", lambda values: Rademacher(1))


def other_engines(patch):
    """Exact moments know another horizon than enumeration."""
    right = _found_here._off_diagonal_slope

    def wrong(model, process, task, engine):
        longer = NextToken(task.horizon + isinstance(engine, _found_here.Enumeration))
        return right(model, process, longer, engine)

    patch.setattr(_found_here, "_off_diagonal_slope", wrong)


def lost_searches(patch):
    """Of the searches for critical points only those that end at saddles are kept."""
    right = _certified._found_losses

    def wrong(question, settings):
        found = right(question, settings)
        lowest = min(loss for loss, _ in found)
        return [(loss, count) for loss, count in found if loss > lowest * (1 + 1e-6)]

    patch.setattr(_certified, "_found_losses", wrong)


def other_best_normalizer(patch):
    """The best normalizer is shifted by a hundredth too much."""
    scaled(_reviews.theory, "best_normalizer_shift", Fraction(101, 100))(patch)


def later_times(patch):
    """The closed form of the flow reaches every product a ten-thousandth later when the last term is trained alone."""
    right = theory.diagonal_flow

    class Late:
        def __init__(self, flow, factor):
            self.flow, self.factor = flow, factor

        def time_to_reach(self, product):
            return self.flow.time_to_reach(product) * self.factor

    def wrong(process, task, *start):
        return Late(right(process, task, *start), 1.0001 if task.weights else 1.0)

    patch.setattr(_reviews.theory, "diagonal_flow", wrong)


def larger_limits(patch):
    """Theory has products and losses that are a hundredth larger."""
    for formula in ("limit_product", "limit_loss"):
        scaled(_reviews.theory, formula, 1.01)(patch)


def larger_rational_limits(patch):
    """Theory has products a hundredth larger, as exact as before."""
    for formula in ("limit_product", "masked_full_one_limit"):
        right = getattr(theory, formula)

        def wrong(*args, _right=right):
            return Fraction(_right(*args)) * Fraction(101, 100)

        patch.setattr(_certified.theory, formula, wrong)


def called(name, law):
    """A world in which tokens of another law bear the name of these."""
    return lambda patch: patch.setattr(_certified, "LAWS", {**_certified.LAWS, name: law})


def another_landscape(patch):
    """Critical points are looked for at a horizon one longer."""
    right = _certified.critical_points

    def wrong(model, process, task, **settings):
        return right(model, process, NextToken(task.horizon + 1), **settings)

    patch.setattr(_certified, "critical_points", wrong)


def depth_without_use(patch):
    """Every trained model is one layer at its optimum."""
    patch.setattr(_depth, "_trained", lambda make, settings: [_depth._optimum(settings)])


def depth_that_hurts(patch):
    """The errors of trained models are four times what they are."""
    right = _depth._errors

    def larger(model, settings):
        return right(model, settings) * (1 if isinstance(model, LinearAttention) else 4)

    patch.setattr(_depth, "_errors", larger)


LIMIT = {"starts": [[0.1, 0.1]], "cases": [[2, 6, 1.0]], "short": [[2, 3, 1.0]]}
PATH = {"dim": 2, "horizon": 6, "starts": [[0.1, 0.3], [0.5, 1.5]]}
SMALL = {"dim": 2, "horizon": 6}
RANDOM = {**SMALL, "scales": [0.1], "starts_per_scale": 8}  # some end with both signs
TRAINED = {"seeds": 1, "sequences": 2000, "horizon": 12}
CURVES = {"dim": 2, "horizon": 10, "starts": [[0.1, 0.1]], "samples": 4000}

CASES = {
    "zheng2024/theorem-4.1": Case(LIMIT, larger_cross_term, traced=False),
    "zheng2024/conservation": Case(PATH, faster_attention),
    "zheng2024/trajectory": Case(PATH, faster_attention, (larger_cross_term,)),
    "zheng2024/one-product": Case(PATH, one_start, (limits_of_the_start,), traced=False),
    "zheng2024/standard-initialization": Case(RANDOM, larger_cross_term, (other_weights_grow,), traced=False),
    "zheng2024/random-starts": Case(RANDOM, larger_cross_term, (one_sign,), traced=False),
    "zheng2024/assumption-4.1": Case(SMALL, heavier_tails, traced=False),
    "zheng2024/proposition-4.1": Case({"dim": 2, "horizons": [10, 10**6]}, larger_cross_term, traced=False),
    "zheng2024/ratio-by-context": Case(
        {"dim": 2, "horizon": 10, "context_lengths": [2, 9]}, larger_predictions, traced=False
    ),
    "zheng2024/theorem-4.2": Case(
        {"dim": 2}, larger_products, (recovers(True), recovers(False)), traced=False
    ),
    "zheng2024/recovery-gap": Case({"dim": 2}, larger_cross_term, (larger_sixth_moments,), traced=False),
    "zheng2024/factored-plateaus": Case(
        {"horizon": 6, "seeds": 1},
        another_plateau(0, with_number("leaves", lambda time: 1.01 * time)),
        (
            # merged weights alone, the second saddle, no prediction, another order, and another formula
            another_plateau(0, with_number("leaves", lambda time: 1.05 * time), "merged"),
            another_plateau(-2, with_number("predicted", lambda time: 1.01 * time), "heads of rank one"),
            another_plateau(0, with_number("predicted", lambda time: time * np.nan), "one head"),
            another_plateau(0, with_number("order", lambda order: 3)),
            scaled(_factored, "_losses", 1 + 1e-8),
        ),
        traced=False,
    ),
    "zheng2024/skewed-tokens": Case({}, symmetric_tokens, (other_engines,), traced=False),
    "zheng2024/example-4.1": Case({**SMALL, "scales": [0.5, 1.0]}, larger_cross_term, traced=False),
    "zheng2024/theorem-4.3": Case(
        {"cases": [[2, 6]], "starts": [[0.1, 0.1]]}, larger_cross_term, traced=False
    ),
    "zheng2024/proposition-4.2": Case({"starts": [[0.1, 0.1]]}, critical_token, traced=False),
    "zheng2024/full-one-limit": Case(
        {"starts": [[0.1, 0.1], [2.0, 2.0]], "epochs": 20}, larger_cross_term, traced=False
    ),
    "zheng2024/authors-descent": Case(
        {"samples": 20, "replicas": 4}, longer_steps(1.05), (other_draws,), traced=False
    ),
    "zheng2024/figure-1a": Case(
        {**CURVES, "schedules": [[1.0, 0.002, 40]]}, larger_cross_term, (longer_steps(1.2),), traced=False
    ),
    "zheng2024/figure-1b": Case({**CURVES, "schedules": [[1.0, 0.002, 40]]}, longer_steps(1.2), traced=False),
    "zheng2024/figure-1c": Case(
        {**CURVES, "schedules": [[1.0, 0.016, 50]]}, larger_cross_term, (longer_steps(1.05),), traced=False
    ),
    "zheng2024/last-term-only": Case({}, larger_cross_term, (later_times,), traced=False),
    "zheng2024/theorem-4.1-certified": Case(
        {"cases": [[law, 2, 6] for law in ("gaussian", "gaussian", "rademacher", "uniform", "one-hot")]},
        larger_rational_limits,
        (called("one-hot", Gaussian),),  # whose minimum is isolated
        traced=False,
    ),
    "zheng2024/masked-limit-certified": Case({"dim": 3, "horizon": 10}, larger_rational_limits, traced=False),
    "zheng2024/full-one-limit-certified": Case(
        {"dim": 2, "horizon": 10},
        called("full-one", Gaussian),  # where Theorem 4.1 names the end of the flow
        traced=False,
    ),
    "zheng2024/signed-diagonals-certified": Case(SMALL, larger_rational_limits, traced=False),
    "zheng2024/global-minimum": Case(
        {"horizon": 6, "starts": 8},
        larger_rational_limits,
        (another_landscape,),
        stuck=lost_searches,
        traced=False,
    ),
    # the first start comes to rest early
    "zheng2024/factored-weights": Case({**SMALL, "starts": 3, "seed": 3}, larger_limits, traced=False),
    "zheng2024/other-normalizers": Case(
        {"context_lengths": [2, 99]}, larger_limits, (other_best_normalizer,), traced=False
    ),
    "zheng2024/other-starts": Case({**SMALL, "starts": 1}, larger_limits, traced=False),
    "zheng2024/several-layers": Case({**TRAINED, "steps": 400}, depth_that_hurts, traced=False),
    "zheng2024/softmax": Case(
        {**TRAINED, "dim": 2, "steps": 500, "width": 16}, depth_without_use, traced=False
    ),
}
