"""Small settings and wrong worlds for the claims of vladymyrov2024."""

from mesascope.papers.vladymyrov2024 import _exact, _mixed_noise, _one_layer
from mesascope.theory import Construction
from mesascope.theory.vladymyrov2024 import _risk

from ._case import Case, scaled


def _weights_a_little_off(patch):
    right = _exact.construction_model
    patch.setattr(_exact, "construction_model", lambda c: right(Construction(c.w_kq, c.w_pv * (1 + 1e-9))))


def _curvature_a_tenth_off(patch):
    right = _exact.vonoswald2023.gradient_descent_plus_plus
    patch.setattr(
        _exact.vonoswald2023,
        "gradient_descent_plus_plus",
        lambda dim, steps, curvatures: right(dim, steps, [0.9 * c for c in curvatures]),
    )


def _one_example_more(patch):
    right = _one_layer.FewShot
    patch.setattr(_one_layer, "FewShot", lambda examples: right(examples + 1))


def _heads_that_do_not_read_labels(patch):
    right = _mixed_noise._start
    patch.setattr(
        _mixed_noise,
        "_start",
        lambda dim, layers, pairs, scale, key: right(dim, layers, _mixed_noise._PLUS, scale, key),
    )


CASES = {
    "vladymyrov2024/one-layer-row": Case({}, scaled(_risk, "oracle_loss", 1.01)),
    "vladymyrov2024/linear-models": Case({"cases": [[3, 6, 3, 2]]}, _weights_a_little_off),
    "vladymyrov2024/second-order": Case({"prompts": 2}, _curvature_a_tenth_off),
    "vladymyrov2024/one-layer-optimum": Case({"dim": 1, "examples": 3, "starts": 1}, _one_example_more),
    "vladymyrov2024/mixed-noise": Case(
        {
            "dim": 2,
            "examples": 6,
            "layers": 2,
            "steps": 250,
            "batch": 128,
            "prompts": 10_000,
            "rivals": ["gd++", "constant"],
        },
        _heads_that_do_not_read_labels,
    ),
}
