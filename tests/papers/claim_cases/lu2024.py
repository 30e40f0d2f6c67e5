"""How the claims of lu2024 are tested."""

import numpy as np

from mesascope.papers.lu2024 import _double_descent, _map, _stored
from mesascope.theory import lu2024 as theory

from . import Case, scaled


def no_term(patch):
    """The errors of n = infinity, without the first order in 1/n."""
    patch.setattr(_stored, "_first_order", lambda *_: 0.0)


def less_noise(patch):
    """Exact errors of prompts with a hundredth less noise than the program has."""
    right = theory.features
    patch.setattr(theory, "features", lambda moments, examples, noise: right(moments, examples, 0.99 * noise))


def with_ridge(patch):
    """A penalty that leaves no peak."""
    patch.setattr(_double_descent, "_PENALTY", 1.0)


def only_ends(patch):
    """A flow that is at its end at every time."""
    patch.setattr(
        theory.Features,
        "after",
        lambda self, times: np.broadcast_to(self.minimum, (*times.shape, *self.cross.shape)),
    )


def errors_on_the_pool(patch):
    """Everything is judged on the tasks that it was trained on."""
    right = theory.Features.after
    patch.setattr(_map, "_errors", lambda fresh, pool: pool.error(right(pool, _map._TIMES)))


def without_squares(patch):
    """The layer does not read the squared labels."""
    right = theory.features
    patch.setattr(theory, "features", lambda *args: _without(right(*args)))


def _without(features):
    cross, gram = features.cross.copy(), features.gram.copy()
    cross[:, -1] = gram[-1, :-1] = gram[:-1, -1] = 0
    return theory.Features(cross, gram, features.power)


CASES = {
    "lu2024/finite-dimension": Case(
        {"cases": [[1.0, 2.0]], "dims": [16, 64], "replicas": 300},
        scaled(theory, "fresh_error", 1.05),
        (less_noise,),
        traced=False,
    ),
    "lu2024/double-descent": Case(
        {"cases": [0.2, 1.0, 4.0], "dims": [12, 24], "replicas": 20},
        with_ridge,
        (scaled(theory, "fresh_error", 1.5),),
        traced=False,
    ),
    "lu2024/stored-sweeps": Case(
        {"cases": ["a01_t100_42349507"], "tasks": 500, "replicas": 8, "prompts": 2000},
        no_term,
        (less_noise,),
        traced=False,
    ),
    "lu2024/mean-of-the-pool": Case(
        {"replicas": 30},
        without_squares,
        (scaled(theory, "fresh_error", 1.05),),
        traced=False,
    ),
    "lu2024/map": Case(
        {"replicas": 20, "drawn": 1, "sizes": [2, 200, 5]}, only_ends, (errors_on_the_pool,), traced=False
    ),
}
