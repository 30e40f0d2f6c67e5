"""Small settings and wrong worlds for the claims of vladymyrov2024."""

from mesascope.papers.vladymyrov2024 import _exact, _mixed_noise, _one_layer
from mesascope.papers.vladymyrov2024._ridge import Examples
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


def _steps_that_grow_more_slowly(patch):
    right = _exact._Prompts.steps_of_descent
    patch.setattr(
        _exact._Prompts, "steps_of_descent", lambda prompts, *limits: right(prompts, *limits) ** 0.9
    )


def _heads_that_do_not_read_labels(patch):
    right, pairs = _mixed_noise._start, _mixed_noise.PAIRS["gd++"]
    patch.setattr(
        _mixed_noise, "_start", lambda dim, layers, _, scale, key: right(dim, layers, pairs, scale, key)
    )


def _an_estimate_that_is_not_tuned(patch):
    patch.setattr(_mixed_noise, "tuned", lambda known: _mixed_noise.adaptive)


def _losses_measured(factor):
    right = Examples.excess
    return lambda patch: patch.setattr(Examples, "excess", lambda *args: factor * right(*args))


SMALL = {"dim": 3, "examples": 6, "layers": 3, "steps": 300, "batch": 128, "prompts": 10_000}

SHORT = {"steps": 150, "batch": 64, "prompts": 10_000}

CASES = {
    # with an oracle a third of a percent better every entry of the table is met to 1 %, and not only five of six
    "vladymyrov2024/one-layer-row": Case(
        {}, scaled(_risk, "oracle_loss", 0.997), verdict="refuted", turned="verified"
    ),
    "vladymyrov2024/linear-models": Case({"cases": [[3, 6, 3, 2]]}, _weights_a_little_off),
    "vladymyrov2024/second-order": Case(
        {"prompts": 2}, _curvature_a_tenth_off, (_steps_that_grow_more_slowly,)
    ),
    "vladymyrov2024/one-layer-optimum": Case({"dim": 1, "examples": 3, "starts": 1}, _one_example_more),
    # training that has not come as far decides nothing; losses far below the table's would refute it
    "vladymyrov2024/two-layers": Case(SHORT, _losses_measured(0.3), verdict="inconclusive"),
    "vladymyrov2024/three-layers": Case(SHORT, _losses_measured(0.1), verdict="inconclusive"),
    "vladymyrov2024/mixed-noise": Case(SMALL, _heads_that_do_not_read_labels),
    "vladymyrov2024/tuned-ridge": Case(
        SMALL, _an_estimate_that_is_not_tuned, verdict="refuted", turned="verified"
    ),
}
