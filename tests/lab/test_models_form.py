"""The form of a training, and what the page of models computes."""

import numpy as np
import pytest

from mesascope.lab import _compute_models
from mesascope.lab._compare_page import _page, compare_address
from mesascope.lab._form import kind_fields, setting_fields
from mesascope.lab._setting import table_of_query, to_query, to_toml
from mesascope.lab._widgets import _captions, _has_names
from mesascope.lab.models._losses import losses_figure
from mesascope.lab.models._presets import PRESETS
from mesascope.lab.models._training_form import (
    read_training,
    training_form,
    training_layout,
    training_of,
    training_place,
    with_kind,
)
from mesascope.processes import FewShot
from mesascope.records import Figure, Heatmap
from mesascope.specs import known_kinds
from mesascope.studies import IdentifySpec, SpecError, TrainSpec, parse_file

FIRST = next(iter(PRESETS.values()))
STEP = {  # one step of gradient descent, written into the weights
    "process": {"kind": "linear-regression", "dim": 2},
    "examples": 6,
    "model": {
        "kind": "prompt-linear-transformer",
        "layers": 1,
        "start": {"kind": "gradient-descent", "step_sizes": [0.1]},
    },
    "steps": 20,
    "batch": 16,
    "held_out": 64,
    "record_every": 5,
}


@pytest.mark.parametrize("table", PRESETS.values(), ids=PRESETS)
def test_presets_are_the_same_as_a_form_an_address_and_a_file(table):
    spec = read_training(table)
    assert training_of(training_form(spec)) == spec
    assert read_training(table_of_query(to_query(spec))) == spec
    assert read_training(parse_file(to_toml(spec, "train").encode())) == spec


@pytest.mark.parametrize("family", training_layout().families)
def test_every_kind_of_the_registry_can_be_chosen(family):
    form = training_form(read_training(FIRST))
    for kind in known_kinds(family):
        chosen = with_kind(form, family, kind)
        offered = training_layout().kinds("model", chosen)
        assert chosen["model.kind"] in offered
        if chosen[f"{family}.kind"] != kind:
            assert kind not in offered  # a model that does not read prompts
        elif kind == "composed":  # its example embeds tokens
            with pytest.raises(SpecError) as raised:
                training_of(chosen)
            assert training_place(raised.value, chosen) == "model.embedding"
        else:
            spec = training_of(chosen)
            assert (spec.source.kind, spec.model.kind) == (chosen["process.kind"], chosen["model.kind"])


def test_labels_fit_into_fields_and_have_no_marks_of_code():
    fields = [*training_layout().fields.values(), *setting_fields().values()]
    for family in ("law", "init", "process", "model"):
        fields += [field for kind in known_kinds(family) for field in kind_fields(family, kind)]
    for field in fields:
        assert 0 < len(field.label) <= 38, field
        assert "`" not in field.label + field.hint + field.about
    by_name = {field.name: field for field in fields}
    assert (by_name["examples"].label, by_name["examples"].hint) == (
        "examples N ≥ 1 before the query",
        "for processes of prompts",
    )
    assert by_name["process.covariance"].label == "covariance Σ of the inputs"
    assert by_name["process.covariance"].hint.startswith("empty for I, its rows")


@pytest.mark.parametrize(
    ("caption", "parts"),
    [
        (
            "Bands are intervals. Left: one. Then: two.",
            ["Bands are intervals. One.", "Bands are intervals. Two."],
        ),
        ("Left: one. Right: two.", ["One.", "Two."]),
        ("Both. Left: one.", ["Both. Left: one."] * 2),
        ("One of two.", ["One of two."] * 2),
    ],
)
def test_panels_that_are_drawn_alone_have_their_part_of_the_caption(caption, parts):
    panel = losses_figure(FewShot(examples=4), [1, 2], [3.0, 4.0]).panels[0]
    assert _captions(Figure(title="t", panels=(panel, panel), caption=caption)) == parts


def test_numbers_of_rows_need_no_more_width_than_other_figures():
    ten = range(1, 11)
    numbered, named = (
        Heatmap(z=[[0.0]] * 10, rows=map(form, ten), colorlabel="z")
        for form in ("{}".format, "learner {}".format)
    )
    assert not _has_names(numbered) and _has_names(named)


