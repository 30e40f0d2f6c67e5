"""Small settings and wrong worlds for the claims of fu2024."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np

from mesascope.papers.fu2024 import _depth, _ill_conditioned, _newton, _similar, _transformer
from mesascope.probes import StepFamily
from mesascope.probes._step_family import family_answers

from ._case import Case, scaled


def _other_iterations(make):
    """Another learner instead of Newton's iterations."""

    def world(patch):
        patch.setattr(_similar, "newton", make)
        patch.setattr(
            _newton, "tables", _similar.tables.__wrapped__
        )  # not the cached ones of the right world

    return world


# steps in whose number every iteration adds 30
_linear = _other_iterations(lambda count: _similar.SumSteps(0.01, 9 + 30 * count))
# steps that every iteration multiplies by 2^0.4, for √2
_slower = _other_iterations(lambda count: _similar.SumSteps(0.01, jnp.round(6 * 2 ** (0.4 * count))))
_three_later = _other_iterations(lambda count: _similar.FrobeniusNewton(count + 3.0))
_two_at_once = _other_iterations(lambda count: _similar.FrobeniusNewton(2.0 * count))


def _too_few_steps(patch):
    """The most gradient steps that are tried are fewer than those of the last iterations."""
    tried, tables = _newton.tried, _newton.tables

    def fewer(settings):
        iterations, steps = tried(settings)
        return iterations, steps[:-15]

    patch.setattr(_newton, "tried", fewer)
    patch.setattr(_newton, "tables", lambda settings: tables(settings)[..., :-15])


def _too_few_iterations(patch):
    """Fewer than those of the last layer are tried."""
    right = _newton.similarities
    patch.setattr(_newton, "similarities", lambda *args: right(*args)[:18])


def _layers_that_gain_more(patch):
    """The last layer is worth four of Newton's iterations, those before it three."""
    counts = {1: 3, 2: 6, 3: 10}
    patch.setattr(
        _depth._Prompts,
        "of_model",
        lambda prompts, model: prompts.newton[counts[len(model.network.layers)]],
    )


def _factors_that_grow(patch):
    """Every layer multiplies the gradient steps by a little more than the one before."""
    right_error, right_counts = _depth._Prompts.of_model, _depth._Prompts.equivalents

    read = []  # errors of models beside their depths

    def of_model(prompts, model):
        read.append((right_error(prompts, model), len(model.network.layers)))
        return read[-1][0]

    def depth_of(error):
        return next(depth for one, depth in read if one is error)

    patch.setattr(_depth._Prompts, "of_model", of_model)
    patch.setattr(
        _depth._Prompts,
        "equivalents",
        lambda prompts, error: (right_counts(prompts, error)[0], 4.0 ** depth_of(error) ** 1.1),
    )


def _searched_from_one_start(patch):
    """One start leads to the best; all others are the layers before with a small new one, and stop in a local minimum."""
    right = _depth.best_layers
    patch.setattr(_depth, "best_layers", right.__wrapped__)
    starts = _depth._starts

    def few(seen, depth, seed, count):
        grown = np.zeros(0)
        for _ in range(depth):
            new = np.random.default_rng([seed, len(grown) // 2]).normal(size=2) * 0.02
            grown = _descended(seen, np.concatenate([grown, new]))
        return [*([grown] * 5), _best_of_starts(seen, starts(seen, depth, seed, count))]

    patch.setattr(_depth, "_starts", few)


def _descended(seen, start):
    with np.errstate(all="ignore"):
        return _depth.minimized(lambda flat: _depth.log_loss(flat, *seen), start, np.inf).point


def _best_of_starts(seen, starts):
    ends = [_descended(seen, start) for start in starts]
    return min(ends, key=lambda end: float(_depth.log_loss(end, *seen)[0]))


def _layers_read_as_iterations(patch, each=3):
    """Behind every layer three more of Newton's iterations can be read."""

    def read(model, probed, judged):
        counts = each * np.arange(len(model.network.layers) // 2 + 1)
        learners = tuple(_similar.FrobeniusNewton(int(count)) for count in counts)
        return family_answers(StepFamily("newton", counts, learners), judged)

    patch.setattr(_transformer, "_read", read)


def _layers_read_as_more_iterations_than_are_tried(patch):
    _layers_read_as_iterations(patch, each=8)


def _milder(patch):
    """The condition numbers are the roots of those that are said."""
    right = _ill_conditioned._spectra

    def spectra(settings, batch):
        return right(replace(settings, conditions=tuple(one**0.5 for one in settings.conditions)), batch)

    patch.setattr(_ill_conditioned, "_spectra", spectra)


def _first_order_start(patch):
    """Newton's iteration starts at αI, whose iterations leave (1 − αs)^(2^k)."""
    patch.setattr(_ill_conditioned, "_of_the_start", _ill_conditioned._of_a_step)


CASES = {
    "fu2024/newton-layers": Case(
        {"cases": [[3, 6, 2]]}, scaled(_newton.theory, "newton_error", 1 + 1e-9), traced=False
    ),
    "fu2024/gradient-steps": Case(
        {"prompts": 30, "batches": 3},
        _linear,
        (scaled(_newton, "tables", 0.98),),
        stuck=_too_few_steps,
        traced=False,
    ),
    "fu2024/root-two": Case(
        {"prompts": 30, "batches": 3}, _linear, (_slower,), stuck=_too_few_steps, traced=False
    ),
    "fu2024/printed-steps": Case(
        {"batches": 3, "prompts": 30},
        _two_at_once,
        (_three_later,),
        stuck=_too_few_iterations,
        traced=False,
    ),
    "fu2024/ill-conditioned": Case(
        {"batches": 3, "prompts": 10}, _milder, (_first_order_start,), traced=False
    ),
    "fu2024/depth": Case(
        {
            "dim": 4,
            "examples": 8,
            "training_prompts": 200,
            "prompts": 200,
            "tasks": 80,
            "starts": 40,
            "layers": [1, 2, 3],
            "seeds": 2,
        },
        _layers_that_gain_more,
        (_factors_that_grow,),
        stuck=_searched_from_one_start,
        traced=False,
    ),
    "fu2024/transformer": Case(
        {
            "layers": 4,
            "width": 16,
            "steps": 200,
            "batch": 32,
            "tasks": 200,
            "most_iterations": 16,
            "seeds": 3,
        },
        _layers_read_as_iterations,
        stuck=_layers_read_as_more_iterations_than_are_tried,
        decision="undecided",
        turned="met",
        traced=False,
    ),
}
