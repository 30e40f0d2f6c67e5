"""The story in a real browser: each step says what the Python API says, and answers to what people do."""

import json
import re

import pytest

import mesascope as ms
from lab_page import RIGHT, SHIFTS, SMALL, empty_cards
from mesascope.lab import _compute_pools
from mesascope.lab._form import form_of, setting_of
from mesascope.lab._setting import DEFAULT, from_query, read_setting, to_query
from mesascope.lab.story._presets import PRESETS

# the texts and questions that need more than three lines
_LONG_TEXTS = """
() => [...document.querySelectorAll(".story-text, .story-sentence, .story-preset-title + div")].filter((text) => {
  const range = document.createRange();
  range.selectNodeContents(text);
  return range.getBoundingClientRect().height / parseFloat(getComputedStyle(text).lineHeight) > 3.4;
}).map((text) => text.innerText)
"""


def wait_for_text(locator, pattern):
    """Wait for a text as it is seen, without glosses that are not shown."""
    from playwright.sync_api import expect

    expect(locator).to_contain_text(re.compile(pattern), timeout=180_000, use_inner_text=True)


def result(page):
    return page.locator('[data-fact="result"]')


@pytest.fixture
def story(window, lab):
    page, seen = window
    seen.errors.clear(), seen.requests.clear()
    page.goto(lab.at(SMALL, page=""))
    wait_for_text(result(page), "It became")
    yield page
    assert seen.errors == []
    assert seen.outside() == []


def answers():
    spec = from_query(SMALL.removeprefix("?"))
    model, process, task, _ = spec.build()
    flow = ms.gradient_flow(model, process, task)
    return process, flow, float(ms.theory.zheng2024.limit_product(process, task))


@pytest.mark.slow
def test_every_step_says_what_python_says(story):
    process, flow, limit = answers()
    step = f"{limit:.4g}"
    wait_for_text(result(story), f"one step of gradient descent with step {step}; theory says {step} ✓")
    story.wait_for_selector(".story-why:not(.lab-stale)")  # measured for this setting
    ratio = f"{float(ms.theory.zheng2024.expected_ratio(process, limit)):.3g}"
    wait_for_text(story.locator('[data-fact="why"]'), f"{ratio} times on average")
    assert story.get_by_role("heading", name=f"5 Why {ratio} of the truth?").is_visible()
    scrub = story.locator('[data-act="scrub"]')
    scrub.fill("1000")
    wait_for_text(
        story.locator('[data-fact="now"]'),
        f"ab = {float(flow.products[-1].mean()):.3g}, loss {float(flow.loss[-1]):.4g}",
    )
    scrub.fill("0")
    wait_for_text(story.locator('[data-fact="now"]'), "training time 0: ab = 0.1,")
    # half of the mean square 1 of both entries of the next token, after contexts of 2 … 5 tokens
    assert re.search(r"always answering 0: 4\b", story.locator(".story-curves").text_content())
    story.get_by_text("How do we know?").click()
    wait_for_text(
        story.locator('[data-step="result"]'),
        f"weights themselves say: gradient descent, step size {limit:.6g}",
    )
    for size, word in (("0.1", "too short"), ("2.35", "right"), ("4", "too long")):
        story.locator('[data-act="size"]').fill(size)
        wait_for_text(story.locator('[data-fact="answer"]'), word)


@pytest.mark.slow
def test_a_law_is_chosen_and_the_story_changes(story):
    story.locator('[data-law="sparse"]').click()
    wait_for_text(result(story), "with step 1; theory says 1 ✓")
    wait_for_text(story.locator('[data-step="why"]'), "one step size is right for all")
    story.wait_for_function("location.search.includes('law.kind=sparse')")
    assert story.locator('[data-law="sparse"]').get_attribute("aria-pressed") == "true"


@pytest.mark.slow
def test_two_windows_tell_their_own_stories(story, browser, lab):
    with browser.page() as (other, seen):
        other.goto(lab.at(SMALL.replace("gaussian&law.scale=1", "sparse"), page=""))
        wait_for_text(result(other), "with step 1; theory says 1 ✓")
        story.locator('[data-act="one-size"]').click()
        wait_for_text(story.locator('[data-step="why"]'), "one step size is right for all")
        assert "law.kind=rademacher" in story.url and "law.kind=sparse" in other.url
        wait_for_text(result(other), "with step 1; theory says 1 ✓")
        assert seen.errors == []


@pytest.mark.slow
def test_one_size_closes_the_gap_and_back(story):
    story.locator('[data-act="one-size"]').click()
    wait_for_text(story.locator('[data-step="why"]'), "one step size is right for all")
    story.locator('[data-act="undo"]').click()
    wait_for_text(story.locator('[data-step="why"]'), "Why 0.181 of the truth?")
    story.wait_for_function("location.search.includes('law.kind=gaussian')")


@pytest.mark.slow
def test_the_ride_plays_pauses_and_takes_a_start(story):
    now = story.locator('[data-fact="now"]')
    story.locator('[data-act="play"]').click()  # nothing moves for those who ask their system for less motion
    wait_for_text(now, "ab = 0.181")
    plane = story.locator(".story-plane svg")
    plane.focus()
    story.keyboard.press("Shift+ArrowRight")
    story.wait_for_function("Number(new URLSearchParams(location.search).get('init.a')) > 0.55")
    wait_for_text(now, "training time 0:")
    box = plane.bounding_box()
    story.mouse.click(box["x"] + 0.75 * box["width"], box["y"] + 0.75 * box["height"])  # b below 0
    story.wait_for_function("Number(new URLSearchParams(location.search).get('init.b')) < -0.1")


