"""The page of models in a real browser: a training and its name, models of the user, bad input, a phone."""

import pytest

from lab_page import SHIFTS, box, choose, empty_cards, message_at, wait_for_text, write
from mesascope.lab._setting import to_query
from mesascope.lab.models._training_form import read_training
from mesascope.probes import identify
from mesascope.studies import IdentifySpec, TrainSpec, read_spec
from mesascope.theory import zhang2025

STEP = {  # near one step of gradient descent from the start: few learners fit pairs of two numbers
    "process": {"kind": "linear-regression", "dim": 2},
    "examples": 6,
    "model": {
        "kind": "prompt-linear-transformer",
        "layers": 1,
        "start": {"kind": "gradient-descent", "step_sizes": [0.1]},
    },
    "steps": 40,
    "batch": 32,
    "held_out": 256,
    "record_every": 5,
}
OWN = """
import numpy as np

def step(contexts):
    x, y, query = contexts[:, :-1], contexts[:, 1:], contexts[:, -1]
    return 0.2 / x.shape[1] * np.einsum("bim,bip,bp->bm", y, x.conj(), query)
"""
LEARNERS = ["zero", "gradient-descent", "ridge"]
FEW = f"""
from functools import partial

from mesascope.lab import _compute_models

_compute_models.identify = partial(_compute_models.identify, learners={LEARNERS})
"""
QUESTIONS = {
    "trained.toml": f'model = {{ kind = "checkpoint", path = "run" }}\ntasks = 100\nlearners = {LEARNERS}\n',
    "function.toml": (
        'law = "gaussian"\ndim = 2\nhorizon = 6\ntasks = 100\n'
        f'learners = {LEARNERS}\nmodel = {{ kind = "function", name = "models_of_a_user:step" }}\n'
    ),
    "broken.toml": (
        'law = "gaussian"\ndim = 2\nhorizon = 6\ntasks = 100\n'
        'model = { kind = "function", name = "models_of_a_user:nothing" }\n'
    ),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.fixture
def in_the_folder(folder, monkeypatch):
    """The folder of the models, from which their modules can be imported here, too."""
    monkeypatch.syspath_prepend(str(folder))
    return folder


@pytest.fixture(scope="module")
def lab(start_lab, folder):
    """A lab of few learners that was given models: one that was trained, a function, and a name that is not there."""
    (folder / "models_of_a_user.py").write_text(OWN)
    (folder / "few.py").write_text(FEW)
    for name, text in QUESTIONS.items():
        (folder / name).write_text(text)
    TrainSpec.model_validate(STEP).run(folder / "run")
    with start_lab(folder, "--port", "0", "--plugin", "few.py", "--models", *QUESTIONS) as running:
        yield running


@pytest.fixture
def models(window, lab):
    page, seen = window
    seen.errors.clear(), seen.requests.clear()
    open_models(page, lab)
    yield page
    assert (seen.errors, seen.outside()) == ([], [])


def open_models(page, lab):
    page.goto(lab.at(to_query(read_training(STEP)), "models"))
    page.wait_for_selector('[data-act="train"]')


def train(page):
    page.locator('[data-act="train"]').click()
    wait_for_text(page.locator('[data-fact="training"]'), "Loss on fresh samples")
    page.wait_for_selector('[data-figure="losses"] .scatterlayer .js-line', state="attached")


@pytest.mark.slow
def test_a_training_is_drawn_and_identified_as_in_python(models):
    train(models)
    run = read_training(STEP).build()
    done = run.train()
    loss = run.result(done).loss
    assert f"{loss:.4g} ±" in models.locator('[data-fact="training"]').inner_text()
    models.locator('[data-act="identify"]').click()
    verdict = models.locator('[data-fact="verdict"]')
    verdict.wait_for(timeout=180_000)
    answer = identify(done.model, run.process, run.task, tasks=400, learners=LEARNERS)
    assert verdict.inner_text() == f"{answer.verdict}: {answer.headline}"
    rows = models.locator('[data-fact="identification"] tbody tr')
    shown = [row.split("\t")[:2] for row in rows.all_inner_texts()]
    assert shown == [[one.learner, f"{one.distance:.3e}"] for one in answer.ranking]
    for name in ("by-length-1", "confusion"):
        models.wait_for_selector(f'[data-figure="{name}"] .cartesianlayer .subplot', state="attached")
    write(models, "steps", "30")  # another training: what belongs to the one before is removed
    models.wait_for_function("location.search.includes('steps=30')")
    verdict.wait_for(state="detached")
    assert not models.locator('[data-figure="losses"]').is_visible()


@pytest.mark.slow
def test_models_of_the_user_are_identified_as_in_python(models, lab, in_the_folder):
    verdict = models.locator('[data-fact="verdict"]')
    for name in ("trained.toml", "function.toml"):
        models.locator(f'[data-own="{name}"]').click()
        wait_for_text(models.locator('[data-fact="identification"]'), f"The model of {name}:")
        answer = read_spec(in_the_folder / name, IdentifySpec).run()
        assert verdict.inner_text() == f"{answer.verdict}: {answer.headline}"
    models.locator('[data-own="broken.toml"]').click()
    told = models.get_by_role("alert").filter(has_text="broken.toml cannot be identified")
    wait_for_text(told, "nothing")
    assert "\n" not in told.inner_text()
    assert verdict.count() == 1  # the answer before stays


@pytest.mark.slow
def test_what_is_wrong_is_told_at_its_place_and_a_preset_repairs_it(models):
    models.locator('[data-act="identify"]').click()
    wait_for_text(models.get_by_role("alert").filter(has_text="trained"), "train one first")
    write(models, "steps", "-1")
    wait_for_text(message_at(models, "steps"), "must be at least 1")
    choose(models, "preset", "Two linear layers on sequences")
    models.wait_for_function("location.search.includes('process.kind=orthogonal-ar')")
    assert box(models, "steps").input_value() == "1000"
    assert message_at(models, "steps").count() == 0
    write(models, "steps", "900")  # no longer the preset
    shown = "document.querySelector('[data-field=preset]').closest('.q-select').innerText"
    models.wait_for_function(f"!{shown}.includes('sequences')")


@pytest.mark.slow
def test_the_exact_flow_rests_at_the_plateaus_of_the_theory(models):
    choose(models, "preset", "Two linear layers on linear regression")
    models.get_by_text("Without sampling: the exact gradient flow").click()
    models.get_by_role("button", name="Find the plateaus").click()
    wait_for_text(models.get_by_role("alert").filter(has_text="plateaus"), "use MonteCarlo")
    choose(models, "preset", "Heads of rank one, for plateaus")
    models.get_by_role("button", name="Find the plateaus").click()
    rows = models.locator('[data-fact="plateaus"] tbody tr')
    rows.first.wait_for(timeout=180_000)
    errors = zhang2025.plateau_errors([0.7, 0.3], 9)  # E(ŷ − y)²
    shown = [float(row.split("\t")[0]) for row in rows.all_inner_texts()]
    assert shown == pytest.approx([loss / 2 for loss in errors], rel=1e-4)  # five digits
    models.wait_for_selector('[data-figure="plateaus"] .cartesianlayer .subplot', state="attached")
    write(models, "examples", "8")  # another flow: what belongs to the one before is removed
    rows.first.wait_for(state="detached")
    assert not models.locator('[data-figure="plateaus"]').is_visible()


@pytest.mark.slow
def test_an_address_that_is_no_training_says_so(models, lab):
    models.goto(lab.at(to_query(read_training(STEP)).replace("steps=40", "steps=-1"), "models"))
    wait_for_text(models.get_by_role("alert").first, "The address could not be read .*steps")


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (390, "dark")])
def test_it_is_accessible_and_nothing_jumps_or_overflows(browser, lab, width, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    size = {"width": width, "height": 900}
    with browser.page(viewport=size, color_scheme=scheme, reduced_motion="reduce") as (page, seen):
        page.add_init_script(SHIFTS)
        open_models(page, lab)
        assert page.evaluate("window.shifted || 0") < 0.05
        train(page)
        # The figure of the loss comes because of the press; browsers count it after half a second, which a busy machine takes.
        page.evaluate("window.shifted = 0")
        page.locator('[data-own="function.toml"]').click()
        page.wait_for_selector('[data-figure="confusion"] .cartesianlayer .subplot', state="attached")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert empty_cards(page) == []
        assert page.evaluate("window.shifted || 0") < 0.05
        found = axe.Axe().run(page).response["violations"]
        assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in found] == []
        assert seen.errors == []
