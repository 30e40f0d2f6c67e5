"""What the story says, without a browser: its answers are those of theory, its programs run."""

import json
import re
from functools import partial

import numpy as np
import pytest

import mesascope as ms
from lab_page import RIGHT, SMALL
from mesascope.lab import _compute, _compute_pools
from mesascope.lab._behaviour_panel import weights_at
from mesascope.lab._form import form_of, setting_of
from mesascope.lab._setting import DEFAULT, from_query, read_setting
from mesascope.lab._words import conclusions
from mesascope.lab.story._drawings import ratio_data, ride_data
from mesascope.lab.story._glossary import GLOSSARY, glossed
from mesascope.lab.story._notebook import PROGRAMS, programs, to_notebook
from mesascope.lab.story._pools import POOL, pool_answer, pool_data
from mesascope.lab.story._presets import PRESETS
from mesascope.lab.story._words import (
    INTRODUCTION,
    LAWS,
    STEPS,
    WHICH_LAWS,
    compared,
    formula,
    notes,
    result_sentence,
    why_longer,
    why_sentence,
    why_title,
)
from mesascope.models import LastEntry, LinearAttentionStack, LinearSelfAttention, PromptModel, StackedPrompt
from mesascope.theory import lu2024


def lu2024_model(gamma):
    construction = lu2024.layer(gamma)
    layer = LinearSelfAttention(construction.w_kq, construction.w_pv, "t-1", "examples")
    return PromptModel(StackedPrompt(len(gamma)), LinearAttentionStack([layer]), LastEntry(1.0))


def silent(text):
    pass


LEARNERS = ["zero", "gradient-descent", "preconditioned-gradient-descent"]


class Computed(dict):
    """What the story computes of a setting, each when it is asked for."""

    def __init__(self, spec):
        self.spec = spec

    def __missing__(self, name):
        arguments = {}
        if name in ("behaviour", "identification"):
            arguments |= weights_at(self["flow"])
        if name == "identification":
            arguments |= {"learners": LEARNERS, "tasks": 100}
        self[name] = getattr(_compute, name)(self.spec, **arguments, progress=silent)
        return self[name]


@pytest.fixture(scope="module")
def small():
    return Computed(from_query(SMALL.removeprefix("?")))


@pytest.mark.slow
@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.id)
def test_answers_of_the_presets(preset):
    results = Computed(setting_of(form_of(read_setting(DEFAULT)) | preset.form))
    number, why = preset.answer(results)
    right, words = RIGHT[preset.id]
    assert (number, words in why) == (right, True), why


@pytest.fixture(scope="module")
def pools():
    return _compute_pools.pools(silent)


@pytest.mark.slow
def test_errors_of_pools_are_losses_of_the_exact_engine(pools):
    # twice the loss with 20 examples, which the exact engine computes without the features of lu2024
    fresh = ms.LinearRegression(10, covariance=np.eye(10) / 10, prior="sphere", noise=0.5)
    task = ms.FewShot(20)
    for size in (3, 32):
        drawn = []
        for seed in range(pools["pools"]):
            pool = ms.TaskPool(fresh, vectors=ms.TaskPool(fresh, tasks=256, seed=seed).table[:size])
            gamma = lu2024.features(pool, ms.FewShot(20)).minimum
            model = lu2024_model(gamma)
            drawn.append([2 * float(ms.population_loss(model, data, task)) for data in (pool, fresh)])
        at = pools["sizes"].tolist().index(size)
        assert (pools["pool"][at], pools["new"][at]) == pytest.approx(np.mean(drawn, 0), rel=1e-10)
    assert pools["zero"] == pytest.approx(1.25)


@pytest.mark.slow
def test_three_tasks_are_memorized_and_many_are_learned_from(pools):
    right, why = pool_answer(pools)
    assert (POOL.options[right], "memorized" in why) == ("no", True)
    assert POOL.judge(0, (right, why)) == f"The answer is: no. {why}"
    assert POOL.judge(1, (right, why)) == f"Right. {why}"
    assert pool_answer(pools | {"zero": 2.0})[0] == 0
    drawn = pool_data(pools)
    json.dumps(drawn["sizes"] + drawn["pool"] + drawn["new"])  # what the browser is sent
    assert drawn["start"] in drawn["sizes"] and drawn["new"][-1] < 1.02 * drawn["pool"][-1]


