"""How the claims of sander2024 are tested."""

from dataclasses import replace

import equinox as eqx
import numpy as np

from mesascope.papers.sander2024 import (
    _augmented,
    _double_count,
    _positions_alone,
    _rotations,
    _softmax_and_mlp,
    _without_commuting,
)
from mesascope.theory import sander2024 as theory

from . import Case, scaled


def counted_twice(patch):
    """The loss of independent eigenvalues as the authors' program has it."""
    right = theory.unitary_loss

    def reported(heads, positions):
        return right(heads, positions) + positions[-2] ** 2 * np.sum(np.square(heads))

    patch.setattr(theory, "unitary_loss", reported)


def counted_once(patch):
    """The authors' loss has the term once."""
    patch.setattr(_double_count.WithTheTermTwice, "loss", _double_count.IndependentEigenvalues.loss)


def other_start(patch):
    """The authors' descent from a start that is a thousandth larger."""
    right = _double_count.authors_start
    patch.setattr(
        _double_count,
        "authors_start",
        lambda heads: eqx.tree_at(lambda m: m.a, right(heads), replace_fn=lambda a: 1.001 * a),
    )


def both_twice(patch):
    """Both descents are those on the authors' loss."""
    patch.setattr(_double_count, "IndependentEigenvalues", _double_count.WithTheTermTwice)


def heads_off_by(name, factor):
    """One entry of the minimiser's C is `factor` times what it should be."""

    def break_it(patch):
        right = getattr(theory, name)

        def wrong(*args):
            heads, positions = right(*args)
            heads[0, 0] *= factor
            return heads, positions

        patch.setattr(theory, name, wrong)

    return break_it


def without_mask(patch):
    """Flows of all weights, which leave the diagonal."""
    patch.setattr(
        _augmented, "_flows", _augmented._flows.__wrapped__
    )  # those of the right world are not taken
    right = _augmented.gradient_flow
    patch.setattr(_augmented, "gradient_flow", lambda *args, mask, **more: right(*args, **more))


def off_by(name, place, factor=1.001):
    """One position of the minimiser is `factor` times what it should be."""

    def break_it(patch):
        right = getattr(theory, name)

        def wrong(*args):
            heads, positions = right(*args)
            positions[place] *= factor
            return heads, positions

        patch.setattr(theory, name, wrong)

    return break_it


def a_tenth_of_the_term_added(patch):
    """Trained layers that add a tenth of what they should subtract."""
    right = _without_commuting._trained

    def wrong(settings):
        dim = settings.dim
        place = (..., slice(dim, 2 * dim), slice(2 * dim, 3 * dim))  # keys x_i, queries x_{t−1}
        return [
            eqx.tree_at(
                lambda m: m.network.layers[0].w_kq, model, replace_fn=lambda w: w.at[place].multiply(-0.1)
            )
            for model in right(settings)
        ]

    patch.setattr(_without_commuting, "_trained", wrong)


def best_steps_with(factor):
    """A world in which the best step's loss is taken to be so many times what it is."""

    def break_it(patch):
        right = _without_commuting._best_step

        def wrong(tokens, task):
            best = right(tokens, task)
            return best._replace(loss=factor * best.loss)

        patch.setattr(_without_commuting, "_best_step", wrong)

    return break_it


def heavier_elsewhere(patch):
    """Trained layers whose weights beside the blocks of the step are three times what they should be."""
    right = _without_commuting._trained

    def grown(w):
        dim = w.shape[-1] // 3
        step = np.zeros(w.shape[-2:], bool)
        step[2 * dim :, dim : 2 * dim] = True
        return w * np.where(step, 1.0, 3.0)

    def wrong(settings):
        return [
            eqx.tree_at(lambda m: m.network.layers[0].w_kq, model, replace_fn=grown)
            for model in right(settings)
        ]

    patch.setattr(_without_commuting, "_trained", wrong)


def one_head_more(patch):
    """Flows that should have fewer heads than coordinates have as many."""
    right = _rotations._ends
    patch.setattr(_rotations, "_ends", lambda settings: right(replace(settings, heads=settings.dim)))


def exchanged(patch):
    """The two variants of a trained layer have each other's names."""
    linear, softmax = _softmax_and_mlp._VARIANTS.items()
    patch.setattr(_softmax_and_mlp, "_VARIANTS", {linear[0]: softmax[1], softmax[0]: linear[1]})


