"""The page in a real browser: what people do with it."""

import csv
import io
import json
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from lab_page import (
    FIGURES,
    SHIFTS,
    SMALL,
    TABS,
    box,
    choose,
    download,
    empty_cards,
    end_of_flow,
    message_at,
    nothing_computed,
    open_at,
    slider,
    turn,
    wait_for_text,
    wait_until_drawn,
    write,
)
from mesascope.records import layers_record
from mesascope.report import DARK, LIGHT

# Elements that hold much of the page and get another class: the browser then computes the style of all that they hold, which
# takes longer than to draw a figure.
_RESTYLED = """
() => {
  window.restyled = [];
  new MutationObserver((seen) => {
    for (const { target } of seen)
      if (target.querySelectorAll("*").length > 300 && !target.closest("[data-figure]"))
        window.restyled.push(target.className);
  }).observe(document.querySelector(".lab-content"), { attributeFilter: ["class"], subtree: true });
}
"""
LIMIT = "0.181132"  # 3 / (15 + 3 · (25/12)/4) in six digits


@pytest.mark.slow
def test_the_page_says_why_the_ratio_is_a_fifth(opened):
    text = opened.locator("main").inner_text()
    assert "it predicts 1/5 of the next token on average" in text
    assert "Assumption 4.2" in text
    assert "= 2/5 is not 0" in text
    assert opened.locator('[data-fact="kappa3"] sub').all_inner_texts() == ["3", "r≠j", "j", "r"]


@pytest.mark.slow
def test_every_panel_draws_every_figure(opened):
    for tab in FIGURES:
        turn(opened, tab)
        wait_until_drawn(opened, tab)
    wait_for_text(opened.locator("main"), "have the cosine 1 ")


@pytest.mark.slow
def test_another_law_another_answer(opened):
    choose(opened, "law.kind", "Sparse")
    wait_for_text(opened.locator('[data-fact="gap"]'), "0$")
    wait_for_text(opened.locator('[data-answer="4.2"]'), "yes")
    turn(opened, "Training")
    wait_for_text(end_of_flow(opened), r"converged: .*limit by theory 1, zheng2024")


@pytest.mark.slow
def test_a_slider_moves_the_start_and_the_address(opened):
    turn(opened, "Training")
    wait_for_text(end_of_flow(opened), f"converged.*ab = {LIMIT}; limit by theory {LIMIT}")
    path = '[data-figure="product"] .scatterlayer path.js-line'
    before = opened.locator(path).first.get_attribute("d")
    opened.evaluate(_RESTYLED)
    slider(opened, "init.a").focus()
    for _ in range(10):
        opened.keyboard.press("ArrowRight")
    opened.wait_for_function(
        "([path, before]) => document.querySelector(path).getAttribute('d') !== before", arg=[path, before]
    )
    opened.wait_for_function("document.querySelector('input[data-field=\"init.a\"]').value === '0.7'")
    opened.wait_for_function("location.search.includes('init.a=0.7&')")
    assert opened.evaluate("window.restyled") == []


@pytest.mark.slow
def test_every_change_is_taken_and_only_the_last_is_computed(opened):
    asked = [("law.scale", "2"), ("init.a", "0.7"), ("law.scale", "3"), ("init.b", "0.3")]
    opened.evaluate(
        """async (asked) => {
          for (const [name, text] of asked) {
            const box = document.querySelector(`input[data-field="${name}"]`);
            box.value = text;
            box.dispatchEvent(new Event("input"));
            box.dispatchEvent(new Event("change"));
            await new Promise(requestAnimationFrame); // each is sent
          }
        }""",
        asked,
    )
    heading = opened.get_by_text("theory says about Gaussian(scale=3)")
    heading.wait_for()
    opened.wait_for_selector('[role="status"]', state="hidden")
    turn(opened, "Training")
    start = "document.querySelector('[data-figure=phase]')?.data?.find((one) => one.name === 'start')"
    opened.wait_for_function(f"{start}?.x[0] === 0.7 && {start}.y[0] === 0.3")
    turn(opened, "Data")
    heading.wait_for()  # nothing came later
    found = parse_qs(urlsplit(opened.url).query)
    assert {name: found[name] for name in dict(asked)} == {name: [text] for name, text in dict(asked).items()}
    assert {name: box(opened, name).input_value() for name in dict(asked)} == dict(asked)


