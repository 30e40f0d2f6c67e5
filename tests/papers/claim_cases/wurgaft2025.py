"""How the claims of wurgaft2025 are tested: with wrong formulas, and with planted mixtures in place of what was trained."""

import numpy as np

from mesascope.papers.wurgaft2025 import _data, _odds, _transition
from mesascope.theory import wurgaft2025 as theory

from . import Case

# Two seeds after a hundred steps decide nothing: that claims are met where they should be, with planted mixtures, is in
# `test_wurgaft2025.py`.
QUICK = {"horizon": 6, "steps": 100, "per_decade": 4, "sequences": 60, "width": 8, "batch": 8, "seeds": 2}
STEPS = [0, 1, 3, 10, 32, 100, 316, 1000]


def gap(tasks):
    return 0.3 / tasks**0.5


def planted(weight_of, noise=0.0, gap_of=gap):
    """Models that are mixtures: `weight_of(steps, tasks)` of memorizing, different by `noise` for each seed."""

    def world(patch):
        def course(settings, tasks):
            weights = np.array([weight_of(np.array(STEPS), tasks)] * settings.seeds, float)
            weights += noise * np.random.default_rng(tasks).standard_normal(weights.shape)
            left = np.zeros(weights.shape)
            near = np.full(settings.seeds, 1)
            return _data.Course(np.array(STEPS), weights, left, 0.02, gap_of(tasks), near)

        for module in (_odds, _transition):
            patch.setattr(module, "course", course)

    return world


def by_odds(alpha=0.6, beta=0.2, gamma=3.0, constant=False, noise=1e-3, gap_of=gap):
    """The weights that the formula gives, with a little noise."""

    def weight(steps, tasks):
        bits = theory.complexities(64 if constant else tasks, 8).values()
        odds = theory.log_odds(np.maximum(steps, 1), gap_of(tasks), *bits, alpha, beta, gamma)
        return 1 / (1 + np.exp(-odds))

    return planted(weight, noise, gap_of)


def falling(patch):
    """Weights fall, at the same rate on all pools."""
    planted(lambda steps, tasks: 0.9 - 0.1 * np.log10(steps + 1) - 0.001 * tasks)(patch)


def larger_pools_first(patch):
    planted(lambda steps, tasks: 0.1 * np.log10(steps + 1) + 0.001 * tasks)(patch)


def half_at(power, most=0.9):
    """Memorizing has half of the weight after a number of steps that is this power of K."""
    return planted(lambda steps, tasks: most / (1 + np.exp(-np.log((steps + 1e-3) / tasks**power))), 1e-3)


def alternating(patch):
    """Weights that no odds give: they go up and down."""
    planted(lambda steps, tasks: 0.5 + 0.3 * np.sin(3 * np.log(steps + 1) + tasks), 1e-3)(patch)


def alike(patch):
    """The pool's size does not matter to the weights: those of the pool before predict them better than any odds."""
    planted(lambda steps, tasks: 0.2 + 0.2 * np.log10(steps + 1), 1e-3)(patch)


def growing_bits(patch):
    """The same gap on all pools, so that only the bits tell them apart."""
    by_odds(0.6, 0.3, 9.0, gap_of=lambda tasks: 0.1)(patch)


def scattered(patch):
    """Every search ends where it starts."""

    def search(off, start, **settings):
        class End:
            x, cost, success = start, float((off(start) ** 2).sum()), True

        return End

    patch.setattr(_odds.scipy.optimize, "least_squares", search)


def of_a_smaller_pool(patch):
    """Memorizing forgets one urn."""
    right = theory.memorizing
    patch.setattr(theory, "memorizing", lambda tasks, counts: right(tasks[1:], counts))


def two_for_one(patch):
    """Counts begin at 2 instead of 1."""
    right = theory.generalizing
    patch.setattr(theory, "generalizing", lambda counts, concentration=1.0: right(counts, 2.0))


def exchanged(patch):
    """Losses of one strategy are those of the other."""
    for name in ("losses", "losses_on_new"):
        right = getattr(theory, name)

        def losses(*sizes, right=right):
            found = right(*sizes)
            return dict(zip(found, reversed(found.values()), strict=True))

        patch.setattr(theory, name, losses)


def by_root(patch):
    """The gap falls as 1/√K from the beginning."""
    right = theory.losses

    def losses(tasks, *more):
        found = right(tasks, *more)
        return found | {"generalizing": found["memorizing"] + 0.1 / len(tasks) ** 0.5}

    patch.setattr(theory, "losses", losses)


CASES = {
    "wurgaft2025/bayes": Case(
        {"sets": [[2, 5, 3], [3, 4, 5]]}, of_a_smaller_pool, (two_for_one, exchanged), traced=False
    ),
    "wurgaft2025/loss-gap": Case({"horizon": 20, "drawn": 12}, by_root, traced=False),
    **{
        f"wurgaft2025/{name}": Case(
            QUICK, world, more, stuck, decision="undecided", turned=turned, traced=False
        )
        for name, world, more, stuck, turned in (
            ("weights", falling, (larger_pools_first,), None, "not met"),
            ("superlinear", half_at(1.5, 1.0), (), None, "met"),
            ("odds", alternating, (), scattered, "not met"),
            ("left-out", alike, (), scattered, "not met"),
            ("constant-complexity", growing_bits, (), scattered, "not met"),
        )
    },
}
