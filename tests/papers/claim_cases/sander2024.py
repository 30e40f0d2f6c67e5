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
        right = _without_commuting.best_step

        def wrong(tokens, task):
            best = right(tokens, task)
            return best._replace(loss=factor * best.loss)

        patch.setattr(_without_commuting, "best_step", wrong)

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


def exchanged(one, other):
    """Two variants of a trained layer have each other's names."""

    def break_it(patch):
        right = _softmax_and_mlp._VARIANTS
        patch.setattr(_softmax_and_mlp, "_VARIANTS", {**right, one: right[other], other: right[one]})

    return break_it


def better_where_tokens_are_equal(patch):
    """The best step leaves half of what it leaves where all tokens have one size."""
    right = _softmax_and_mlp.best_step

    def wrong(tokens, task):
        best, sizes = right(tokens, task), np.linalg.norm(tokens[:, 0], axis=-1)
        return best._replace(relative=best.relative / 2) if np.ptp(sizes) < 1e-9 else best

    patch.setattr(_softmax_and_mlp, "best_step", wrong)


def one_number_of(scale, row, factor):
    """A stored position is `factor` times what it should be."""

    def break_it(patch):
        right = _positions_alone.stored_positions

        def wrong(asked):
            rows = right(asked).copy()
            rows[row] *= factor if asked == scale else 1.0
            return rows

        patch.setattr(_positions_alone, "stored_positions", wrong)

    return break_it


def later_stop(patch):
    """Descent goes on until the last position has most of its weight."""
    right = _positions_alone._stopped
    patch.setattr(
        _positions_alone, "_stopped", lambda gram, settings: right(gram, replace(settings, stop=1e-9))
    )


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
        {"scales": [100], "replicas": 3, "steps": 3, "batch": 5},
        scaled(theory, "position_gram", 1.1),
        (scaled(theory, "descended_positions", 1 + 1e-9), one_number_of(100, 20, 1.2), later_stop),
        traced=False,
    ),
    "sander2024/softmax-and-mlp": Case(
        {"batch": 64, "steps": 500, "seeds": 3, "sequences": 4000},
        better_where_tokens_are_equal,
        (exchanged("linear, MLP", "softmax, MLP"), exchanged("linear", "softmax, MLP")),
        traced=False,
    ),
}