@pytest.mark.slow
def test_whole_tokens_are_drawn_from_given_samples(opened):
    with nothing_computed(opened):
        choose(opened, "law.kind", "Empirical")
        write(opened, "law.samples", "1, 0\n-1, 0\n0, 1\n0, -1")
        choose(opened, "law.joint", "yes")
    # those of the sparse law: κ₁ = κ₂ and κ₃ = 0; for independent coordinates κ₃ = 1/4
    wait_for_text(opened.locator('[data-fact="limit"]'), "1$")
    wait_for_text(opened.locator('[data-fact="gap"]'), "0$")
    turn(opened, "Training")
    wait_for_text(end_of_flow(opened), "converged: .* limit by theory 1, zheng2024")


@pytest.mark.slow
def test_a_start_is_drawn_by_hand_on_the_plane(opened):
    turn(opened, "Training")
    wait_for_text(end_of_flow(opened), "converged")
    wait_until_drawn(opened, "Training")
    opened.locator('[data-figure="phase"]').scroll_into_view_if_needed()
    area = opened.locator('[data-figure="phase"] .nsewdrag').bounding_box()
    middle = area["x"] + area["width"] / 2, area["y"] + area["height"] / 2
    opened.mouse.move(middle[0], middle[1])
    opened.mouse.down()
    opened.mouse.move(middle[0] + area["width"] / 4, middle[1] - area["height"] / 8, steps=5)
    opened.mouse.up()
    opened.wait_for_function("new URLSearchParams(location.search).get('init.a') > 0.2")
    # both fields, once they show the same point: twice as far to the right as up, and the pointer stands on whole pixels
    value = "Number(document.querySelector('input[data-field=\"init.{}\"]').value)"
    a, b = value.format("a"), value.format("b")
    opened.wait_for_function(f"{a} > 0.2 && Math.abs({a} / {b} / 2 - 1) < 0.1")


@pytest.mark.slow
def test_a_start_is_moved_on_the_plane_with_the_arrow_keys(opened):
    turn(opened, "Training")
    wait_for_text(end_of_flow(opened), "converged")
    wait_until_drawn(opened, "Training")
    opened.locator('[data-figure="phase"]').focus()
    reach = opened.evaluate("document.querySelector('[data-figure=phase]')._fullLayout.xaxis.range[1]")
    for key in ("ArrowRight", "ArrowRight", "Shift+ArrowUp"):
        opened.keyboard.press(key)
    opened.wait_for_function("new URLSearchParams(location.search).get('init.b') > 0.3")
    moved = [float(box(opened, name).input_value()) for name in ("init.a", "init.b")]
    assert moved == pytest.approx([0.5 + 0.04 * reach, 0.2 + 0.2 * reach], rel=5e-3)  # three digits


@pytest.mark.slow
def test_figures_follow_the_system_from_light_to_dark(opened):
    turn(opened, "Training")
    wait_for_text(end_of_flow(opened), "converged")
    wait_until_drawn(opened, "Training")
    paper = "document.querySelector('[data-figure=product]')._fullLayout.paper_bgcolor"
    try:
        for scheme, ground in (("dark", DARK.paper), ("light", LIGHT.paper)):
            opened.emulate_media(color_scheme=scheme)
            opened.wait_for_function(f"{paper} === '{ground}'")
        # whoever chose keeps it
        opened.get_by_role("button", name="light or dark").click()
        opened.wait_for_function(f"{paper} === '{DARK.paper}'")
        opened.emulate_media(color_scheme="dark")
        opened.emulate_media(color_scheme="light")
        opened.wait_for_timeout(300)
        assert opened.evaluate(paper) == DARK.paper
    finally:
        opened.emulate_media(color_scheme="no-override")


@pytest.mark.slow
def test_a_slider_goes_through_the_time_of_the_weights(opened):
    turn(opened, "Training")
    wait_for_text(end_of_flow(opened), "converged")
    slider(opened, "time").focus()
    for _ in range(5):  # of ten steps each
        opened.keyboard.press("PageDown")
    wait_for_text(opened.locator("main"), "WKQ at flow time 0\\b(?!\\.)")
    _, content = download(opened, "w_kq", "CSV")
    rows = list(csv.DictReader(io.StringIO(content.decode())))
    assert len(rows) == 16
    assert {float(row["y"]) for row in rows if (row["trace"], row["x"]) in (("3", "1"), ("4", "2"))} == {0.5}


