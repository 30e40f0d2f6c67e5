"""How the claims of huang2024 are tested."""

import equinox as eqx
import numpy as np

from mesascope.papers.huang2024 import _model, _times, _trained
from mesascope.processes import OrthonormalFeatures
from mesascope.theory import huang2024 as theory

from . import Case, at_rest, scaled

SMALL = {"features": 3, "examples": 20}


def leaks(share):
    """A world in which a share of the attention is spread over all examples."""

    def break_it(patch):
        right = _model._CountedLoss.to_features

        def wrong(self, scores):
            alike = self.counts / self.counts.sum(1, keepdims=True)
            return (1 - share) * right(self, scores) + share * alike[:, :, None]

        patch.setattr(_model._CountedLoss, "to_features", wrong)

    return break_it


def noisy_labels(*variances):
    """A world in which the label of a query has noise: its variance, by feature or for all."""

    def break_it(patch):
        right = _model._CountedLoss.by_feature
        added = np.array(variances) / 2
        patch.setattr(_model._CountedLoss, "by_feature", lambda self, scores: right(self, scores) + added)

    return break_it


def probabilities(module, *values):
    """A world in which features have these probabilities."""
    return lambda patch: patch.setattr(
        module, "process_of", lambda settings: OrthonormalFeatures(4, probabilities=values)
    )


LESS_IMBALANCED = (0.34, 0.23, 0.22, 0.21)  # the others have two thirds of the dominant feature's probability


def changed_layers(part, factor):
    """Trained layers of which one part is larger by a factor."""

    def break_it(patch):
        right = _trained._layers

        def where(model):
            return getattr(model.network, part)

        patch.setattr(
            _trained,
            "_layers",
            lambda settings: {
                steps: [eqx.tree_at(where, model, factor * where(model)) for model in models]
                for steps, models in right(settings).items()
            },
        )

    return break_it


def smaller_scores(steps, factor):
    """Descent whose scores after this number of steps are smaller by a factor."""

    def break_it(patch):
        right = _trained.recorded_models

        def wrong(*args, **settings):
            found = right(*args, **settings)
            less = [eqx.tree_at(lambda m: m.scores, model, factor * model.scores) for model in found[steps]]
            return {**found, steps: less}

        patch.setattr(_trained, "recorded_models", wrong)

    return break_it


def later_first_phases(patch):
    """First phases take longer by a factor that grows as the square root of K."""
    right = _times._first
    patch.setattr(_times, "_first", lambda settings, k: k**0.5 * right(settings, k))


def late_with_the_square(patch):
    """Second phases take K times as long."""
    right = _times._second
    patch.setattr(_times, "_second", lambda settings, k, excess: k * right(settings, k, excess))


CASES = {
    "huang2024/exact-loss": Case(
        {"laws": [[0.6, 0.3, 0.1]], "examples": 8},
        scaled(theory, "equal_gap_loss", 1 + 1e-10),
        (leaks(1e-8),),
    ),
    "huang2024/balanced": Case(SMALL, leaks(0.06), (noisy_labels(0.01),)),
    "huang2024/late-rate": Case({"cases": [[2, 12]]}, scaled(theory, "late_excess", 1.02), traced=False),
    # features that learn together; a dominant one that is late; losses that stay
    "huang2024/stages": Case(
        {"examples": 25},
        probabilities(_model, *LESS_IMBALANCED),
        (noisy_labels(0.006, 0, 0, 0), noisy_labels(0, 0.1, 0.1, 0.1)),
    ),
    # the second and the third feature have each other's probability
    # integrals too long by a hundred-thousandth; other powers of K; a longer second phase
    "huang2024/phase-times": Case(
        {"features": 3, "examples": 10},
        scaled(theory, "one_gap_time", 1 + 1e-5),
        (later_first_phases, late_with_the_square, scaled(_times, "_second", 1.03)),
        traced=False,
    ),
    "huang2024/order-of-features": Case(
        {"examples": 25}, probabilities(_model, 0.7, 0.1, 0.12, 0.08), traced=False
    ),
    # answers a sixth larger; scores three tenths smaller
    "huang2024/trained-layer": Case(
        {"batch": 128, "prompts": 4000, "seeds": 3},
        at_rest(_trained, "fall", changed_layers("w_p", 7 / 6)),
        (at_rest(_trained, "fall", changed_layers("w_k", 0.7)),),
        traced=False,
    ),
    # features that learn together; scores that lag behind after 12 and after 600 steps
    "huang2024/sampled-stages": Case(
        {"examples": 25, "seeds": 3},
        probabilities(_trained, *LESS_IMBALANCED),
        (smaller_scores(12, 0.6), smaller_scores(600, 0.6)),
        traced=False,
    ),
}
