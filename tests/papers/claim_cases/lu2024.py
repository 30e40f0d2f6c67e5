"""How the claims of lu2024 are tested."""

from dataclasses import replace

import numpy as np

from mesascope.papers.lu2024 import _double_descent, _full_layer, _map, _stored
from mesascope.processes import TaskPool
from mesascope.theory import lu2024 as theory

from . import Case, scaled


def no_term(patch):
    """The errors of n = infinity, without the first order in 1/n."""
    patch.setattr(_stored, "_first_order", lambda *_: 0.0)


def less_noise(patch):
    """Exact errors of prompts with a hundredth less noise than the program has."""
    right = theory.features

    def changed(process, task):
        base = process.process if isinstance(process, TaskPool) else process
        less = replace(base, noise=float(base.noise) * 0.99**0.5)
        return right(less if base is process else TaskPool(less, vectors=process.table), task)

    patch.setattr(theory, "features", changed)


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
    right = _map._errors
    patch.setattr(_map, "_errors", lambda *args: right(*args)[[1, 1]])


def less_error_of_gamma(patch):
    """Γ has a tenth less error than it has, on the pool and on new tasks."""
    scaled(theory.Features, "error", 0.9)(patch)


def more_error_of_gamma(patch):
    """Γ has three times the error that it has."""
    scaled(theory.Features, "error", 3.0)(patch)


def starts_at_zero(patch):
    """Every search starts at weights 0, where the loss is stationary."""
    right = _full_layer._starts
    patch.setattr(_full_layer, "_searched", _full_layer._searched.__wrapped__)
    patch.setattr(_full_layer, "_starts", lambda dim, size, count: right(dim, 0.0, count))


def without_squares(patch):
    """The layer does not read the squared labels."""
    right = theory.features
    patch.setattr(theory, "features", lambda *args: _without(right(*args)))


def _without(features):
    cross, gram = features.cross.copy(), features.gram.copy()
    cross[:, -1] = gram[-1, :-1] = gram[:-1, -1] = 0
    return features._replace(cross=cross, gram=gram)


CASES = {
    "lu2024/full-layer": Case(
        {"dim": 4, "examples": 8, "sizes": [2, 16], "replicas": [6, 5], "starts": [4, 14]},
        less_error_of_gamma,
        (more_error_of_gamma,),
        stuck=starts_at_zero,
        decision="undecided",  # in some of so small pools all minima are one
        traced=False,
    ),
    "lu2024/finite-dimension": Case(
        {"cases": [[1.0, 2.0]], "dims": [16, 64], "replicas": 300},
        scaled(theory, "icl_error", 1.05),
        (less_noise,),
        traced=False,
    ),
    "lu2024/double-descent": Case(
        {"cases": [0.2, 1.0, 4.0], "dims": [12, 24], "replicas": 20},
        with_ridge,
        (scaled(theory, "icl_error", 1.5),),
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
        (scaled(theory, "icl_error", 1.05),),
        traced=False,
    ),
    "lu2024/map": Case(
        {"replicas": 20, "drawn": 1, "sizes": [2, 200, 5]}, only_ends, (errors_on_the_pool,), traced=False
    ),
}
