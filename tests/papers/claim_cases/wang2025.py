"""How the claims of wang2025 are tested."""

import numpy as np

from mesascope.papers.wang2025 import _correlations, _forgetting, _solvers
from mesascope.theory import wang2025 as theory

from . import Case, scaled, short_grids

SMALL = {"cases": [[2, 2, 5]], "sequences": 2}


def off(name):
    """The memories of one solver are a billionth too large."""

    def break_it(patch):
        rule, right = _solvers._SOLVERS[name]
        wrong = lambda pairs, gates: (memory * (1 + 1e-9) for memory in right(pairs, gates))  # noqa: E731
        patch.setitem(_solvers._SOLVERS, name, (rule, wrong))

    return break_it


def wider_kernel(patch):
    """Attention has a bandwidth a millionth larger."""
    right = _solvers._attention
    patch.setattr(_solvers, "_attention", lambda w, m, bandwidth: right(w, m, bandwidth * (1 + 1e-6)))


def without_lengths(patch):
    """Free keys of all lengths count alike."""
    patch.setattr(_solvers, "_longer_keys_count_more", _solvers._gaussian_kernel)


def uncorrelated(patch):
    """The inputs are uncorrelated at every condition number."""
    patch.setattr(_correlations, "_covariance", lambda dim, condition, seed: np.eye(dim))


def other_decay(patch):
    """Layers forget a thousandth less than is said."""
    right = theory.linear_attention
    patch.setattr(theory, "linear_attention", lambda step, decay=1.0: right(step, decay * 1.001))


def at_rest(patch):
    """The weights stand still whatever the drift."""
    right = theory.squared_errors
    patch.setattr(theory, "squared_errors", lambda *args, drift, **others: right(*args, drift=0.0, **others))


def no_gain(patch):
    """The errors with decay 1 are said to be those with the best decay."""
    right = _forgetting._best_decay

    def wrong(settings, drift):
        decay, error, _ = right(settings, drift)
        return decay, error, error

    patch.setattr(_forgetting, "_best_decay", wrong)


FIRST, *OTHERS = _solvers._SOLVERS

CASES = {
    "wang2025/layers-are-solvers": Case(SMALL, off(FIRST), tuple(map(off, OTHERS)), traced=False),
    "wang2025/softmax-is-kernel-regression": Case(SMALL, wider_kernel, (without_lengths,), traced=False),
    "wang2025/orthonormal-keys": Case(
        {"cases": [[3, 2]], "matrices": 2},
        scaled(_correlations, "_memory", 1 + 1e-8),
        (scaled(_correlations, "_gap", 1 + 1e-8),),
        traced=False,
    ),
    "wang2025/correlated-keys": Case(
        {"dim": 3, "examples": 20, "fewer": 5, "conditions": [1, 30]},
        scaled(theory, "best_linear_attention_error", 1 + 1e-6),
        (uncorrelated,),
        traced=False,
    ),
    "wang2025/forgetting": Case(
        {"dim": 2, "examples": 8, "tried": 15},
        other_decay,
        (at_rest, no_gain),
        stuck=short_grids(_forgetting),
        traced=False,
    ),
}
