"""How the claims of park2024 are tested: with wrong formulas, and with planted mixtures in place of what was trained."""

import numpy as np

from mesascope.papers.park2024 import _data, _phases
from mesascope.theory import park2024 as theory

from . import Case

# Two seeds after a hundred steps have no bigrams, and Uni-Ret at first. More planted strategies are in `test_park2024.py`.
QUICK = {"horizon": 8, "steps": 100, "per_decade": 2, "sequences": 60, "width": 8, "batch": 8, "seeds": 2}
STEPS = [0, 1, 3, 10, 32, 100, 316, 500, 1000]


def planted(order_of, noise=1e-3, left=0.01):
    """Models that are nearest to strategies one after another: `order_of(tasks)` names them; they leave `left` unexplained."""

    def world(patch):
        def course(settings, tasks, law):
            order = order_of(tasks)
            shape = (settings.seeds, len(STEPS), len(theory.STRATEGIES))
            distances = np.full(shape, 0.6) + 0.1 * np.arange(len(theory.STRATEGIES))
            for place in range(len(STEPS)):
                name = order[place * len(order) // len(STEPS)]
                distances[:, place, theory.STRATEGIES.index(name)] = 0.1
            drawn = np.random.default_rng(tasks).standard_normal(shape)
            distances = distances * np.exp(noise * drawn)
            weights = np.full(shape, 0.25)
            rest = np.full(shape[:2], left) * np.exp(noise * drawn[..., 0])
            return _data.Course(np.array(STEPS), distances, weights, rest)

        patch.setattr(_phases, "course", course)

    return world


def as_in_the_paper(tasks):
    return ("uni-inf", "uni-inf", "bi-ret" if tasks < 64 else "bi-inf")


def always_inferring(patch):
    planted(lambda tasks: ("uni-inf", "bi-inf"))(patch)


def always_retrieving(patch):
    planted(lambda tasks: ("uni-ret", "bi-ret"))(patch)


def far_from_all(patch):
    planted(as_in_the_paper, left=0.3)(patch)


def of_a_smaller_pool(patch):
    """Retrieval forgets one chain."""
    right = theory.probabilities
    patch.setattr(
        theory,
        "probabilities",
        lambda name, sequences, chains, alpha=1.0: right(
            name, sequences, chains[1:] if name == "bi-ret" else chains, alpha
        ),
    )


def two_for_one(patch):
    """Counts begin at 2 instead of 1."""
    right = theory.probabilities
    patch.setattr(
        theory,
        "probabilities",
        lambda name, sequences, chains, alpha=1.0: right(name, sequences, chains, 2.0),
    )


def no_gain(patch):
    """Uni-Ret loses as little as Bi-Ret."""
    right = theory.losses

    def losses(*sizes):
        found = right(*sizes)
        return found | {"uni-ret": found["bi-ret"]}

    patch.setattr(theory, "losses", losses)


def inference_gains_early(patch):
    """Bi-Inf loses as little as Bi-Ret."""
    right = theory.losses

    def losses(*sizes):
        found = right(*sizes)
        return found | {"bi-inf": found["bi-ret"]}

    patch.setattr(theory, "losses", losses)


def inference_never_gains(patch):
    """Bi-Inf loses more than Uni-Ret everywhere."""
    right = theory.losses

    def losses(*sizes):
        found = right(*sizes)
        return found | {"bi-inf": found["uni-ret"] + 0.1}

    patch.setattr(theory, "losses", losses)


CASES = {
    "park2024/bayes": Case(
        {"sets": [[2, 5, 3], [3, 4, 5]]}, of_a_smaller_pool, (two_for_one, no_gain), traced=False
    ),
    "park2024/short-contexts": Case(
        {"longest": 6}, inference_gains_early, (inference_never_gains,), traced=False
    ),
    **{
        f"park2024/{name}": Case(QUICK, worlds[0], worlds[1:], decision=decision, turned=turned, traced=False)
        for name, decision, turned, worlds in (
            ("unigrams-first", "not met", "met", (planted(as_in_the_paper),)),
            ("diversity", "undecided", "not met", (always_inferring, always_retrieving)),
            ("uni-inf-first", "not met", "met", (planted(as_in_the_paper),)),
            ("mixture", "undecided", "not met", (far_from_all,)),
        )
    },
}