@pytest.mark.slow
def test_a_slider_goes_through_the_time_of_the_layer(opened):
    turn(opened, "In-context behaviour")
    wait_for_text(opened.locator("main"), "Capability gap")
    slider(opened, "behaviour").focus()
    for _ in range(5):  # of ten steps each
        opened.keyboard.press("PageDown")
    wait_for_text(opened.locator("main"), "The layer at flow time 0 of")
    wait_for_text(opened.locator("main"), r"one gradient step of size ab = 0\.1 have")  # a, b = 1/2, 1/5
    opened.get_by_role("button", name="Identify").click()
    wait_for_text(opened.locator('[data-fact="verdict"]'), "identified: gradient-descent")
    assert "step_size = 0.1" in opened.locator("table").inner_text()
    opened.get_by_role("button", name="Share").click()
    with opened.expect_download() as caught:
        opened.get_by_text("Download the Python program").click()
    assert "    frame=0,\n" in Path(caught.value.path()).read_text()
    slider(opened, "init.a").focus()
    opened.keyboard.press("ArrowRight")  # another setting: measured at the start of its own flow
    wait_for_text(
        opened.locator("main"),
        r"flow time 0 of .*one gradient step of size ab = 0\.1[0-9]* have(?<!0\.1 have)",
    )


@pytest.mark.slow
def test_figures_are_downloaded_for_print_and_as_numbers(opened):
    turn(opened, "Training")
    wait_for_text(end_of_flow(opened), "converged")
    name, table = download(opened, "product", "CSV")
    assert name == "product.csv"
    rows = list(csv.DictReader(io.StringIO(table.decode())))
    flow = [float(row["y"]) for row in rows if row["trace"].startswith("$a_j b_j$")]
    assert flow[0] == pytest.approx(0.1)
    assert flow[-1] == pytest.approx(float(LIMIT), rel=0.02)  # the picture ends when 1 % of the way is left
    assert download(opened, "product", "PDF")[1].startswith(b"%PDF-")
    assert download(opened, "phase", "PNG")[1].startswith(b"\x89PNG")


@pytest.mark.slow
def test_the_program_of_the_page_gives_its_numbers_and_figures(opened, tmp_path):
    def numbers_of(tab):
        return {name: download(opened, name, "CSV")[1].decode() for name in FIGURES[tab]}

    tables = numbers_of("Data")
    turn(opened, "Training")
    wait_for_text(end_of_flow(opened), "converged")
    box(opened, "samples").fill("64")
    box(opened, "steps").fill("40")
    opened.get_by_role("button", name="Train on samples").click()
    wait_for_text(opened.locator('[data-figure="loss"] .legend'), "descent, exact loss")
    tables |= numbers_of("Training")
    turn(opened, "In-context behaviour")
    wait_for_text(opened.locator("main"), "Capability gap")
    tables |= numbers_of("In-context behaviour")
    said = opened.locator("main").inner_text()
    opened.get_by_role("button", name="Share").click()
    with opened.expect_download() as caught:
        opened.get_by_text("Download the Python program").click()
    assert caught.value.suggested_filename == "view.py"
    run = [sys.executable, "-W", "error", caught.value.path()]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    sentences = done.stdout.splitlines()[-3:]
    assert sentences[0].startswith("The regression of predictions") and all(
        line in said for line in sentences
    )
    for name, table in tables.items():
        ours = list(csv.reader(io.StringIO((tmp_path / "view" / f"{name}.csv").read_text())))
        theirs = list(csv.reader(io.StringIO(table)))
        assert len(theirs) > 4 and [row[:2] for row in ours] == [row[:2] for row in theirs]
        numbers = [[float(one) for row in rows[1:] for one in row[2:] if one] for rows in (ours, theirs)]
        # two compilations of one program, summed in another order
        assert numbers[0] == pytest.approx(numbers[1], rel=1e-6, abs=1e-9), name
        assert (tmp_path / "view" / f"{name}.pdf").read_bytes().startswith(b"%PDF-")


@pytest.mark.slow
def test_identify_names_one_step_of_descent(opened):
    turn(opened, "In-context behaviour")
    wait_for_text(opened.locator("main"), "Capability gap")
    opened.get_by_role("button", name="Identify").click()
    wait_for_text(opened.locator('[data-fact="verdict"]'), "identified: gradient-descent")
    assert f"step_size = {LIMIT}" in opened.locator("table").inner_text()


