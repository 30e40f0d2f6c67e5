"""What papers share: results computed once, texts, findings of errors, figures, models at several steps."""

from dataclasses import FrozenInstanceError

import jax
import numpy as np
import pytest

from mesascope.dynamics import Optimizer, train_many
from mesascope.models import prompt_linear_transformer
from mesascope.papers._claim import Finding, Settings, one_line, presets
from mesascope.papers._figures import curve, one_panel
from mesascope.papers._identity import identities, identity, relative_error
from mesascope.papers._recorded import recorded_models
from mesascope.papers._shared import shared
from mesascope.processes import FewShot, LinearRegression
from mesascope.records import Rule


class _Cases(Settings):
    dim: int = 3
    cases: tuple[int, ...] = (1,)


class _TestedTraining(_Cases):
    tolerance: float = 0.1


def test_what_is_shared_is_computed_once_per_settings_and_sees_no_others():
    asked = []

    @shared(_Cases)
    def power(settings, exponent=2):
        asked.append((settings, exponent))
        return settings.dim**exponent

    assert [power(_TestedTraining(tolerance=t)) for t in (0.1, 0.2)] == [9, 9]
    assert power(_Cases(cases=[1])) == 9  # lists and tuples are one in a record
    assert asked == [(_Cases(), 2)]
    assert power(_Cases(dim=4)) == 16 and len(asked) == 2
    assert power(_Cases(), 3) == 27 and power(_Cases(), 3) == 27 and len(asked) == 3
    assert power.__wrapped__(_Cases()) == 9 and len(asked) == 4
    with pytest.raises(AttributeError, match="dim"):
        power(Settings())


def test_few_results_are_kept_and_failures_are_not():
    asked = []

    @shared(_Cases)
    def once(settings):
        asked.append(settings.dim)
        if settings.dim < 0:
            raise ValueError("negative")
        return settings.dim

    for n in [*range(9), 8, 1, 0]:  # eight are kept: 0 went when 8 came
        once(_Cases(dim=n))
    assert asked == [*range(9), 0]
    for _ in range(2):
        with pytest.raises(ValueError, match="negative"):
            once(_Cases(dim=-1))
    assert asked[-2:] == [-1, -1]


def test_settings_are_frozen_and_know_their_names():
    small = _TestedTraining(dim=4)
    assert small.as_table() == {"dim": 4, "cases": (1,), "tolerance": 0.1}
    assert presets(small, tolerance=0.2) == {"small": small, "full": _TestedTraining(dim=4, tolerance=0.2)}
    assert _Cases.of(small, cases=(2,)) == _Cases(dim=4, cases=(2,))
    with pytest.raises(TypeError, match="tolerances"):
        presets(small, tolerances=0.2)
    with pytest.raises(TypeError, match="dims"):
        _Cases.of(small, dims=3)
    with pytest.raises(FrozenInstanceError):
        small.dim = 5


def test_an_identity_is_as_good_as_its_worst_case():
    found = identity({"one": 1e-13, "two": -2e-13}, 1e-12, cases=2)
    assert (found.measured, found.decision, found.details["cases"]) == (2e-13, "met", 2)
    assert identity({"one": 0.0, "two": 2e-12}, 1e-12).decision == "not met"
    for errors in ({"one": 0.0, "two": np.nan}, {"one": np.nan, "two": 0.0}):
        assert identity(errors, 1e-12).decision == "not met"


def test_every_error_is_a_part_of_its_own():
    found = Finding.of_errors({"one": 1e-13, "two": -2e-12}, 1e-12, {"cases": 2})
    assert (found.expected, found.details) == ({"one": 0.0, "two": 0.0}, {"cases": 2})
    assert (found.parts, found.decision) == ({"one": "met", "two": "not met"}, "not met")


def test_texts_over_several_lines_are_joined():
    assert (
        one_line("""A statement
        of two lines.""")
        == "A statement of two lines."
    )


def test_a_figure_of_one_panel():
    traces = [Rule(value=1.0, label="one"), Rule(value=2.0, label="two")]
    found = one_panel("figure", "panel", *traces, xlabel="x", ylabel="y", xscale="log", caption="below")
    (panel,) = found.panels
    assert (found.title, found.caption, panel.title, panel.xlabel) == ("figure", "below", "panel", "x")
    assert (panel.xscale, panel.yscale, [*panel.traces]) == ("log", "linear", traces)


def test_several_identities_are_the_parts_of_a_statement():
    found = identities({"one": {"a": 1e-13}, "two": {"a": -2e-12, "b": 0.0}}, 1e-12)
    assert found.measured == {"one": 1e-13, "two": 2e-12}
    assert (found.parts, found.decision) == ({"one": "met", "two": "not met"}, "not met")


def test_errors_are_relative_to_the_largest_entry():
    assert relative_error([[1.0, -4.0]], [[1.1, -4.0]]) == pytest.approx(0.1 / 4)
    assert np.isnan(relative_error([1.0, np.nan], [1.0, 2.0]))


def test_a_curve_is_the_median_of_the_seeds_in_the_band_of_all():
    band, line = curve([1, 2], [[1.0, 5.0], [2.0, 4.0], [9.0, 3.0]], "loss", 3, band="all seeds")
    assert (band.low, band.high, line.y) == ((1.0, 3.0), (9.0, 5.0), (2.0, 4.0))
    assert (band.label, line.label, band.series, line.series) == ("all seeds", "loss", 3, 3)


@pytest.mark.slow
def test_models_on_their_way_are_those_of_shorter_trainings():
    process, task = LinearRegression(2), FewShot(3)
    settings = {"optimizer": Optimizer("adam", 0.01), "batch": 8, "held_out": 2}

    def make(key):
        return prompt_linear_transformer(2, 1, key=key)

    (model,) = recorded_models(make, process, task, [5], [4, 6], **settings)[4]
    (run,) = train_many(make, process, task, [5], steps=4, **settings)
    pairs = zip(jax.tree.leaves(model), jax.tree.leaves(run.model), strict=True)
    assert all(np.array_equal(one, other) for one, other in pairs)
