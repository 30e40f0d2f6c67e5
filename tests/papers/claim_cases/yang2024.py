"""How the claims of yang2024 are tested."""

from mesascope.papers.yang2024 import _delta_rule
from mesascope.theory import yang2024 as theory

from . import Case, scaled

SMALL = {"cases": [[2, 2, 7]]}


def other_rates(patch):
    """The matrix products have rates a little larger than those of the layer."""
    right = _delta_rule.gates_of
    patch.setattr(_delta_rule, "gates_of", lambda *args: {"rate": right(*args)["rate"] * (1 + 1e-8)})


def without_interference(patch):
    """Sums of random keys answer nearly as those of orthonormal keys do."""
    patch.setattr(theory, "sum_recall_moments", lambda dim, pairs: (1.001, 1.0))


def larger_squares(patch):
    """The answers of the delta rule are a tenth larger in mean square."""
    right = theory.recall_moments

    def wrong(dim, pairs, rate):
        square, product = right(dim, pairs, rate)
        return 1.1 * square, product

    patch.setattr(theory, "recall_moments", wrong)


CASES = {
    "yang2024/repeated-keys": Case(
        SMALL,
        scaled(_delta_rule, "_last", 1 + 1e-9),
        (
            scaled(_delta_rule, "_moving_average", 1 + 1e-9),
            scaled(_delta_rule, "_sum", 1 + 1e-9),
        ),
        traced=False,
    ),
    "yang2024/chunkwise-form": Case(
        {**SMALL, "sizes": [1, 3]},
        scaled(theory, "chunkwise", 1 + 1e-8),
        (other_rates,),
        traced=False,
    ),
    "yang2024/random-keys": Case(
        {"dim": 4, "longest": 12, "tried": 10},
        larger_squares,
        (without_interference, scaled(theory, "least_recall_error", 1.3)),
        traced=False,
    ),
}
