"""How the claims of zhang2025 are tested."""

from dataclasses import replace

import equinox as eqx
import numpy as np

from mesascope.papers.zhang2025 import _fixed_points, _flows, _in_weights
from mesascope.processes import LinearRegression
from mesascope.theory import zhang2025 as theory

from . import Case

SMALL = {"eigenvalues": [0.7, 0.3], "examples": 9, "heads": 2, "seeds": 2}


def changed(name, change, places=slice(None, -1)):
    """A world in which this number of the plateaus at these places is another, that `change(number, settings)` returns."""

    def break_it(patch):
        right = _flows.plateaus_of

        def wrong(settings, *more):
            def of(found):
                points = found.points[places]
                where = lambda one: [getattr(point, name) for point in one.points[places]]  # noqa: E731
                return eqx.tree_at(where, found, [change(getattr(point, name), settings) for point in points])

            return [of(found) for found in right(settings, *more)]

        patch.setattr(_flows, "plateaus_of", wrong)

    return break_it


def shifted_points(patch):
    """Queries that are a little too large."""
    right = theory.fixed_point

    def wrong(*args):
        values, keys, queries = right(*args)
        return values, keys, queries * 2

    patch.setattr(theory, "fixed_point", wrong)


def another_formula(patch):
    """A sum over the set that is a little too small."""
    right = theory.fixed_point_error

    def wrong(eigenvalues, examples, learned):
        return right(eigenvalues, examples + 1, learned)

    patch.setattr(theory, "fixed_point_error", wrong)


def other_prompts(patch):
    """An engine of data with one eigenvalue a billionth larger."""

    def wrong(settings):
        eigenvalues = np.array(settings.eigenvalues) * np.r_[1 + 1e-9, np.ones(len(settings.eigenvalues) - 1)]
        return LinearRegression(len(eigenvalues), None, np.diag(eigenvalues))

    patch.setattr(_fixed_points, "process_of", wrong)


def equal_eigenvalues(patch):
    """Data with one eigenvalue several times, whose eigenvectors are any of a plane."""
    right = _fixed_points._searched

    def wrong(settings, start):
        equal = (np.mean(settings.eigenvalues),) * len(settings.eigenvalues)
        return right(replace(settings, eigenvalues=equal), start)

    patch.setattr(_fixed_points, "_searched", wrong)


def larger_maps(patch):
    """Critical points whose linear maps are a little too large."""
    right = _fixed_points._searched

    def wrong(settings, start):
        slope, gradient = right(settings, start)
        return slope * (1 + 1e-8), gradient

    patch.setattr(_fixed_points, "_searched", wrong)


def larger_errors(patch):
    """A formula whose errors are a little too large."""
    right = _flows._errors
    patch.setattr(_flows, "_errors", lambda settings: right(settings) * (1 + 1e-6))


def later(factor, size=None):
    """Plateaus that end later, for starts of one size or all."""
    return changed(
        "leaves", lambda time, settings: time * (factor if size is None or settings.scale == size else 1)
    )


def backwards(patch):
    """Flows that run back to their start, where nothing is known."""
    right = _in_weights._course

    def wrong(settings, share):
        one = right(settings, share)
        return replace(one, in_weights=one.in_weights[::-1], in_context=one.in_context[::-1])

    patch.setattr(_in_weights, "_course", wrong)


def other_share(patch):
    """New tasks where they should be known."""
    right = _in_weights._course
    patch.setattr(_in_weights, "_course", lambda settings, share: right(settings, 1 - share))


def longer_contexts(patch):
    """A formula for one example more."""
    right = theory.merged_course

    def wrong(values, sizes, eigenvalue, dim, examples, times):
        return right(values, sizes, eigenvalue, dim, examples + 1, times)

    patch.setattr(theory, "merged_course", wrong)


CASES = {
    "zhang2025/fixed-points": Case(
        {"eigenvalues": [0.5, 0.25]}, shifted_points, (another_formula, other_prompts), traced=False
    ),
    "zhang2025/no-other-fixed-points": Case(
        {"eigenvalues": [0.7, 0.3], "examples": 9, "heads": 2, "starts": 12},
        equal_eigenvalues,
        (larger_maps,),
        traced=False,
    ),
    "zhang2025/order": Case(
        SMALL, larger_errors, (changed("passed_at", lambda loss, _: loss * 1.02),), traced=False
    ),
    # later ends; a saddle of another kind
    "zhang2025/predicted-times": Case(
        SMALL, later(1.05), (changed("index", lambda index, _: index + 1),), traced=False
    ),
    "zhang2025/inverse-times": Case(SMALL, later(1.05, 0.0003), traced=False),
    # other losses; a slope that is 2 % too large
    "zhang2025/merged": Case(
        {**SMALL, "heads": 1},
        larger_errors,
        (changed("leaves", lambda time, settings: time + 0.2 * (settings.scale < 1e-4)),),
        traced=False,
    ),
    "zhang2025/merged-course": Case({"sizes": [[2, 9]]}, longer_contexts, traced=False),
    "zhang2025/in-weights": Case(
        {**SMALL, "heads": 1, "seeds": 1, "shares": [0.0, 0.3, 0.8, 1.0]},
        backwards,
        (other_share,),
        traced=False,
    ),
    # a second plateau that lasts; one that is left as the others are
    "zhang2025/low-rank": Case(
        {**SMALL, "ranks": [2]},
        changed("leaves", lambda time, _: time * 1.3, slice(1, 2)),
        (changed("order", lambda order, _: 3),),
        traced=False,
    ),
}
