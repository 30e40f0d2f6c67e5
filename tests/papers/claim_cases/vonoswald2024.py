"""How the claims of vonoswald2024 are tested."""

from mesascope.models import linear_transformer
from mesascope.papers.vonoswald2024 import _copying, _identities, _trained
from mesascope.processes import LinearAR, NextToken, Rademacher
from mesascope.theory import Construction
from mesascope.theory import vonoswald2024 as theory

from . import Case

SMALL = {"cases": [[2, 6]], "sequences": 2}


def nearly(patch):
    """A world in which the layer writes a billionth too much."""
    right = theory.gradient_step

    def wrong(*args):
        w_kq, w_pv = right(*args)
        return Construction(w_kq, w_pv * (1 + 1e-9))

    patch.setattr(theory, "gradient_step", wrong)


def other_ridge(factor):
    """Mesa layers have another λ than is said."""

    def break_it(patch):
        right = _identities._mesa
        patch.setattr(_identities, "_mesa", lambda dim, ridge: right(dim, ridge * factor))

    return break_it


def other_ridge_tokens(patch):
    """The tokens that stand for the ridge are those of a λ that is a millionth larger."""
    right = theory.ridge_tokens
    patch.setattr(theory, "ridge_tokens", lambda sequence, ridge: right(sequence, ridge * (1 + 1e-6)))


def longer_steps(patch):
    """The best numbers are taken to be a fifth larger than they are."""
    right = _trained._best_layers
    patch.setattr(
        _trained,
        "_best_layers",
        lambda settings: {name: (1.2 * a, 1.2 * b) for name, (a, b) in right(settings).items()},
    )


def no_mesa_layer(patch):
    """In the place of the mesa layer stands one of linear attention."""
    patch.setattr(_trained, "_mesa", lambda dim, key: linear_transformer(dim, 1, key=key))


def one_transition(patch):
    """The transition is −I for all sequences, so that nothing has to be learned from tokens and those before."""
    patch.setattr(
        _copying,
        "data",
        lambda s: (LinearAR(Rademacher(1.0), s["dim"], [-1] * s["dim"], 0.01), NextToken(s["horizon"])),
    )


CASES = {
    "vonoswald2024/proposition-1": Case(SMALL, nearly),
    "vonoswald2024/mesa-layer-is-ridge": Case({**SMALL, "regularizations": [1.0]}, other_ridge(1 + 1e-9)),
    "vonoswald2024/linear-attention-limit": Case({"dim": 2, "horizon": 6}, other_ridge(1.001)),
    "vonoswald2024/proposition-2": Case(
        {"dim": 2, "horizon": 6, "sequences": 2, "layers": [1, 3, 4000]}, other_ridge_tokens
    ),
    "vonoswald2024/one-layer": Case(
        {"dim": 3, "horizon": 12, "steps": 500, "sequences": 2000, "tolerance": 0.04}, longer_steps
    ),
    "vonoswald2024/depth-and-mesa-layer": Case(
        {"layers": [1, 2], "steps": 400, "sequences": 1000}, no_mesa_layer
    ),
    "vonoswald2024/copying": Case(
        {"horizon": 14, "steps": 700, "tasks": 100, "sequences": 200, "factor": 1.5}, one_transition
    ),
}
