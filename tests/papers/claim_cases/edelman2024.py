"""How the claims of edelman2024 are tested: with wrong formulas, and with planted strategies in place of what was trained."""

import numpy as np

from mesascope.papers.edelman2024 import _data, _exact_flow, _phases
from mesascope.theory import edelman2024 as theory

from . import Case

QUICK = {"horizon": 6, "steps": 100, "per_decade": 2, "tasks": 100, "width": 8, "batch": 16}
ORDER = theory.STRATEGIES


def two_for_one(patch):
    """Counts begin at 2 instead of 1."""
    right = theory.probabilities
    patch.setattr(
        theory, "probabilities", lambda name, sequences, symbols, alpha: right(name, sequences, symbols, 2)
    )


def bigrams_lose_as_unigrams(patch):
    right = theory.losses

    def losses(*sizes):
        found = right(*sizes)
        return found | {"bigram": found["unigram"]}

    patch.setattr(theory, "losses", losses)


def with_half_a_count(patch):
    """Unigram counts that begin at ½ lose more, and longer."""
    right = theory.probabilities

    def probabilities(name, sequences, symbols, alpha):
        return right(name, sequences, symbols, 0.5 if name == "unigram" else alpha)

    patch.setattr(theory, "probabilities", probabilities)


def bigrams_for_unigrams(patch):
    right = theory.probabilities
    other = {"uniform": "uniform", "unigram": "bigram", "bigram": "unigram"}
    patch.setattr(theory, "probabilities", lambda name, *rest: right(other[name], *rest))


def values_for_keys(patch):
    """The weights that are set to 0 are those of values and outputs: the critical point sees the last symbol only."""
    patch.setattr(
        _exact_flow,
        "_keys_and_queries",
        lambda model: [w for one in model.network.layers for w in (one.layer.w_v, one.layer.w_p)],
    )


def planted(*strategies, from_seed=0):
    """Models that are these strategies one after another; those of the first seeds are the first one for ever."""

    def world(patch):
        def trained(settings):
            steps = [0, 1, 3, 10, 32, settings.steps]

            def model(step, place):
                order = strategies if place >= from_seed else strategies[:1]
                return _model(order[steps.index(step) * len(order) // len(steps)], settings.symbols)

            return {step: [model(step, place) for place in range(settings.seeds)] for step in steps}

        for module in (_data, _phases):
            patch.setattr(module, "trained", trained)
        patch.setattr(_phases, "followed", _data.followed.__wrapped__)

    return world


def _model(strategy, symbols):
    if callable(strategy):
        return strategy
    return lambda contexts: theory.probabilities(strategy, np.asarray(contexts), symbols, 1.0)


CASES = {
    "edelman2024/bayes": Case(
        {"sizes": [[2, 6], [3, 4]]}, two_for_one, (bigrams_lose_as_unigrams,), traced=False
    ),
    "edelman2024/saddle": Case(
        {"horizon": 8, "width": 2, "seeds": 1},
        bigrams_for_unigrams,
        (values_for_keys,),
        traced=False,
    ),
    "edelman2024/phases": Case(
        {**QUICK, "seeds": 5}, planted(*ORDER), decision="not met", turned="met", traced=False
    ),
    "edelman2024/named": Case(
        {**QUICK, "seeds": 5},
        planted(ORDER[2]),
        decision="not met",
        turned="met",
        traced=False,
    ),
    "edelman2024/short-contexts": Case({"sizes": [[2, 6], [3, 6], [4, 9]]}, with_half_a_count, traced=False),
}