def better_rescaled(patch):
    """The rescaled isotropic layer leaves a tenth less than it does."""
    right = _softmax_and_mlp._best_isotropic

    def wrong(tokens):
        step, isotropic, rescaled = right(tokens)
        return step, isotropic, 0.9 * rescaled

    patch.setattr(_softmax_and_mlp, "_best_isotropic", wrong)


def a_stored_row_off_by(mu, row, factor):
    """The stored positions of one context are `factor` times what they should be."""

    def break_it(patch):
        right = _positions_alone.stored_positions

        def wrong(asked):
            rows = right(asked).copy()
            rows[row] *= factor if asked == mu else 1.0
            return rows

        patch.setattr(_positions_alone, "stored_positions", wrong)

    return break_it


def other_stop(patch):
    """The authors' rule stops at a loss a fifth smaller."""
    right = _positions_alone._stopped
    patch.setattr(
        _positions_alone,
        "_stopped",
        lambda gram, settings: right(gram, replace(settings, stop=0.8 * settings.stop)),
    )


def other_eigenvectors(patch):
    """The matrix has its eigenvalues, and eigenvectors with every other sign exchanged."""
    right = theory.position_gram

    def wrong(context, largest_angle):
        signs = (-1.0) ** np.arange(context)
        return signs[:, None] * right(context, largest_angle) * signs

    patch.setattr(theory, "position_gram", wrong)


def smaller_files(patch):
    """Stored positions near the minimum without their last entry."""
    right = _positions_alone.stored_positions
    patch.setattr(_positions_alone, "stored_positions", lambda mu: 0.1 * right(mu))


TURNING = {"dim": 2, "heads": 1, "longest": 3, "starts": 4}

CASES = {
    "sander2024/rotation-loss": Case(
        {"contexts": [3]}, scaled(theory, "rotation_loss", 1 + 1e-9), traced=False
    ),
    "sander2024/unitary-minimiser": Case(
        {"dim": 2, "longest": 3, "starts": 2},
        off_by("unitary_minimiser", -1),
        (heads_off_by("unitary_minimiser", 1.001),),
        traced=False,
    ),
    "sander2024/fewer-heads": Case(
        {"dim": 2, "longest": 3, "fewer": [1], "starts": 2},
        scaled(theory, "unitary_least_loss", 1.001),
        traced=False,
    ),
    "sander2024/rotation-minimiser": Case(
        TURNING, off_by("rotation_minimiser", -2), (heads_off_by("rotation_minimiser", 1.001),), traced=False
    ),
    "sander2024/rotation-ends": Case(
        TURNING, one_head_more, (off_by("rotation_minimiser", -2),), traced=False
    ),
    "sander2024/stored-weights": Case(
        {"steps": 10},
        off_by("unitary_minimiser", -1, 1.00001),
        (
            heads_off_by("unitary_minimiser", 1.00001),
            off_by("rotation_minimiser", -1, 1.00001),
            off_by("rotation_minimiser", -2, 1.01),
            heads_off_by("rotation_minimiser", 1.005),
        ),
        traced=False,
    ),
    "sander2024/double-count": Case(
        {"contexts": [3]}, counted_twice, (counted_once, other_start, both_twice), traced=False
    ),
    "sander2024/augmented-step": Case(
        {"dim": 2, "contexts": [4]},
        without_mask,
        (scaled(theory, "augmented_step", 1.0001), scaled(theory, "augmented_loss", 1.0001)),
        traced=False,
    ),
    "sander2024/without-commuting": Case(
        {"dim": 3, "horizon": 6, "steps": 300, "seeds": 3, "sequences": 4000},
        a_tenth_of_the_term_added,
        (best_steps_with(0.9), best_steps_with(1.1), heavier_elsewhere),
        traced=False,
    ),
    "sander2024/positions-alone": Case(
        {"mus": [100], "replicas": 3, "steps": 3, "batch": 5},
        scaled(theory, "position_gram", 1.1),
        (
            scaled(theory, "descended_positions", 1 + 1e-9),
            a_stored_row_off_by(100, 20, 1.2),
            other_stop,
            other_eigenvectors,
            smaller_files,
        ),
        traced=False,
    ),
    "sander2024/softmax-and-mlp": Case(
        {"seeds": 3, "sequences": 4000}, better_rescaled, (exchanged,), traced=False
    ),
}