@pytest.mark.slow
def test_sampled_training_is_shown_and_cancelled(opened):
    turn(opened, "Training")
    wait_for_text(end_of_flow(opened), "converged")
    for name, text in (("samples", "none"), ("steps", "0"), ("seed", "x"), ("rate", "fast")):
        box(opened, name).fill(text)
    opened.get_by_role("button", name="Train on samples").click()
    wait_for_text(message_at(opened, "samples"), "an integer from 2 to 20000")
    wait_for_text(message_at(opened, "steps"), "an integer from 1 to 100000")
    wait_for_text(message_at(opened, "seed"), "an integer from 0")
    wait_for_text(message_at(opened, "rate"), "a number greater than 0")
    box(opened, "seed").fill("0")
    box(opened, "samples").fill("64")
    box(opened, "steps").fill("100000")
    box(opened, "rate").fill("1e-7")
    opened.get_by_role("button", name="Train on samples").click()
    wait_for_text(opened.locator('[role="status"]:visible'), "steps, loss")
    opened.locator('[role="status"]:visible').get_by_role("button", name="Cancel").click()
    opened.wait_for_selector('[role="status"]', state="hidden")
    box(opened, "steps").fill("40")
    box(opened, "rate").fill("")
    opened.get_by_role("button", name="Train on samples").click()
    wait_for_text(opened.locator('[data-figure="product"] .legend'), "descent, 64 sequences: mean, range")
    for words in ("flow, exact loss", "descent, exact loss", "descent, its 64 sequences, 95 %"):
        wait_for_text(opened.locator('[data-figure="loss"] .legend'), re.escape(words))


@pytest.mark.slow
def test_a_flow_is_cancelled_and_tried_again(opened, lab):
    open_at(opened, lab, SMALL + "&until=1000000.0&max_steps=100000000")  # millions of steps
    status = opened.locator('[role="status"]:visible')
    for press in (lambda: None, opened.get_by_role("button", name="Try again").click):
        press()
        wait_for_text(status, "steps, flow time")
        status.get_by_role("button", name="Cancel").click()
        wait_for_text(opened.locator('[role="alert"]:visible').first, "Stopped")
        opened.wait_for_selector('[role="status"]', state="hidden")
    turn(opened, "In-context behaviour")
    opened.get_by_role("button", name="Identify").click()
    wait_for_text(opened.locator("main"), "This setting has no trained layer yet")
    ratio = opened.locator('[data-figure="ratio"]')
    ratio.wait_for(state="attached")
    assert ratio.locator(".subplot").count() == 0  # no empty axes for what is not known


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_accessible(opened, lab, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    opened.emulate_media(color_scheme=scheme)
    try:
        open_at(opened, lab, SMALL)
        for tab in TABS:
            turn(opened, tab)
            wait_until_drawn(opened, tab)
            # the dark differs in nothing but its colours
            rules = {} if scheme == "light" else {"runOnly": ["color-contrast"]}
            found = (
                axe.Axe().run(opened, options={"resultTypes": ["violations"], **rules}).response["violations"]
            )
            text = [(one["id"], [node["html"][:200] for node in one["nodes"][:3]]) for one in found]
            assert text == [], f"{tab}: {json.dumps(text)}"
    finally:
        opened.emulate_media(color_scheme="no-override")


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1440])
def test_all_is_seen_without_scrolling_sideways_nothing_jumps_and_no_card_is_empty(opened, lab, width):
    before = opened.viewport_size
    opened.set_viewport_size({"width": width, "height": 844})
    try:
        open_at(opened, lab, SMALL)
        opened.evaluate(f"() => {{ {SHIFTS} }}")
        for tab in TABS:
            turn(opened, tab)
            wait_until_drawn(opened, tab)
            assert opened.evaluate("document.documentElement.scrollWidth") <= width
            assert empty_cards(opened) == []
        assert opened.evaluate("window.shifted || 0") < 0.05
    finally:
        opened.set_viewport_size(before)


@pytest.mark.slow
def test_the_panel_of_other_layers_draws_the_record_that_comes_with_the_package(opened):
    turn(opened, "In-context behaviour")
    opened.locator('[data-act="layers"]').get_by_text("What other layers compute").click()
    for name in layers_record().data:
        choose(opened, "layers", name)
        wait_for_text(opened.locator("main"), f"What layers compute: {name}")
    opened.wait_for_selector('[data-figure="layers"] .cartesianlayer .subplot', state="attached")
    assert b"delta-net, trained" in download(opened, "layers", "CSV")[1]
