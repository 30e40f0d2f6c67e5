"""How the claims of sander2024 are tested."""

import equinox as eqx
import numpy as np

from mesascope.papers.sander2024 import _augmented
from mesascope.theory import sander2024 as theory

from . import Case, scaled


def counted_twice(patch):
    """The loss of independent eigenvalues as the authors' program has it."""
    right = theory.unitary_loss

    def reported(heads, positions):
        return right(heads, positions) + positions[-2] ** 2 * np.sum(np.square(heads))

    patch.setattr(theory, "unitary_loss", reported)


def off_by_a_thousandth(name, place):
    """One position of the minimiser is 1.001 times what it should be."""

    def break_it(patch):
        right = getattr(theory, name)

        def wrong(*args):
            heads, positions = right(*args)
            positions[place] *= 1.001
            return heads, positions

        patch.setattr(theory, name, wrong)

    return break_it


def three_tenths_too_large(patch):
    """Trained layers that write 1.3 times what they should."""
    right = _augmented.trained_models

    def wrong(*args, **settings):
        return [
            eqx.tree_at(lambda m: m.network.layers[0].w_pv, model, 1.3 * model.network.layers[0].w_pv)
            for model in right(*args, **settings)
        ]

    patch.setattr(_augmented, "trained_models", wrong)


CASES = {
    "sander2024/losses": Case({"contexts": [3]}, counted_twice),
    "sander2024/unitary-minimiser": Case(
        {"dim": 2, "longest": 3, "fewer": [1]}, off_by_a_thousandth("unitary_minimiser", -1)
    ),
    "sander2024/rotation-minimiser": Case(
        {"dim": 2, "heads": 1, "longest": 3, "starts": 2}, off_by_a_thousandth("rotation_minimiser", -2)
    ),
    # a step a ten-thousandth larger
    "sander2024/augmented-step": Case({"dim": 2, "contexts": [4]}, scaled(theory, "augmented_step", 1.0001)),
    "sander2024/without-commuting": Case(
        {"dim": 3, "horizon": 6, "steps": 300, "seeds": 3, "sequences": 4000}, three_tenths_too_large
    ),
}