def test_the_axis_of_losses_says_what_they_are():
    every = {1: 1, 2: 1}
    for task, label in (
        (FewShot(4), "loss"),
        (FewShot(4, weights=every), "loss (sum over 2 example counts)"),
    ):
        assert losses_figure(task, [1, 2], [3.0, 4.0]).panels[0].ylabel == label


@pytest.mark.parametrize(
    ("changes", "place", "what"),
    [
        ({"steps": "-1"}, "steps", "must be at least 1"),
        ({"process.dim": "x"}, "process.dim", "integer"),
        ({"process.law": "gaussian scale"}, "process.law", "not a parameter"),
        ({"process.law": '{"kind": "empirical", "file": "/etc/passwd"}'}, "process.law", "not read here"),
        ({"optimizer.learning_rate": "0"}, "optimizer.learning_rate", "must be"),
        ({"model.layers": "0"}, "model.layers", "must be at least 1"),
        ({"batch": "1" * 300_000}, "batch", "300000 characters"),
    ],
)
def test_what_is_wrong_is_told_at_its_field(changes, place, what):
    form = training_form(read_training(FIRST)) | changes
    with pytest.raises(SpecError, match=what) as raised:
        training_of(form)
    assert training_place(raised.value, form) == place


@pytest.mark.parametrize("name", ["seeds", "average", "evaluate_every", "checkpoint_every"])
def test_fields_that_the_page_does_not_use_are_refused(name):
    with pytest.raises(SpecError, match="mesascope train takes it"):
        read_training({**FIRST, name: [1, 2]})


@pytest.mark.slow
def test_losses_are_reported_while_they_come():
    told = []
    result = _compute_models.training(read_training(STEP), lambda text, *point: told.append((text, *point)))
    points = [one[1] for one in told if len(one) > 1]
    assert [step for step, _ in points] == [5, 10, 15, 20] == result["steps"].tolist()
    np.testing.assert_allclose([loss for _, loss in points], result["losses"])
    again = TrainSpec.model_validate(STEP).run()
    assert (result["loss"], result["loss_se"]) == (again.loss, again.loss_standard_error)
    (panel,) = losses_figure(FewShot(4), *zip(*points, strict=True)).panels
    assert panel.traces[0].y == tuple(result["losses"])


def test_a_training_that_is_stopped_has_no_result():
    def stop(text, *point):
        if point:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _compute_models.training(read_training(STEP), stop)


OWN = """
import numpy as np

def step(contexts):
    x, y, query = contexts[:, :-1], contexts[:, 1:], contexts[:, -1]
    return 0.2 / x.shape[1] * np.einsum("bim,bip,bp->bm", y, x.conj(), query)
"""


@pytest.mark.slow
def test_a_model_of_the_user_is_identified_by_its_specification(tmp_path, monkeypatch):
    (tmp_path / "models_of_a_user.py").write_text(OWN)
    monkeypatch.syspath_prepend(str(tmp_path))
    table = {
        **{"law": "gaussian", "dim": 2, "horizon": 6, "tasks": 100},
        "learners": ["zero", "gradient-descent", "ridge"],
        "model": {"kind": "function", "name": "models_of_a_user:step"},
    }
    told = []
    found = _compute_models.given(IdentifySpec.model_validate(table), told.append)
    assert (found["verdict"], found["candidates"]) == ("identified", ["gradient-descent"])
    assert told and set(found["figures"]) == {"by-length", "confusion"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("preset", "known"),
    [
        ("Three steps of preconditioned gradient descent", True),
        ("Two linear layers on linear regression", False),
    ],
)
def test_a_training_ends_with_its_exact_loss_where_that_is_known(preset, known):
    table = {**PRESETS[preset], "steps": 2, "held_out": 4000}
    found = _compute_models.training(read_training(table), lambda *told: None)
    assert (found["exact_loss"] is not None) == known
    assert not known or abs(found["exact_loss"] - found["loss"]) < 4 * found["loss_se"]


@pytest.mark.parametrize(
    "address",
    ["//other.org/expert", "https://other.org/expert", "javascript:x", "/none", "/compare?left=x", ""],
)
def test_a_comparison_shows_pages_of_the_lab_alone(address):
    assert _page(address) == "/expert"
    assert _page("/models?steps=3") == "/models?steps=3"


def test_a_comparison_has_the_address_on_both_sides():
    assert compare_address("/expert?dim=5&a=1") == (
        "/compare?left=%2Fexpert%3Fdim%3D5%26a%3D1&right=%2Fexpert%3Fdim%3D5%26a%3D1"
    )
