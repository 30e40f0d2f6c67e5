"""How the claims of ahn2023 are tested."""

from dataclasses import replace

import numpy as np

from mesascope.papers.ahn2023 import (
    _critical,
    _deep,
    _distances,
    _multiples,
    _one_layer,
    _printed,
    _proved,
    _sizes,
)
from mesascope.processes import LinearRegression
from mesascope.theory import ahn2023 as theory

from . import Case, at_rest, writes_more

MORE = writes_more(theory, "preconditioned_gradient_descent")
SMALL = {"cases": [[2, 5, 2]], "prompts": 4}
DEEP = {
    "eigenvalues": [1.0, 0.1],
    "examples": 8,
    "layers": 2,
    "prompts": 20_000,
    "batch": 1000,
    "seeds": 2,
    "starts": 12,
}
NAME = "preconditioned-gradient-descent"


def of_more_examples(patch):
    """The closed form is taken for one and a half times as many examples as there are."""
    right = theory.one_layer_preconditioner
    patch.setattr(theory, "one_layer_preconditioner", lambda sigma, n: right(sigma, 3 * n // 2))


def of_a_hundredth_more(patch):
    """The loss of the closed form is a millionth too large."""
    right = theory.one_layer_loss
    patch.setattr(theory, "one_layer_loss", lambda *args: right(*args) * (1 + 1e-6))


def milder_covariance(patch):
    """The covariance that trained layers are compared with has the roots of the eigenvalues."""
    right = _deep.trained

    def wrong(*args):
        def milder(sigma):
            values, vectors = np.linalg.eigh(sigma)
            return (vectors * values**0.5) @ vectors.T

        return [run._replace(sigma=milder(run.sigma)) for run in right(*args)]

    patch.setattr(_deep, "trained", wrong)


def another_b(patch):
    """B of the trained layers turns the inputs by a tenth."""
    right = _deep.trained

    def wrong(settings, moves):
        turn = np.eye(len(settings.eigenvalues))
        turn[0, 1], turn[1, 0] = 0.2, -0.2
        return [run._replace(end=run.end._replace(b=run.end.b @ turn)) for run in right(settings, moves)]

    patch.setattr(_deep, "trained", wrong)


def one_search(patch):
    """The search for the best multiples starts once."""
    right = _multiples._starts
    patch.setattr(_multiples, "_starts", lambda *args: list(right(*args))[:1])


def local_minimum(patch):
    """Searches for three layers that move inputs all start beside the same local minimum, those of two beside another."""
    near = {5: [0.717, 2.649, 7.163, 0.341, 0.345], 3: [3.0, 0.2, 0.5]}
    right = _multiples._starts

    def wrong(spectrum, settings, unknowns):
        start = near.get(unknowns)
        return right(spectrum, settings, unknowns) if start is None else [np.array(start)] * 3

    patch.setattr(_multiples, "_starts", wrong)


def rank_one(patch):
    """Searches for the best layer all begin where they lead to a layer of rank one, at 2.2 times the least loss."""
    right = _one_layer.best_layer
    patch.setattr(_one_layer, "best_layer", lambda starts, *args: right([list(starts)[2]] * 6, *args))


def losses_a_tenth_smaller(patch):
    """All losses are nine tenths of what they should be."""
    right = _printed.fresh_losses

    def wrong(*args):
        return {name: 0.9 * losses for name, losses in right(*args).items()}

    patch.setattr(_printed, "fresh_losses", wrong)


def of_fewer_examples(patch):
    """Spectra are drawn of prompts with 15 examples."""
    right = _printed.drawn_spectrum
    patch.setattr(
        _printed, "drawn_spectrum", lambda settings: right(replace(settings, examples=settings.examples - 5))
    )


def without_rare_prompts(patch):
    """The density ends at 5."""
    right = _printed.density

    def wrong(*args):
        values, weights = right(*args)
        return values, np.where(values > 5, 0.0, weights)

    patch.setattr(_printed, "density", wrong)


def another_prior(patch):
    """w ~ N(0, P) with another P than the inverse of Σ, by a hundredth in one entry."""
    right = _critical._loss

    def wrong(*args, inverse, **others):
        change = np.zeros((len(inverse), len(inverse)))
        change[0, 0] = 0.01
        return right(*args, inverse=inverse + change, **others)

    patch.setattr(_critical, "_loss", wrong)


def of_one_example_more(patch):
    """The spectral moments are those of one more example."""
    right = _sizes.spectral_moments
    for module in (_proved, _sizes):
        patch.setattr(module, "spectral_moments", lambda most, d, n: right(most, d, n + 1))


def roots_of_the_eigenvalues(patch):
    """A_i of flows are compared with the inverse root of Σ."""
    right = _distances.symmetric_power
    patch.setattr(_distances, "symmetric_power", lambda sigma, power: right(sigma, power / 2))


def best_of_fewer_examples(patch):
    """The best multiples are searched for prompts with one example less."""
    right = _distances.expected_spectrum
    patch.setattr(
        _distances,
        "expected_spectrum",
        lambda settings: right(replace(settings, examples=settings.examples - 1)),
    )


def isotropic(patch):
    """Flows are on inputs with Σ = I."""
    right = _distances.data

    def wrong(settings, prior):
        return right(replace(settings, eigenvalues=(1.0,) * len(settings.eigenvalues)), prior)

    patch.setattr(_distances, "data", wrong)


def least(change):
    """A world in which the least losses, found for settings, layers and examples, are others."""

    def break_it(patch):
        right = _sizes._least
        patch.setattr(_sizes, "_least", lambda *sizes: change(right, *sizes))

    return break_it


equal_steps = least(lambda right, *sizes: (one := right(*sizes))._replace(layers=one.preconditioned))
two_layers = least(lambda right, settings, layers, examples: right(settings, min(layers, 2), examples))
all_examples = least(lambda right, settings, layers, _: right(settings, layers, settings.examples))


def plain_on_isotropic_inputs(patch):
    """Plain steps are taken on inputs with Σ = I, where they are the preconditioned ones."""
    right = _sizes._one_step_size
    patch.setattr(
        _sizes, "_one_step_size", lambda process, *sizes: right(LinearRegression(process.dim), *sizes)
    )


def one_start(patch):
    """The search for the best layers starts once."""
    right = _sizes._starts
    patch.setattr(_sizes, "_starts", lambda *args: right(*args)[:1])


CASES = {
    "ahn2023/lemma-1": Case(SMALL, MORE, traced=False),
    "ahn2023/input-updates": Case(SMALL, MORE, traced=False),
    "ahn2023/theorem-1": Case(
        {"eigenvalues": [1.0, 0.25], "starts": 6}, of_more_examples, (of_a_hundredth_more,), stuck=rank_one
    ),
    "ahn2023/named": Case(
        {
            "eigenvalues": [1.0, 1.0, 0.5, 0.25, 1.0],
            "rate": 0.03,
            "steps": 700,
            "seed": 0,
            "seeds": 3,
            "prompts": 5000,
            "tasks": 120,
            "learners": ["zero", "gradient-descent", NAME],
        },
        of_more_examples,
        traced=False,
    ),
    "ahn2023/critical-points": Case(
        {"cases": {"still": [[2, 2, 2]], "moves": [[2, 2, 2]]}}, another_prior, traced=False
    ),
    "ahn2023/critical-points-proved": Case(
        {"eigenvalues": [1.0, 0.25], "examples": 6, "layers": [2]}, of_one_example_more, traced=False
    ),
    "ahn2023/distance-along-the-flow": Case(
        {"eigenvalues": [1.0, 0.25], "layers": [2], "starts": 1},
        roots_of_the_eigenvalues,
        (best_of_fewer_examples, isotropic),
        stuck=one_search,
        traced=False,
    ),
    "ahn2023/layers-and-examples": Case(
        {"eigenvalues": [1.0, 0.25], "layers": [1, 2, 3], "lengths": [10, 20], "starts": 4},
        equal_steps,
        (plain_on_isotropic_inputs, two_layers, all_examples),
        stuck=one_start,
        traced=False,
    ),
    "ahn2023/theorem-3": Case(
        {**DEEP, "rate": 0.05, "steps": 2000}, milder_covariance, stuck=one_search, traced=False
    ),
    "ahn2023/theorem-4": Case(
        {**DEEP, "eigenvalues": [1.0, 0.15], "examples": 20, "steps": 6000, "spectra": 20_000},
        at_rest(_deep, "fall", milder_covariance),
        (another_b,),
        stuck=local_minimum,
        traced=False,
    ),
    "ahn2023/printed-losses": Case(
        {"starts": 30, "replicas": 100, "prompts": 100_000},
        losses_a_tenth_smaller,
        (of_fewer_examples,),
        stuck=local_minimum,
        traced=False,
    ),
    "ahn2023/rare-prompts": Case({"starts": 60}, without_rare_prompts, stuck=one_search, traced=False),
}
