"""How the claims of kim2024 are tested."""

from jax import numpy as jnp

from mesascope.papers.kim2024 import _fixed_features, _mean_field, _trained
from mesascope.processes import NonlinearRegression, RandomFeatures
from mesascope.theory import kim2024 as theory

from . import Case, scaled


def a_turned_target(patch):
    """Descent sees one of the targets a little elsewhere than it is."""
    right = _fixed_features._descended

    def wrong(start, targets, settings):
        turned = targets.copy()
        turned[0, 0] += 0.3
        return right(start, turned, settings)

    patch.setattr(_fixed_features, "_descended", wrong)


class OneExchanged(RandomFeatures):
    """The targets of a seed, but for the last, which is that of another seed."""

    def vectors(self, dim):
        others = RandomFeatures(self.features, 1000 + self.seed).vectors(dim)
        return jnp.concatenate([super().vectors(dim)[:, :-1], others[:, -1:]], 1)


def an_exchanged_target(patch):
    """Training sees prompts in which one of the four targets is another than in those that it is judged by."""
    right = _trained._trained

    def wrong(process, settings, seed):
        target = OneExchanged(process.target.features, process.target.seed)
        return right(NonlinearRegression(process.dim, target), settings, seed)

    patch.setattr(_trained, "_trained", wrong)


def turned_targets(patch):
    """The flow sees targets a little elsewhere than they are."""
    right = _mean_field._velocity

    def wrong(a, w, targets):
        turned = targets.copy()
        turned[0, 0] += 0.5
        return right(a, w, turned)

    patch.setattr(_mean_field, "_velocity", wrong)


def of_single_neurons(patch):
    """Speeds are −∂ℓ/∂θ_j, without the number of neurons."""
    right = _mean_field._velocity
    patch.setattr(
        _mean_field, "_velocity", lambda a, w, targets: tuple(one / len(a) for one in right(a, w, targets))
    )


CASES = {
    "kim2024/optimal-attention": Case(
        {"cases": [[3, 2, 2, 3]]},
        scaled(theory, "optimal_attention", 1 + 1e-9),
        traced=False,
    ),
    "kim2024/benign-landscape": Case({"widths": [4, 8], "starts": 1}, a_turned_target, traced=False),
    "kim2024/mean-field-flow": Case(
        {"width": 16, "seeds": 1}, turned_targets, (of_single_neurons,), traced=False
    ),
    # three sets of targets differ too much to refute what a single target changes, but it is not met any more
    "kim2024/learned-features": Case(
        {"steps": 200, "prompts": 4000, "inputs": 10_000, "seeds": 3},
        an_exchanged_target,
        turned="undecided",
        traced=False,
    ),
}
