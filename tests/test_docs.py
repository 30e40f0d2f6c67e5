"""What the pages in docs show is true: every block runs, and every table lists what there is."""

import json
import re
from pathlib import Path

import jax
import numpy as np
import pytest
import write_benchmark
import write_layers
from blocks import run

import mesascope as ms
from mesascope.benchmark import Score
from mesascope.cli import main
from mesascope.cli._parse import COMMANDS
from mesascope.dynamics import observed_rate
from mesascope.records import layers_record, read_along, read_identification

ROOT = Path(__file__).parents[1]
PAGE, IDENTIFY, INSIDE, CERTIFICATES, PHASES, LANDSCAPE = (
    (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    for name in ("train-your-own", "identify", "look-inside", "certificates", "phase-diagrams", "landscape")
)


@pytest.mark.slow
def test_every_block_on_training_runs_and_gives_what_the_page_says(tmp_path, monkeypatch, capsys):
    """One test, for the blocks build upon each other and compilation takes nearly all of its time."""
    names = {"__name__": "train_your_own"}
    monkeypatch.chdir(tmp_path)
    run(PAGE, names)
    _trains_to_the_best_step(names)
    _trains_from_a_file(names, capsys)
    _two_layers_beat_one(names)
    _own_models_and_many_seeds_finish(names)
    _saved_is_loaded(names)


@pytest.mark.slow
def test_every_block_on_identification_runs_and_gives_what_the_page_says(tmp_path, monkeypatch):
    names = {"__name__": "identify"}
    monkeypatch.chdir(tmp_path)
    run(IDENTIFY, names)
    step = names["best"].hyperparameters["step_size"]
    assert step == pytest.approx(names["limit"], rel=1e-6)
    assert (names["answer"].verdict, names["found"].verdict) == ("identified", "identified")
    for picture in ("by-length", "confusion"):
        assert Path("limit", f"{picture}.png").stat().st_size > 10_000
        assert f"identify-{picture}.png" in IDENTIFY
    assert read_identification("ridge.json").candidates == ("ridge",)


@pytest.mark.slow
def test_every_block_on_the_benchmark_runs_and_gives_what_the_page_says(tmp_path, monkeypatch):
    page, names = (ROOT / "docs/benchmark.md").read_text(encoding="utf-8"), {"__name__": "benchmark"}
    monkeypatch.chdir(tmp_path)
    run(page, names)
    linear = sum(answer.verdict == "identified" for answer in names["answers"].answers.values())
    # constructions on prompts are linear in the query; the last token of the two on tokens is an output, too
    assert (linear, len(names["bench"].names)) == (6, 8)


def test_the_page_on_layers_has_the_tables_of_its_record(tmp_path, monkeypatch):
    page, record = (ROOT / "docs/what-layers-compute.md").read_text(encoding="utf-8"), layers_record()
    assert write_layers.written(page, record) == page
    monkeypatch.chdir(tmp_path)
    run(page, {"__name__": "layers"})
    for name, layers in record.data.items():
        assert write_layers.picture(name).with_suffix(".png").exists()
        for one in layers.values():
            low, high = one.given.interval
            # 4 standard errors, of which an interval has 2 · 1.96
            assert one.exact is None or abs(one.exact - one.given.error) < 4 * (high - low) / (2 * 1.96)
            assert set(one.given.distances) == set(one.trained.distances)


def test_the_table_of_the_benchmark_is_that_of_the_stored_scores():
    page = (ROOT / "docs/benchmark.md").read_text(encoding="utf-8")
    scores = (ROOT / "docs/benchmark.json").read_text(encoding="utf-8")
    assert write_benchmark.written(page, scores) == page
    ours, nearest = (Score.model_validate(one) for one in json.loads(scores)["scores"])
    assert (ours.method, nearest.method) == ("identify", "nearest")
    assert (
        ours.counts["all"]["wrong"] == 0 and ours.accuracy >= 0.95 and sum(ours.counts["all"].values()) >= 100
    )


@pytest.mark.slow
def test_every_block_on_phases_runs_and_gives_what_the_page_says(tmp_path, monkeypatch):
    page = (ROOT / "docs/tutorials/which-when.md").read_text(encoding="utf-8")
    names = {"__name__": "phases"}
    monkeypatch.chdir(tmp_path)
    run(page, names)
    first, second = names["followed"].changes
    assert (first.before, first.after, second.after) == (
        "uniform",
        "unigram-posterior",
        "dirichlet-posterior",
    )
    assert first.interval[1] <= 10
    assert second.interval[0] < 300 < second.interval[1] + 100 and "from some 300 steps on" in page
    assert names["last"].verdict == "identified"
    record = read_along("phases/along.json")
    assert {stage.verdict for stage in record.stages if 10 < stage.step < 300} == {"none"}
    between = [
        left for step, left in zip(record.steps, record.unexplained.value, strict=True) if 10 < step < 300
    ]
    assert min(between) > 0.005 and max(between) < 0.05 and "two percent" in page
    assert Path("phases", "along.png").stat().st_size > 10_000 and "which-when.png" in page


@pytest.mark.slow
def test_every_block_on_pools_runs_and_gives_what_the_page_says(tmp_path, monkeypatch):
    page, names = (
        (ROOT / "docs/tutorials/memorize-or-learn.md").read_text(encoding="utf-8"),
        {"__name__": "pools"},
    )
    monkeypatch.chdir(tmp_path)
    run(page, names)
    on_pool, on_fresh = np.array(names["on_pool"]), np.array(names["on_fresh"])
    assert (np.diff(on_pool) > 0).all() and (np.diff(on_fresh) < 0).all()
    assert on_pool[0] == pytest.approx(0.36, abs=0.005) and "error of 0.36 on it" in page
    first = names["sizes"][int(np.argmax(on_fresh < names["answer_zero"]))]
    assert first == 4 and "From\nfour tasks on" in page
    ends, stopped = names["ends"], names["stopped"]
    zero = (1 + 0.25) / 2
    assert ends[100] > 1.5 * zero  # "far worse"
    assert 0.95 * zero < stopped[100] < zero  # "not much better"
    assert ends[2500] < 1.01 * stopped[2500]
    place = names["sizes"].index(32)
    assert on_fresh[place] < 1.1 * on_pool[place]
    assert names["answer"].ranking[0].learner == "memorizing" and names["answer"].verdict == "identified"
    few, many = names["told"][4], names["told"][4096]
    assert few.candidates == ("memorizing-symbols",) and few.verdict == "identified"
    assert set(many.candidates) == {"memorizing-symbols", "unigram-posterior"} and many.verdict == "ambiguous"
    assert (tmp_path / "pool.png").stat().st_size > 10_000


@pytest.mark.slow
def test_every_block_on_layers_runs_and_finds_what_the_page_says(tmp_path, monkeypatch):
    names = {"__name__": "look_inside"}
    monkeypatch.chdir(tmp_path)
    run(INSIDE, names)
    assert "](look-inside.png)" in INSIDE and (tmp_path / "look-inside.png").stat().st_size > 10_000
    lens, nearest = names["lens"], names["progress"].nearest
    assert (np.diff(lens.loss.value) < 0).all()  # every layer brings the answer closer
    assert nearest.steps.value[0] == 0 < nearest.steps.value[-1] and nearest.slope.low > 0
    assert names["probe"].selectivity.low[-1] > 0.5 > names["probe"].selectivity.high[0]
    # a step of GD is better than nothing in the place of the second layer, and less than the layer
    losses = dict(zip(names["replaced"].names, names["replaced"].loss.value, strict=True))
    assert losses["untouched"] < losses["one step of GD"] < losses["removed"] < losses["shuffled"]


@pytest.mark.slow
def test_every_block_on_certificates_runs_and_proves_what_the_page_says(tmp_path, monkeypatch):
    names = {"__name__": "certificates"}
    monkeypatch.chdir(tmp_path)
    run(CERTIFICATES, names)
    proved = names["certificate"].proved
    assert f"{proved.theorem}, a Fraction" in CERTIFICATES and f"exactly {proved.theorem}," in CERTIFICATES
    assert str(proved.inertia) in CERTIFICATES
    assert names["full_one"].isolated and names["full_one"].proved.theorem is None
    assert not names["one_hot"].isolated and names["one_hot"].proved.loss == (0, 0)


@pytest.mark.slow
def test_every_block_on_phase_diagrams_runs_and_finds_what_the_page_says(tmp_path, monkeypatch):
    names = {"__name__": "phase_diagrams"}
    monkeypatch.chdir(tmp_path)
    run(PHASES, names)
    diagram, kinds = names["diagram"], names["figure"].panels[0].traces[0]
    assert set(diagram.name.values) == {"near-diagonal + +", "near-diagonal + −"} == set(kinds.kinds)
    assert (diagram.status == "converged").all() and list(names["part"].status.values[-1]) == [
        "interrupted"
    ] * 2
    assert names["flow"].converged and names["flow"].stats["steps"] < 1000
    risk, times = diagram.risk, diagram.time_to_reach
    assert risk.values == pytest.approx(np.broadcast_to(risk[0], risk.shape), rel=1e-6)
    changes = diagram.critical_point.diff("scale", label="lower") != 0
    assert (changes.sum("scale") == 1).all() and (times.where(changes).max("scale") > 1.5 * times[0]).all()
    assert Path("phase-diagram.png").stat().st_size > 10_000 and "(phase-diagram.png)" in PHASES


@pytest.mark.slow
def test_every_block_on_the_landscape_runs_and_finds_what_the_page_says(tmp_path, monkeypatch):
    names = {"__name__": "landscape"}
    monkeypatch.chdir(tmp_path)
    run(LANDSCAPE, names)
    assert (names["at_rest"].kind, names["at_rest"].symmetric) == ("minimum", 1)
    np.testing.assert_allclose(names["origin"].escape_rates, 54.0, rtol=1e-12)  # 3 · 18
    # the fit covers the last factor of 100, where the next rate, half as large again, has died away to some 1e-6
    assert observed_rate(names["fine"]) == pytest.approx(names["predicted"], rel=1e-5)
    points = names["found"].points
    assert {p.stability.index for p in points} == {0, 1, 2} == {p.family - (p.family > 0) for p in points}
    assert names["kept"].drift(names["flow"]).max() < 1e-10 and len(names["kept"]) == 1
    # the reduced and the full flow are solved to rtol 1e-9 apart from each other
    np.testing.assert_allclose(
        names["reduced"].model.merged().w_kq, names["full"].model.w_kq, rtol=0, atol=1e-8
    )
    assert names["wider"].basis.shape[1] == 4


@pytest.mark.slow
def test_every_block_of_five_minutes_runs_and_draws_the_first_picture(tmp_path, monkeypatch):
    names = _run_in(tmp_path, monkeypatch, "start/five-minutes")
    assert (names["answer"].verdict, names["answer"].candidates) == ("identified", ("gradient-descent",))
    gaussian = ms.DiagonalUnitary(ms.Gaussian(1.0), dim=3)
    limit = float(ms.theory.zheng2024.limit_product(gaussian, names["task"]))
    np.testing.assert_allclose(names["flow"].model.products(), limit, rtol=1e-8)  # the solver's tolerance
    assert Path("idea.png").stat().st_size > 10_000
    first = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert "](start/idea.png)" in first and (ROOT / "docs" / "start" / "idea.png").exists()


@pytest.mark.slow
def test_every_block_on_a_conjecture_runs_and_refutes_it(tmp_path, monkeypatch):
    names = _run_in(tmp_path, monkeypatch, "tutorials/conjecture")
    found = {name: names["kurtosis_and_gap"](law) for name, law in names["laws"].items()}
    grows = [found[name] for name in ("signs", "uniform", "Gaussian", "Student t, 9 df", "Student t, 7 df")]
    assert grows == sorted(grows) and found["mostly zero"] == (10.0, 0.0)
    assert names["flow"].converged and names["certificate"].isolated
    assert names["certificate"].proved.theorem == names["limit"]


@pytest.mark.slow
def test_every_block_on_a_law_of_your_own_runs_and_meets_the_theorem(tmp_path, monkeypatch):
    names = _run_in(tmp_path, monkeypatch, "tutorials/law-of-your-own")
    assert names["distance"] < 1e-9  # the solver's tolerance
    assert "(weighted sum over 4 context lengths)" in names["printed"]
    assert Path("triangular.png").stat().st_size > 10_000


@pytest.mark.slow
def test_every_block_on_a_module_of_pytorch_runs_and_names_two_algorithms(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    names = _run_in(tmp_path, monkeypatch, "tutorials/pytorch-model")
    assert names["answer"].candidates == ("gradient-descent",)
    assert names["other"].candidates == ("kernel-smoother",)
    # 1500 steps of Adam leave the step within some percent of the best one
    assert names["step"] == pytest.approx(names["best"], rel=0.05)


@pytest.mark.slow
def test_every_block_on_a_thousand_settings_runs_and_finds_what_the_page_says(tmp_path, monkeypatch):
    names = _run_in(tmp_path, monkeypatch, "tutorials/thousand-settings")
    assert int((names["data"].status == "done").sum()) == int(names["known"].sum()) == 48
    assert (abs(names["ends"] / names["data"].limit_product - 1).where(names["known"]).max()) < 1e-8
    relative = names["relative"].unstack("point").mean(("horizon", "init.a"))
    assert float(relative.sel(rho="1").mean()) > float(relative.sel(rho="t-1").mean()) + 0.05
    assert float(relative.sel({"law.df": 8}).mean()) > float(relative.sel({"law.df": 24}).mean()) + 0.1


@pytest.mark.slow
def test_every_block_on_adding_a_paper_runs_and_is_refuted_in_the_wrong_world(tmp_path, monkeypatch):
    names = _run_in(tmp_path, monkeypatch, "tutorials/add-a-paper")
    assert names["finding"].decision == "not met"
    names["step_size"] = names["right"]  # what the functions of the page look up
    assert names["claim"].check(names["claim"].settings["small"]).decision == "met"
    theory = ms.theory.mahankali2024
    assert names["right"](3, 7, 2) == theory.step_size(3, 7, 2)
    assert Path("step-size.png").exists()


@pytest.mark.slow
def test_every_block_on_deriving_a_theorem_runs_and_meets_the_flow(tmp_path, monkeypatch):
    names = _run_in(tmp_path, monkeypatch, "mathematics/derive-your-own-theorem")
    limit = float(names["two_sizes"].numbers(names["limit"]))
    np.testing.assert_allclose(names["flow"].model.products(), limit, rtol=1e-8)  # the solver's tolerance
    assert not any(names["every_block"].diff(name).subs(names["at_zero"]) for name in names["others"])
    at = {str(symbol): value for symbol, value in names["there"].items()}
    assert names["wider"](**at, b=1) < ms.theory.zheng2024.limit_loss(
        names["full_one"], ms.NextToken(6), mask="off-diagonal"
    )


@pytest.mark.slow
def test_every_block_on_counterexamples_runs_and_finds_them(tmp_path, monkeypatch):
    names = _run_in(tmp_path, monkeypatch, "mathematics/counterexamples")
    assert names["found"].check() < 0 and names["below"].check() < 0
    tokens = names["found"].specification()["law"]["law"]["samples"]
    assert sorted(tokens[0]) == [0, 3, 3, 4]  # as the text says


@pytest.mark.slow
@pytest.mark.parametrize("page", ["mathematics/exact-loss", "mathematics/theorems"])
def test_every_block_of_the_mathematics_runs_and_agrees(page, tmp_path, monkeypatch):
    names = _run_in(tmp_path, monkeypatch, page)
    if page.endswith("theorems"):
        assert abs(names["found"] - names["formula"].product).max() < 1e-10
        assert names["held"].loss[-1] > names["free"].loss[-1] + 0.1
        return
    assert names["loss"](names["P"], names["K"], names["gaussian"], 6) == pytest.approx(
        float(ms.population_loss(names["model"], names["process"], names["task"], ms.Enumeration()).value),
        rel=1e-12,
    )
    assert np.isclose(names["distinct"], names["free"])
    assert set(names["differences"](names["two_pairs"], (0,) * 6)) == {2}


@pytest.mark.slow
def test_every_command_shows_its_help(tmp_path, monkeypatch):
    _run_in(tmp_path, monkeypatch, "reference/commands")
    page = (ROOT / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")
    assert set(re.findall(r"mesascope (\w+) --help", page)) == set(COMMANDS)


def _run_in(folder, monkeypatch, page):
    """Run a page in a folder; the names that it leaves."""
    names = {"__name__": page}
    monkeypatch.chdir(folder)
    run((ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8"), names)
    return names


def _trains_to_the_best_step(names):
    # 5 standard errors, and half a percent for training that stops after 1000 steps
    best = float(names["best_step"])
    assert abs(names["loss"] - best) < 5 * names["error"] + 0.005 * best
    assert names["y_hat"].shape == (4,)


def _trains_from_a_file(names, capsys):
    assert main(["train", "regression.toml", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    # the same task with other initial weights, and its own held-out prompts
    assert abs(found["loss"] - names["loss"]) < 5 * 2**0.5 * names["error"] + 0.005 * names["loss"]
    assert Path("regression.safetensors").exists()
    assert isinstance(names["trained"], ms.PromptModel)


def _two_layers_beat_one(names):
    two = names["two_layers"].loss
    assert float(two.value) + 5 * float(two.standard_error) < float(names["one_layer"])
    assert names["two_layers"].evaluated.tolist() == [200, 400, 600]


def _own_models_and_many_seeds_finish(names):
    assert {run.result.value for run in (names["averaged"], *names["runs"])} == {"finished"}
    assert names["averaged"].average is not None
    assert len(set(names["losses"])) == 3
    fixed, learned = names["fixed"].loss, names["learned"].loss
    assert fixed.value - learned.value > 5 * (fixed.standard_error + learned.standard_error)


def _saved_is_loaded(names):
    saved, loaded = (jax.tree.leaves(model) for model in (names["training"].model, names["again"]))
    for one, other in zip(saved, loaded, strict=True):
        np.testing.assert_array_equal(one, other)
    assert Path("model.safetensors").exists()


def test_every_part_that_is_named_exists():
    named = re.findall(r"`(?:ms\.)?([A-Z]\w+)", PAGE)
    assert not [name for name in named if not hasattr(ms, name)]


@pytest.mark.parametrize(
    "page", [PAGE, IDENTIFY, INSIDE, PHASES], ids=["training", "identification", "layers", "phases"]
)
def test_links_exist(page):
    def anchors(text):
        titles = re.findall(r"\n## (.*)", text)
        return {re.sub(r"[^\w\- ]", "", title).lower().replace(" ", "-") for title in titles}

    for target in re.findall(r"\]\(([^)]+)\)", page):
        file, _, anchor = target.partition("#")
        if file.startswith("http"):
            continue
        assert not file or (ROOT / "docs" / file).exists(), target
        if anchor:
            text = (ROOT / "docs" / file).read_text(encoding="utf-8") if file else page
            assert anchor in anchors(text), target