@pytest.mark.slow
def test_the_result_is_said_with_its_step_and_what_theory_says(small):
    spec = from_query(SMALL.removeprefix("?"))
    limit = float(ms.theory.zheng2024.limit_product(*spec.data()))
    said = re.sub(r"\[\[(.*?)\]\]", r"\1", result_sentence(small["flow"], small["identification"]))
    assert said == f"It became one step of gradient descent with step {limit:.4g}; theory says {limit:.4g} ✓"
    assert result_sentence(small["flow"], None).startswith(f"Its weights end at ab = {limit:.4g}; theory")
    wrong = small["flow"] | {"end": small["flow"]["end"] | {"limit_product": 2 * limit}}
    assert result_sentence(wrong, None).endswith("✗")
    unknown = small["flow"] | {"end": small["flow"]["end"] | {"limit_product": None}}
    assert result_sentence(unknown, None).endswith("Theory names no limit here.")


@pytest.mark.slow
def test_the_table_behind_the_result_says_in_words_what_each_algorithm_misses(small):
    answer = small["identification"]
    rows = {name: (missed, fitted) for name, missed, fitted in compared(answer)}
    assert len(rows) == len(answer["ranking"])
    missed, fitted = rows["gradient descent"]
    step = next(one for one in answer["ranking"] if one["learner"] == "gradient-descent")["hyperparameters"]
    assert (missed, fitted) == ("nothing", f"step size {step['step_size']:.4g}, steps 1")
    assert rows["zero"] == ("100 %", "")
    assert (
        notes(answer)[-1]
        == f"The weights themselves say: gradient descent, step size {step['step_size']:.6g}."
    )
    negative = {
        "reasons": [],
        "reading": "gradient-descent, step size -0.2; other blocks 1e-05 of the weights",
    }
    assert notes(negative) == ["The weights themselves say: gradient descent, step size -0.2."]


@pytest.mark.slow
def test_an_unfinished_training_refutes_no_theory(small):
    stopped = small["flow"] | {"succeeded": False}
    said = result_sentence(stopped, small["identification"])
    assert "✗" not in said and "✓" not in said and "Training is not at its end" in said
    ambiguous = small["identification"] | {"verdict": "ambiguous"}
    assert result_sentence(small["flow"], ambiguous).startswith(
        "It cannot be told apart from gradient-descent"
    )


def test_the_share_of_the_truth_is_that_of_the_trained_layer(small):
    # at T = 6 the limit of training is 0.1811, and E x² = 1; for T → ∞ the share is 1/5
    assert why_title(small["facts"]) == "5 Why 0.181 of the truth?"
    assert "0.181 times on average" in why_sentence(small["facts"])
    assert why_longer(small["facts"]).startswith("It then answers 1/5 of the truth")
    long = small["facts"] | {"trained_ratio": (0.1919, "0.1919")}
    assert why_title(long) == "5 Why about 1/5 of the truth?"
    assert why_title(long | {"ratio": (1.0, "1"), "trained_ratio": (1.0, "1")}) == "5 Why the whole truth?"
    right = small["facts"] | {"gap": (0.0, "0"), "trained_ratio": (0.8258, "0.8258")}
    assert "one step size is right for all" in why_sentence(right)
    assert "as near to the truth as you like" in why_longer(right)
    unknown = small["facts"] | {"gap": (None, "why"), "ratio": (None, "why"), "trained_ratio": (None, "why")}
    assert why_title(unknown) == STEPS["why"][0]
    assert why_sentence(unknown).startswith("Theory says nothing")
    assert why_longer(unknown).startswith("Theory says nothing")


def test_the_formula_has_the_normalizer_of_the_setting():
    assert "1/(t − 1)" in formula("t-1") and "1/t" in formula("t") and "1/" not in formula("1")