@pytest.mark.slow
@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.id)
def test_a_guess_is_answered_from_what_was_trained(story, preset):
    right, why = RIGHT[preset.id]
    card = story.locator(f'[data-preset="{preset.id}"]')
    wrong = next(one for one in preset.options if one != preset.options[right])
    card.get_by_role("button", name=wrong, exact=True).click()
    wait_for_text(card, f"The answer is: {preset.options[right]}. .*{re.escape(why)}")
    spec = setting_of(form_of(read_setting(DEFAULT)) | preset.form)
    story.wait_for_function("query => location.search === query", arg=f"?{to_query(spec)}")
    story.locator('[data-act="undo"]').click()
    story.wait_for_function("location.search.includes('dim=2')")


@pytest.mark.slow
def test_a_question_is_open_again_once_another_is_asked(story):
    # Asked within the page, as soon as the first one trains: what was trained before is answered within a second.
    asked = """
    () => new Promise((done) => {
      const [first, second] = ["heavy-tails", "last-token"].map((id) => document.querySelector(`[data-preset="${id}"]`));
      const option = (card, text) => [...card.querySelectorAll("button")].find((one) => one.innerText.trim() === text);
      new MutationObserver((changes, observer) => {
        if (!first.innerText.includes("Training …")) return;
        observer.disconnect();
        option(second, "smaller").click();
        done();
      }).observe(first, {subtree: true, childList: true, characterData: true});
      option(first, "one fifth").click();
    })
    """
    story.evaluate(asked)
    first, second = (story.locator(f'[data-preset="{one}"]') for one in ("heavy-tails", "last-token"))
    wait_for_text(first, "The answer appears here.")
    wait_for_text(second, "Training …|The answer is")
    pressed = [button.inner_text() for button in story.locator('[data-preset] [aria-pressed="true"]').all()]
    assert pressed == ["smaller"]  # of the second question; no guess of the first one stands


@pytest.mark.slow
def test_a_pool_of_few_tasks_is_memorized_and_of_many_learned_from(story):
    card = story.locator('[data-preset="pool"]')
    now, slider = story.locator('[data-fact="pool"]'), story.locator('[data-act="tasks"]')
    assert slider.is_disabled()  # the answer comes after the guess
    card.get_by_role("button", name="yes").click()
    pools = _compute_pools.pools(lambda text: None)
    new = dict(zip(pools["sizes"].tolist(), pools["new"], strict=True))
    wait_for_text(
        card, f"The answer is: no. It has memorized its tasks: on new ones its error is {new[3]:.3g}"
    )
    wait_for_text(now, f"K = 3: .* {new[3]:.3g} on new tasks: it memorizes")
    waited = story.evaluate(
        """async () => {
          const slider = document.querySelector('[data-act="tasks"]'), now = document.querySelector('[data-fact="pool"]');
          const begin = performance.now();
          slider.value = slider.max;
          slider.dispatchEvent(new Event("input"));
          while (!now.innerText.includes("K = 256")) await new Promise(requestAnimationFrame);
          return performance.now() - begin;
        }"""
    )
    assert waited < 200  # milliseconds, the bar for a slider
    wait_for_text(now, f"K = 256: .* {new[256]:.3g} on new tasks: it learns in context")
    assert "dim=2" in story.url  # the setting of the page is another thing


@pytest.mark.slow
def test_a_step_opens_as_notebook_specification_and_in_expert(story):
    step = story.locator('[data-step="train"]')
    with story.expect_download() as caught:
        step.get_by_role("button", name="Notebook").click()
    with open(caught.value.path()) as file:
        assert "ms.plot(flow)" in json.load(file)["cells"][-1]["source"]
    with story.expect_download() as caught:
        step.get_by_role("button", name="Specification").click()
    with open(caught.value.path()) as file:
        assert "horizon = 6" in file.read()
    step.get_by_role("button", name="Expert").click()
    story.wait_for_selector('[data-fact="limit"]')
    assert re.search(r"/expert\?.*dim=2&horizon=6", story.url)


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (390, "dark")])
def test_nothing_jumps_overflows_or_stands_still(browser, lab, width, scheme):
    size = {"width": width, "height": 900}
    with browser.page(viewport=size, color_scheme=scheme, has_touch=width < 500) as (page, seen):
        page.add_init_script(SHIFTS)
        page.goto(lab.at("?" + SMALL.removeprefix("?"), page=""))
        wait_for_text(result(page), "It became")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert empty_cards(page) == []
        assert page.evaluate(_LONG_TEXTS) == []
        page.locator('[data-act="play"]').click()
        wait_for_text(page.locator('[data-act="play"]'), "Pause")
        wait_for_text(page.locator('[data-act="play"]'), "Train")  # it came to its end
        assert page.evaluate("window.shifted || 0") < 0.05
        gloss = page.locator(".story-gloss").first
        gloss.focus()
        assert page.locator(".story-tip").first.is_visible()
        assert seen.errors == []


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_accessible(browser, lab, scheme):
    from axe_playwright_python.sync_playwright import Axe

    with browser.page(color_scheme=scheme, reduced_motion="reduce") as (page, _):
        page.goto(lab.at(SMALL, page=""))
        wait_for_text(result(page), "It became")
        page.get_by_text("How do we know?").click()
        found = Axe().run(page).response["violations"]
        assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in found] == []
