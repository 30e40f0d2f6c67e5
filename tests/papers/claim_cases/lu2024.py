"""How the claims of lu2024 are tested."""

from mesascope.papers import lu2024
from mesascope.theory import lu2024 as theory

from . import Case, scaled


def no_term(patch):
    """The errors of n = infinity, without the first order in 1/n."""
    patch.setattr(lu2024, "_first_order", lambda *_: 0.0)


def less_noise(patch):
    """Exact errors of prompts with a hundredth less noise than the program has."""
    right = theory.features
    patch.setattr(theory, "features", lambda moments, examples, noise: right(moments, examples, 0.99 * noise))


CASES = {
    "lu2024/finite-dimension": Case(
        {"cases": [[1.0, 2.0]], "dims": [16, 64], "replicas": 300},
        scaled(theory, "fresh_error", 1.05),
        (less_noise,),
        traced=False,
    ),
    "lu2024/stored-sweeps": Case(
        {"cases": ["a01_t100_42349507"], "tasks": 500, "replicas": 8, "prompts": 2000},
        no_term,
        (less_noise,),
        traced=False,
    ),
}
