"""How the claims of vonoswald2025 are tested."""

import numpy as np

from mesascope.papers.vonoswald2025 import _family, _solution
from mesascope.theory import vonoswald2025 as theory

from . import Case, scaled

SAMPLED = {"prompts": 500, "examples": 10, "dim": 3, "seeds": 3}


def half_the_steps(patch):
    """Conjugate gradients take half of the steps that are said."""
    right = _solution._mesa_rule
    patch.setattr(
        _solution, "_mesa_rule", lambda size, penalty, steps: right(size, penalty, max(1, steps // 2))
    )


def one_step_is_worse(patch):
    """The error of the second number of steps is that of the first, and a little."""
    right = _solution._left

    def wrong(settings, condition):
        left = right(settings, condition)
        return np.concatenate([left[:1], left[:1] * 1.001, left[2:]])

    patch.setattr(_solution, "_left", wrong)


def other_mesa(**gates):
    """The mesa layer has other gates only; it is searched again, beside one other layer."""

    def break_it(patch):
        patch.setattr(_family, "MESA", ({**_family.MESA[0], **gates},))
        patch.setattr(_family, "OTHERS", {"DeltaNet": _family.OTHERS["DeltaNet"]})
        patch.setattr(_family, "_found", _family._found.__wrapped__)

    return break_it


def reached(name):
    """One of the other layers has an error a tenth less than that of the mesa layer."""

    def break_it(patch):
        right = _family._found

        def wrong(settings):
            found = right(settings)
            better = [one._replace(errors=0.9 * one.errors) for one in found.layers["MesaNet"]]
            return found._replace(layers={**found.layers, name: better})

        patch.setattr(_family, "_found", wrong)

    return break_it


def last_step_is_worse(patch):
    """After all steps of conjugate gradients the error is a hundred-thousandth greater than that of the exact solution."""
    right = _family._found

    def wrong(settings):
        found = right(settings)
        worse = [one._replace(errors=(1 + 1e-5) * one.errors) for one in found.layers["MesaNet"]]
        return found._replace(by_steps={**found.by_steps, settings.dim: worse})

    patch.setattr(_family, "_found", wrong)


WORLDS = other_mesa(penalty=1e4), (*map(reached, _family.OTHERS), last_step_is_worse)

CASES = {
    "vonoswald2025/layer-is-optimal": Case(
        {"cases": [[2, 2, 5]]},
        scaled(theory, "gated_ridge", 1 + 1e-8),
        (scaled(_solution, "_read_memory", 1 + 1e-8),),
        traced=False,
    ),
    "vonoswald2025/conjugate-gradients": Case(
        {"dim": 4, "conditions": [10], "steps": [1, 2, 4, 8]},
        half_the_steps,
        (one_step_is_worse, scaled(theory, "conjugate_gradient_bound", 0.5)),
        traced=False,
    ),
    "vonoswald2025/linear-regression": Case(SAMPLED, *WORLDS, traced=False),
    "vonoswald2025/linear-systems": Case(SAMPLED, *WORLDS, traced=False),
}
