"""Small settings and wrong worlds for the claims of vladymyrov2024."""

import numpy as np

from mesascope.papers.vladymyrov2024 import _exact, _mixed_noise, _named, _ridge, _second_order
from mesascope.papers.vladymyrov2024._ridge import Examples
from mesascope.theory import Construction
from mesascope.theory.vladymyrov2024 import _risk

from ._case import Case, at_rest, scaled, short_grids


def _weights_a_little_off(patch):
    right = _exact.construction_model
    patch.setattr(_exact, "construction_model", lambda c: right(Construction(c.w_kq, c.w_pv * (1 + 1e-9))))


def _curvature_a_tenth_off(patch):
    right = _second_order.vonoswald2023.gradient_descent_plus_plus
    patch.setattr(
        _second_order.vonoswald2023,
        "gradient_descent_plus_plus",
        lambda dim, steps, curvatures: right(dim, steps, [0.9 * c for c in curvatures]),
    )


def _steps_that_grow_more_slowly(patch):
    right = _second_order._Prompts.steps_of_descent
    patch.setattr(
        _second_order._Prompts, "steps_of_descent", lambda prompts, *limits: right(prompts, *limits) ** 0.9
    )


def _heads_that_do_not_read_labels(patch):
    right = _mixed_noise.trained
    patch.setattr(_mixed_noise, "trained", lambda settings, heads: right(settings, "gd++"))


def _layers_counted_twice(patch):
    right = _second_order._first
    patch.setattr(_second_order, "_first", lambda *args: 2 * right(*args))


def _starts_that_lead_to_the_local_minimum(patch):
    """All are the third start, from which the search ends at a layer of rank one, 1.4 times higher for σ_max = 5."""
    right = _exact._starts
    patch.setattr(_exact, "_starts", lambda settings: [right(settings)[2]] * 6)


def _ridges_without_penalty(patch):
    def least_squares(prompts):
        return np.zeros(len(prompts.noise))

    patch.setattr(_mixed_noise, "adaptive", least_squares)
    patch.setattr(_mixed_noise, "tuned", lambda known: least_squares)


def _one_penalty_that_knows_the_noise(patch):
    patch.setattr(_mixed_noise, "constant", lambda known: lambda prompts: prompts.noise)


def _losses_measured(factor):
    right = Examples.excess
    return lambda patch: patch.setattr(Examples, "excess", lambda *args: factor * right(*args))


def _falling_by_a_tenth_more(patch):
    right = _mixed_noise.fall
    patch.setattr(_mixed_noise, "fall", lambda *losses: right(*losses) + 0.1)


def _heads_asked(heads):
    """What is asked are heads of the other kind."""

    def other(patch):
        right = _named._asked
        patch.setattr(_named, "_asked", lambda settings, _: right(settings, heads))

    return other


NAMES = ["gradient-descent", "gradient-descent++", "ridge"]
SMALL = {"dim": 3, "examples": 6, "layers": 3, "steps": 300, "batch": 128, "prompts": 10_000, "seeds": 3}

# one training for all of them, also in the place of three layers, which take twice as long to come to rest
TWO = {"layers": 2, "steps": 600, "prompts": 10_000, "seeds": 2}

CASES = {
    # with an oracle a third of a percent better the column of σ_max = 5 misses by 1.6 %
    "vladymyrov2024/one-layer-row": Case(
        {}, scaled(_risk, "oracle_loss", 1.03), (scaled(_risk, "oracle_loss", 0.97),), traced=False
    ),
    "vladymyrov2024/linear-models": Case({"cases": [[3, 6, 3, 2]]}, _weights_a_little_off, traced=False),
    "vladymyrov2024/second-order": Case(
        {"prompts": 2}, _curvature_a_tenth_off, (_layers_counted_twice,), traced=False
    ),
    "vladymyrov2024/second-order-rate": Case(
        {"prompts": 2}, _layers_counted_twice, (_steps_that_grow_more_slowly,), traced=False
    ),
    "vladymyrov2024/one-layer-optimum": Case(
        {},
        scaled(_exact.theory, "one_layer_excess", 1 + 3e-6),
        (scaled(_exact.theory, "one_layer_excess", 1 - 3e-6),),
        stuck=_starts_that_lead_to_the_local_minimum,
        traced=False,
    ),
    "vladymyrov2024/two-layers": Case(
        TWO, at_rest(_mixed_noise, "fall", _losses_measured(1.2)), (_losses_measured(0.8),), traced=False
    ),
    # two layers lose more than the table says of three: not met by a training at rest, and undecided by any other
    "vladymyrov2024/three-layers": Case(
        TWO, _falling_by_a_tenth_more, decision="not met", turned="undecided", traced=False
    ),
    "vladymyrov2024/three-layers-beside-ridge": Case(
        {**TWO, "layers": [2], "steps": [600]},
        _ridges_without_penalty,
        (_one_penalty_that_knows_the_noise,),
        stuck=short_grids(_ridge),
        traced=False,
    ),
    # three layers, trained so shortly, stay above the tuned estimate, but not above least squares in its place
    "vladymyrov2024/mixed-noise": Case(
        {**SMALL, "steps": 150},
        _ridges_without_penalty,
        stuck=short_grids(_ridge),
        decision="not met",
        turned="met",
        traced=False,
    ),
    "vladymyrov2024/untuned-rivals": Case(
        SMALL, _heads_that_do_not_read_labels, stuck=short_grids(_ridge), traced=False
    ),
    "vladymyrov2024/categorical-noise": Case(
        SMALL, _heads_that_do_not_read_labels, stuck=short_grids(_ridge), traced=False
    ),
    "vladymyrov2024/gd-plus-plus-named": Case(
        {**SMALL, "tasks": 400, "learners": NAMES}, _heads_asked("diagonal"), traced=False
    ),
    "vladymyrov2024/diagonal-heads-nameless": Case(
        {**SMALL, "seeds": 2, "tasks": 120, "learners": NAMES}, _heads_asked("gd++"), traced=False
    ),
}