def test_the_surface_is_the_exact_loss_of_equal_diagonals(small):
    spec = from_query(SMALL.removeprefix("?"))
    process, task = spec.data()
    surface = small["flow"]["surface"]
    for a, b in ((0.3, -0.7), (1.1, 0.4)):
        model = ms.LinearAttention.diagonal(spec.dim, a, b)
        exact = float(ms.population_loss(model, process, task))
        assert np.polynomial.polynomial.polyval(a * b, surface) == pytest.approx(exact, rel=1e-12)
    ride = ride_data(small["flow"], 1.0)
    assert ride["best"] == pytest.approx(float(ms.theory.zheng2024.limit_product(process, task)), rel=1e-12)
    assert len(ride["a"]) == spec.dim and len(ride["a"][0]) == len(ride["times"]) == len(ride["loss"])


def test_curves_from_a_random_start_are_smooth_and_those_of_the_flow():
    query = SMALL.removeprefix("?").partition("&init")[0] + "&init.kind=gaussian&init.scale=0.1&init.seed=0"
    spec = from_query(query)
    ride = ride_data(Computed(spec)["flow"], 1.0)
    times, ab, loss = (np.array(ride[name]) for name in ("times", "ab", "loss"))
    model, process, task, _ = spec.build()
    # a hundred times as precise: many small steps, between which lines are straight
    fine = ms.gradient_flow(model, process, task, rtol=1e-12, atol=1e-14)
    for values, exact in ((ab, np.asarray(fine.products).mean(1)), (loss, fine.loss)):
        error = np.abs(values - np.interp(times, fine.times, exact)).max()
        assert error < 0.01 * np.ptp(exact)  # the line of a curve is thicker
        along, height = (np.diff(one) / np.ptp(one) for one in (times, values))
        turns = np.abs(np.diff(np.arctan2(height, along)))
        assert turns.max() < 0.35  # 20°: no corner that the eye sees


@pytest.mark.slow
def test_the_histogram_counts_ratios_of_all_sequences(small):
    drawn = ratio_data(small["facts"], small["flow"], small["behaviour"])
    low, high = drawn["edges"][0], drawn["edges"][-1]
    ratios = small["behaviour"]["ratios"]
    assert sum(drawn["counts"]) == np.sum((ratios >= low) & (ratios <= high)) > 0.97 * len(ratios)
    assert low < 0 < 1 < high  # what "right" means is always in the figure


def test_every_symbol_of_every_text_has_a_gloss(small):
    texts = [
        formula("t-1"),
        INTRODUCTION,
        LAWS,
        WHICH_LAWS,
        *(text for _, text in STEPS.values()),
        why_sentence(small["facts"]),
        why_longer(small["facts"]),
        result_sentence(small["flow"], None),
        *(preset.question for preset in PRESETS),
        *conclusions(small["facts"]),
        *(preset.answer(small)[1] for preset in PRESETS if preset.id not in ("full-one", "full-one-mask")),
    ]
    used = set(re.findall(r'class="story-gloss" aria-label="(.*?): ', " ".join(map(glossed, texts))))
    assert used | {"gradient descent", "T", "d", "ŷ/x"} == set(GLOSSARY)
    for text in texts:
        plain = re.sub(r"<button.*?</button>", "", glossed(text))
        assert not re.search(r"κ|x̄|Λ|Σ<sub>|\bab\b|ŷ|E x²|\[\[", plain), plain
    shown = glossed("<b> [[ab]] x_{t+1}")
    assert shown.startswith("&lt;b&gt; <button") and shown.endswith("x<sub>t+1</sub>")
    with pytest.raises(KeyError):
        glossed("[[nobody knows]]")


@pytest.mark.slow
@pytest.mark.parametrize("step", PROGRAMS)
def test_notebooks_of_the_steps_run(step, capsys, monkeypatch):
    import nbformat

    monkeypatch.setattr(ms, "identify", partial(ms.identify, learners=LEARNERS, tasks=100))
    spec = from_query(SMALL.removeprefix("?"))
    nbformat.validate(nbformat.reads(to_notebook(spec, step), as_version=4))
    assert [cell["source"] for cell in json.loads(to_notebook(spec, step))["cells"]][1:] == list(
        programs(spec, step)
    )
    known = {}
    for program in programs(spec, step):
        exec(program, known)
    assert known["process"].dim == 2
