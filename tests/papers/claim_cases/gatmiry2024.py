"""How the claims of gatmiry2024 are tested."""

import equinox as eqx
import numpy as np

from mesascope.papers._minimized import Minimum
from mesascope.papers.gatmiry2024 import (
    _another_covariance,
    _common,
    _dominance,
    _extra_loops,
    _identities,
    _minimizer,
    _named,
    _rate,
)
from mesascope.processes import LinearRegression
from mesascope.theory import gatmiry2024 as theory

from . import Case, scaled, writes_more


def symmetric_only(patch):
    """Minimizers are sought among symmetric matrices."""
    right = _minimizer.minimizer
    patch.setattr(_minimizer, "minimizer", lambda *args, **_: right(*args, symmetric=True))


def larger_matrices(patch):
    """Minimizers are a fifth too large."""
    right = _minimizer.minimizer

    def wrong(*args):
        best = right(*args)
        return best._replace(points=tuple(1.2 * point for point in best.points))

    patch.setattr(_minimizer, "minimizer", wrong)


def fitted_again(patch):
    """Layers of the right world are not taken."""
    patch.setattr(_extra_loops, "_all_errors", _extra_loops._all_errors.__wrapped__)


def at_zero(dim):
    """A search that stays at the layer that answers 0."""
    return Minimum(np.zeros(dim * dim), float(dim))


def all_but_one_stay_at_zero(patch):
    """Every search but the first stays there."""
    fitted_again(patch)
    right = _common.search
    patch.setattr(
        _common,
        "search",
        lambda dim, examples, loops, seed, symmetric: (
            at_zero(dim) if seed[-1] else right(dim, examples, loops, seed, symmetric)
        ),
    )


def all_stay_at_zero(patch):
    """Every search stays there."""
    patch.setattr(_common, "search", lambda dim, *_: at_zero(dim))


def larger_test_inputs(patch):
    """Fresh prompts have inputs of twice the variance."""
    fitted_again(patch)
    right = _extra_loops.regression

    def wrong(settings):
        rows = right(settings).covariance
        return LinearRegression(len(rows), covariance=[[2 * c for c in row] for row in rows], prior="inverse")

    patch.setattr(_extra_loops, "regression", wrong)


def hard_prompts(patch):
    """One prompt in fifty stays at the error that it has after the loops of the fit, and that is large."""
    right = _extra_loops._all_errors

    def wrong(settings):
        errors, fitted = right(settings).copy(), settings.loops - 1
        stuck = errors[:, ::50, [fitted]] + errors[:, :, [fitted]].mean(1, keepdims=True) * 20
        errors[:, ::50, fitted:] = stuck
        return errors

    patch.setattr(_extra_loops, "_all_errors", wrong)


def stalled_medians(patch):
    """Further loops take nothing off the errors of fitted layers."""
    right = _extra_loops._all_errors
    patch.setattr(
        _extra_loops,
        "_all_errors",
        lambda settings: np.maximum(right(settings), 0.2 * right(settings)[..., [settings.loops - 1]]),
    )


def beside_the_best(patch):
    """Matrices are drawn beside the best one, whose loss is taken for a fifth of what it is."""
    patch.setattr(
        _dominance,
        "_matrices",
        lambda settings, loops: [
            theory.best_multiple(settings.dim, settings.examples, loops)
            * (np.eye(settings.dim) + 0.001 * np.random.default_rng(7).normal(size=(settings.dim,) * 2))
        ],
    )
    scaled(theory, "multiple_loss", 0.2)(patch)


def slow_flow(patch):
    """The flow takes a hundred times as long."""
    right = _rate.gradient_flow

    def wrong(*args, **settings):
        flow = right(*args, **settings)
        return eqx.tree_at(lambda one: one.times, flow, 100 * flow.times)

    patch.setattr(_rate, "gradient_flow", wrong)


def larger_steps_at_test_time(patch):
    """The layer that meets another covariance has a tenth larger steps."""
    right = _another_covariance.exact_loss

    def wrong(*sizes):
        loss = right(*sizes)
        return lambda matrix: loss(1.1 * matrix)

    patch.setattr(_another_covariance, "exact_loss", wrong)


def one_loop_more(patch):
    """The layer is applied once more than is said."""
    right = _named.looped_model
    patch.setattr(_named, "looped_model", lambda a, u, loops: right(a, u, loops + 1))


# which of the many best layers is found, rotations of each other, differs by machine, and rare prompts make up means
FITTED = {"sets": 8, "fresh": 2000, "starts": 6}
ASKED = {
    "dim": 2,
    "examples": 10,
    "loops": [2],
    "tasks": 100,
    "learners": ["gradient-descent", "least-squares"],
}
BEST = {
    "dim": 3,
    "examples": 20,
    "loops": [2],
    "starts": 4,
    "tasks": 100,
    "learners": ["zero", "gradient-descent", "least-squares", "ridge"],
}

CASES = {
    "gatmiry2024/loops-are-steps": Case(
        {"cases": [[2, 5, 3]], "prompts": 4},
        writes_more(theory, "looped_layer"),
        traced=False,
    ),
    "gatmiry2024/loops-in-closed-form": Case(
        {"cases": [[2, 5, 3]], "prompts": 4},
        writes_more(theory, "looped_layer"),
        traced=False,
    ),
    # Σ^{1/2} a hundred-thousandth too large
    "gatmiry2024/one-loop": Case(
        {"dim": 2, "examples": [6], "starts": 1},
        scaled(_identities, "root_of_covariance", 1 + 1e-5),
        traced=False,
    ),
    "gatmiry2024/minimizer": Case(
        {"dim": 2, "loops": [2], "examples": [40, 160], "starts": 4},
        larger_matrices,
        stuck=all_stay_at_zero,
        traced=False,
    ),
    # losses of multiples a hundred-thousandth too large
    "gatmiry2024/minimizer-is-not-symmetric": Case(
        {"dim": 3, "loops": [3], "examples": [80], "starts": 6},
        symmetric_only,
        (scaled(theory, "multiple_loss", 1 + 1e-5),),
        stuck=all_but_one_stay_at_zero,
        traced=False,
    ),
    "gatmiry2024/extra-loops": Case(FITTED, larger_test_inputs, stuck=all_but_one_stay_at_zero, traced=False),
    # steps a twentieth shorter still lower the loss after 18 loops; median errors that hardly fall; a mean of few prompts
    "gatmiry2024/extra-loops-turn": Case(
        FITTED,
        scaled(theory, "best_multiple", 0.95),
        (stalled_medians, hard_prompts),
        stuck=all_but_one_stay_at_zero,
        traced=False,
    ),
    "gatmiry2024/dominance-above-the-least-loss": Case(
        {"dim": 2, "loops": [1], "matrices": 8},
        beside_the_best,
        traced=False,
    ),
    "gatmiry2024/flow-rate": Case({"dim": 2, "loops": [1, 2], "starts": 1}, slow_flow, traced=False),
    "gatmiry2024/another-covariance": Case(
        {"dim": 2, "loops": [2], "matrices": 40}, larger_steps_at_test_time, traced=False
    ),
    "gatmiry2024/named": Case(ASKED, one_loop_more, traced=False),
    "gatmiry2024/best-layer-named": Case(BEST, one_loop_more, stuck=all_but_one_stay_at_zero, traced=False),
}
