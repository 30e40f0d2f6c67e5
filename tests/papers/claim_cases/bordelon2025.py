"""How the claims of bordelon2025 are tested."""

from fractions import Fraction

from mesascope.papers.bordelon2025 import _isotropic, _rotated
from mesascope.theory import bordelon2025 as theory

from . import Case


def one_example_more(patch):
    """A formula for contexts that are a millionth longer."""
    right = theory.limit_best_error
    patch.setattr(
        theory,
        "limit_best_error",
        lambda layers, context: right(layers, Fraction(context) * Fraction(1000001, 1000000)),
    )


def equal_steps(patch):
    """Steps of one size, the mean of the best."""
    right = theory.limit_best_steps

    def wrong(layers, context):
        steps = right(layers, context)
        return [steps.mean()] * len(steps)

    patch.setattr(theory, "limit_best_steps", wrong)


def useless_layers(patch):
    """Least errors of the first layer for any number of them."""
    right = theory.best_error
    patch.setattr(theory, "best_error", lambda layers, moments: right(min(layers, 1), moments))


def larger_gains(patch):
    """What is left is the root of what it should be, so that depth gains more on long contexts."""
    right = theory.best_error
    patch.setattr(
        theory, "best_error", lambda layers, moments: Fraction(float(right(layers, moments)) ** 0.25)
    )


def other_engine(module, factor):
    """Losses of the engine that are too large."""

    def break_it(patch):
        right = module.engine_error
        patch.setattr(module, "engine_error", lambda *args: right(*args) * factor)

    return break_it


def order_two(patch):
    """Errors at finite d whose difference from the limit falls as 1/d²: those at d²."""
    right = theory.finite_moments
    patch.setattr(theory, "finite_moments", lambda most, dim, n: right(most, dim * dim, n * dim))


def another_source(patch):
    """A source whose exponent is a twentieth larger."""
    right = _rotated._left
    patch.setattr(_rotated, "_left", lambda nu, beta, layers: right(nu, 1.05 * beta, layers))


CASES = {
    "bordelon2025/isotropic-best": Case({}, one_example_more, (equal_steps,), traced=False),
    "bordelon2025/isotropic-depth": Case(
        {"longest": [10**6]},
        useless_layers,
        (larger_gains, other_engine(_isotropic, 1.001)),
        traced=False,
    ),
    "bordelon2025/finite-dimension": Case({"layers": [1, 2]}, order_two, traced=False),
    "bordelon2025/rotated-depth": Case({}, useless_layers, (other_engine(_rotated, 1.0001),), traced=False),
    "bordelon2025/rotated-power-law": Case({"tried": [[2.0, 1.0], [1.5, 0.5]]}, another_source, traced=False),
}
