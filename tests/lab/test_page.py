"""The page in a real browser: what people do with it."""

import csv
import io
import json
import re
import subprocess
import sys
import tomllib
from contextlib import contextmanager
from urllib.parse import parse_qs, urlsplit

import pytest

import stored_records as stored
from mesascope.lab._setting import from_query, read_setting
from mesascope.report import DARK, LIGHT

SMALL = "?dim=2&horizon=6&law.kind=gaussian&law.scale=1&init.kind=diagonal&init.a=0.5&init.b=0.2"
LIMIT = "0.181132"  # 3 / (15 + 3 · (25/12)/4) in six digits
FAST = "vladymyrov2024/one-layer-row"  # a claim with a figure that is checked in a second
TABS = ("Data", "Training", "In-context behaviour", "Claims")
_FIGURES = {
    "Data": ("law", "paths", "sequence"),
    "Training": ("product", "loss", "phase", "w_kq", "w_pv"),
    "In-context behaviour": ("error", "predictions", "ratio", "sensitivity"),
}


PLUGIN = '''
"""A law of one's own."""

from fractions import Fraction
from math import factorial

import mesascope as ms
from mesascope.processes import IdenticalLaw
from mesascope.specs import Scale


@ms.kind("laplace")
class Laplace(IdenticalLaw):
    """Independent coordinates with density $e^{-|x|/b}/(2b)$: $E x^n = n! b^n$ for even $n$.

    Args:
        scale: the width $b > 0$ of the density.
        centred: whether odd moments vanish; no other choice is known.
    """

    scale: Scale = 1
    centred: bool = True

    def line_moment(self, order):
        return factorial(order) * Fraction(self.scale) ** order if order % 2 == 0 else Fraction(0)

    def sample(self, key, dim, shape=()):
        import jax

        return float(self.scale) * jax.random.laplace(key, (*shape, dim))
'''


@pytest.fixture(scope="module")
def lab(start_lab, tmp_path_factory):
    folder = tmp_path_factory.mktemp("lab")
    (folder / "laplace.py").write_text(PLUGIN)
    checked = stored.claim(
        "zheng2024/theorem-4.2",
        statement="As T, t → ∞ the risk tends to <b>something</b>.",
        measured={"error": 1e-9},
        criterion="rounding",
        details={"meaning": "distance to the limit"},
    )
    bare = stored.claim(FAST)  # as the repository keeps them: a record, and no figures
    stored.run_directory(
        folder / "records" / "small", checked, bare, figures={"zheng2024/risk": stored.curves_figure()}
    )
    stored.store(folder / "runs")
    with start_lab(
        folder, "--port", "0", "--records", "records", "runs", "--plugin", "laplace.py"
    ) as running:
        yield running


@pytest.fixture(scope="module")
def window(browser):
    # as people may ask of their system: nothing fades, so that no test waits for what does
    with browser.page(viewport={"width": 1280, "height": 900}, reduced_motion="reduce") as found:
        yield found


@pytest.fixture
def opened(window, lab):
    """A small setting, its facts on the page; whatever it says on the console or asks of others is an error."""
    page, seen = window
    seen.errors.clear(), seen.requests.clear()
    open_at(page, lab, SMALL)
    yield page
    assert seen.errors == []
    assert seen.outside() == []
    assert any("socket.io" in url for url in seen.requests)


def open_at(page, lab, query):
    page.goto(lab.address + query)
    page.wait_for_selector('[data-fact="limit"]')


def turn(page, name):
    page.get_by_role("tab", name=name).click()


def field(page, name):
    return page.locator(f'[data-field="{name}"]')


def box(page, name):
    """The part of a field that is typed into, whichever element carries its name."""
    return page.locator(
        f'input[data-field="{name}"], textarea[data-field="{name}"], [data-field="{name}"] input'
    )


def write(page, name, text):
    """Fill a field and leave it: it is sent at once, not when typing has paused."""
    box(page, name).fill(text)
    box(page, name).blur()


def slider(page, name):
    """The part of a slider that keys reach."""
    return page.locator(f'[data-slider="{name}"] .q-slider__track-container')


def end_of_flow(page):
    return page.locator('[data-fact="end"]')


def wait_until_drawn(page, tab):
    """Wait for all figures of a panel, or for the claims."""
    for name in _FIGURES.get(tab, ()):
        described = f'[data-figure="{name}"][aria-label*=". "]'  # by its caption, once it is drawn
        page.wait_for_selector(f"{described} .cartesianlayer .subplot", state="attached")
    if tab == "Claims":
        page.wait_for_selector("[data-claim]")


def choose(page, name, option):
    page.locator(f'.q-select:has([data-field="{name}"]), .q-select[data-field="{name}"]').first.click()
    page.get_by_role("option", name=option, exact=True).click()


def download(page, figure, kind):
    page.get_by_role("button", name=f"download {figure}", exact=True).click()
    with page.expect_download() as caught:
        page.get_by_text(kind, exact=True).click()
    page.wait_for_selector(".q-menu", state="detached")  # it fades away, with the same words as the next
    with open(caught.value.path(), "rb") as file:
        return caught.value.suggested_filename, file.read()


def wait_for_text(locator, pattern, seconds=60):
    from playwright.sync_api import expect

    expect(locator).to_contain_text(re.compile(pattern), timeout=1000 * seconds)


def test_the_page_says_why_the_ratio_is_a_fifth(opened):
    text = opened.locator("main").inner_text()
    assert "it predicts 1/5 of the next token on average" in text
    assert "Assumption 4.2" in text
    assert "= 2/5 is not 0" in text
    assert opened.locator('[data-fact="kappa3"] sub').all_inner_texts() == ["3", "r≠j", "j", "r"]


def test_every_panel_draws_every_figure(opened):
    for tab in _FIGURES:
        turn(opened, tab)
        wait_until_drawn(opened, tab)
    wait_for_text(opened.locator("main"), "have the cosine 1 ")


def test_another_law_another_answer(opened):
    choose(opened, "law.kind", "Sparse")
    wait_for_text(opened.locator('[data-fact="gap"]'), "0$")
    wait_for_text(opened.locator('[data-answer="4.2"]'), "yes")
    turn(opened, "Training")
    wait_for_text(end_of_flow(opened), r"converged: .*limit by theory 1, zheng2024")


def test_a_law_of_ones_own_has_its_fields_in_the_form_and_is_computed(opened):
    assert opened.get_by_label("standard deviation σ > 0", exact=True).first.is_visible()
    choose(opened, "law.kind", "Laplace")
    wait_for_text(opened.locator(".lab-side"), re.escape("density e−|x|/b/(2b)"))
    opened.get_by_label("width b > 0 of the density", exact=True).first.wait_for()
    assert slider(opened, "law.scale").is_visible()
    assert box(opened, "law.scale").input_value() == "1"
    choose(opened, "law.centred", "yes")
    write(opened, "law.scale", "1/2")
    opened.wait_for_function("location.search.includes('law.kind=laplace&law.scale=1%2F2&law.centred=true')")
    # E x² = 2 b², κ₁ = 24 b⁴ and κ₂ = 720 b⁶
    wait_for_text(opened.locator("main"), "it predicts 1/15 of the next token on average")
    turn(opened, "Training")
    wait_for_text(end_of_flow(opened), "converged: .*limit by theory")
    turn(opened, "In-context behaviour")
    wait_for_text(opened.locator("main"), "Capability gap")
    opened.get_by_role("button", name="Share").click()
    with opened.expect_download() as caught:
        opened.get_by_text("Download the specification").click()
    with open(caught.value.path(), "rb") as file:
        content = file.read()
    spec = tomllib.loads(content.decode())
    assert spec["law"] == {"kind": "laplace", "scale": "1/2", "centred": True}
    assert [name.rpartition("/")[2] for name in spec["plugins"]] == ["laplace.py"]
    opened.wait_for_selector(".q-menu", state="detached")
    choose(opened, "law.kind", "Gaussian")
    opened.wait_for_function("location.search.includes('law.kind=gaussian')")
    opened.get_by_role("button", name="Share").click()
    opened.get_by_text("Open a specification …").click()
    upload = {"name": "spec.toml", "mimeType": "application/toml", "buffer": content}
    opened.locator(".q-uploader__input").set_input_files(upload)
    opened.wait_for_function("location.search.includes('law.kind=laplace')")


def test_a_slider_moves_the_start_and_the_address(opened):
    turn(opened, "Training")
    wait_for_text(end_of_flow(opened), f"converged.*ab = {LIMIT}; limit by theory {LIMIT}")
    path = '[data-figure="product"] .scatterlayer path.js-line'
    before = opened.locator(path).first.get_attribute("d")
    slider(opened, "init.a").focus()
    for _ in range(10):
        opened.keyboard.press("ArrowRight")
    opened.wait_for_function(
        "([path, before]) => document.querySelector(path).getAttribute('d') !== before", arg=[path, before]
    )
    opened.wait_for_function("document.querySelector('input[data-field=\"init.a\"]').value === '0.7'")
    opened.wait_for_function("location.search.includes('init.a=0.7&')")


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


def test_a_start_is_moved_on_the_plane_with_the_arrow_keys(opened):
    turn(opened, "Training")
    wait_for_text(end_of_flow(opened), "converged")
    wait_until_drawn(opened, "Training")
    opened.locator('[data-figure="phase"]').focus()
    for key in ("ArrowRight", "ArrowRight", "Shift+ArrowUp"):
        opened.keyboard.press(key)
    opened.wait_for_function("new URLSearchParams(location.search).get('init.b') > 0.3")
    reach = opened.evaluate("document.querySelector('[data-figure=phase]')._fullLayout.xaxis.range[1]")
    moved = [float(box(opened, name).input_value()) for name in ("init.a", "init.b")]
    assert moved == pytest.approx([0.5 + 0.04 * reach, 0.2 + 0.2 * reach], rel=5e-3)  # three digits


# The name of what has the focus, and whether what had it before looks otherwise now: that it had it was to be seen.
FOCUSED = """
async () => {
  for (const _ of [1, 2]) await new Promise(requestAnimationFrame); // until it is drawn
  const looks = (one) => {
    const around = one.closest(".q-field, .q-btn, .q-item, .q-slider, .q-tab") || one;
    const parts = [around, ...around.querySelectorAll("*")];
    return JSON.stringify(parts.flatMap((part) => [null, "::before", "::after"].map((which) => {
      const { outline, border, background, boxShadow, opacity, transform } = getComputedStyle(part, which);
      return [outline, border, background, boxShadow, opacity, transform];
    })));
  };
  const one = document.activeElement, before = window.hadFocus, seen = !before || looks(before.one) !== before.looks;
  window.hadFocus = { one, looks: looks(one) };
  const named = one.closest("[data-field], [data-slider], [data-figure], [data-act]");
  const { field, slider, figure, act } = named?.dataset || {};
  const said = one.getAttribute("aria-label") || one.innerText.split("\\n").pop();
  return [slider ? `slider ${slider}` : field || figure || act || said, seen];
}
"""


def tab_through(page, last):
    """Press the tabulator until something has the focus; the names of what had it on the way."""
    names = []
    while last not in names:
        page.keyboard.press("Tab")
        name, seen = page.evaluate(FOCUSED)
        assert seen, f"nothing showed that {names[-1]} had the focus"
        names.append(name)
        assert len(names) < 40, names
    return names


def test_everything_is_reached_by_the_keyboard_in_the_order_of_the_page(opened):
    opened.wait_for_selector('[role="status"]', state="hidden")
    names = "law.kind|law.scale|slider law.scale|dim|slider dim|horizon|slider horizon|objective|rho"
    starts = "init.kind|init.a|slider init.a|init.b|slider init.b|mask"
    assert tab_through(opened, "Data") == [
        *("Share", "light or dark", 'Collapse "Data"', *names.split("|")),
        *('Collapse "Start of training"', *starts.split("|"), 'Expand "Solver"', "Data"),
    ]
    opened.keyboard.press("ArrowRight")
    opened.keyboard.press("Enter")
    wait_until_drawn(opened, "Training")
    wait_for_text(end_of_flow(opened), "converged")
    assert tab_through(opened, "download product")[-1:] == ["download product"]
    opened.keyboard.press("Enter")
    opened.wait_for_selector(".q-menu:focus")
    for key in ("ArrowDown", "ArrowDown", "ArrowUp", "ArrowUp"):  # PDF, PNG, PDF, and round to CSV
        opened.keyboard.press(key)
    with opened.expect_download() as caught:
        opened.keyboard.press("Enter")
    assert caught.value.suggested_filename == "product.csv"
    opened.wait_for_selector(".q-menu", state="detached")
    assert tab_through(opened, "train") == [
        *("download loss", "download phase", "phase", "slider time", "download w_kq", "download w_pv"),
        *("samples", "steps", "rate", "seed", "train"),
    ]
    write(opened, "steps", "100000")
    write(opened, "rate", "1e-7")
    opened.locator("[data-act=train]").focus()
    opened.keyboard.press("Enter")
    wait_for_text(opened.locator('[role="status"]:visible'), "steps, loss")
    opened.keyboard.press("Tab")
    assert opened.evaluate(FOCUSED)[0] == "Cancel"
    opened.keyboard.press("Enter")
    opened.wait_for_selector('[role="status"]', state="hidden")


def test_what_a_layer_does_and_claims_are_reached_by_the_keyboard(opened):
    opened.get_by_role("tab", name="Data").focus()
    for key in ("ArrowRight", "ArrowRight", "Enter"):
        opened.keyboard.press(key)
    wait_until_drawn(opened, "In-context behaviour")
    opened.locator('[role="status"]:visible').first.wait_for(state="detached")  # with its own button, Cancel
    assert tab_through(opened, "identify") == [
        *(f"download {name}" for name in _FIGURES["In-context behaviour"]),
        *("six learners that compete here", "all learners, a minute or more", "identify"),
    ]
    opened.get_by_role("tab", name="In-context behaviour").focus()
    for key in ("ArrowRight", "Enter"):
        opened.keyboard.press(key)
    wait_until_drawn(opened, "Claims")
    claim = 'Expand "✓ holds · The best matrix for three loops is not symmetric"'
    way = tab_through(opened, claim)
    assert way[:2] == ["paper", "outcome"] and all(name.startswith("Expand ") for name in way[2:])
    opened.keyboard.press("Enter")
    opened.locator('[data-claim="gatmiry2024/minimizer-is-not-symmetric"] [data-act=rerun]').wait_for()
    assert tab_through(opened, "rerun") == ["rerun"]


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


def test_a_slider_goes_through_the_time_of_the_weights(opened):
    turn(opened, "Training")
    wait_for_text(end_of_flow(opened), "converged")
    slider(opened, "time").focus()
    for _ in range(5):  # of ten steps each
        opened.keyboard.press("PageDown")
    wait_for_text(opened.locator("main"), "W\\^KQ at flow time 0\\b(?!\\.)")
    _, content = download(opened, "w_kq", "CSV")
    rows = list(csv.DictReader(io.StringIO(content.decode())))
    assert len(rows) == 16
    assert {float(row["y"]) for row in rows if (row["trace"], row["x"]) in (("3", "1"), ("4", "2"))} == {0.5}


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


def test_the_program_of_the_page_gives_its_numbers_and_figures(opened, tmp_path):
    def numbers_of(tab):
        return {name: download(opened, name, "CSV")[1].decode() for name in _FIGURES[tab]}

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


def test_a_setting_too_long_for_an_address_says_so_at_the_button_and_gives_its_file(opened):
    choose(opened, "law.kind", "Empirical")
    samples = [n / 7 for n in range(1, 1500)]
    box(opened, "law.samples").fill(", ".join(map(str, samples)))
    opened.wait_for_function("location.search === ''")
    opened.get_by_role("button", name="Share").click()
    with opened.expect_download() as caught:
        opened.get_by_text("Too long for an address: download the specification").click()
    with open(caught.value.path(), "rb") as file:
        assert tomllib.load(file)["law"]["samples"] == samples


def test_a_specification_is_downloaded_and_another_opened(opened):
    opened.get_by_role("button", name="Share").click()
    with opened.expect_download() as caught:
        opened.get_by_text("Download the specification").click()
    assert caught.value.suggested_filename == "spec.toml"
    with open(caught.value.path(), "rb") as file:
        table = tomllib.load(file)
    del table["plugins"]  # which are not loaded here
    assert read_setting(table) == from_query(SMALL.removeprefix("?"))
    opened.wait_for_selector(".q-menu", state="detached")
    opened.get_by_role("button", name="Share").click()
    opened.get_by_text("Open a specification …").click()
    spec = {
        "dim": 2,
        "horizon": 6,
        "law": {"kind": "gaussian", "scale": 2},
        "init": {"kind": "diagonal", "a": 1, "b": 1},
    }
    content = {"name": "spec.json", "mimeType": "application/json", "buffer": json.dumps(spec).encode()}
    opened.locator(".q-uploader__input").set_input_files(content)
    opened.wait_for_function("location.search.includes('law.scale=2')")
    assert box(opened, "init.b").input_value() == "1"


def test_identify_names_one_step_of_descent(opened):
    turn(opened, "In-context behaviour")
    wait_for_text(opened.locator("main"), "Capability gap")
    opened.get_by_role("button", name="Identify").click()
    opened.get_by_role("button", name="Cancel").locator("visible=true").first.wait_for()
    wait_for_text(opened.locator('[data-fact="verdict"]'), "identified: gradient-descent")
    assert f"step_size = {LIMIT}" in opened.locator("table").inner_text()


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


def test_a_flow_is_cancelled_and_tried_again(opened, lab):
    open_at(opened, lab, SMALL + "&until=1000000.0&max_steps=100000000")  # millions of steps
    status = opened.locator('[role="status"]:visible')
    for press in (lambda: None, opened.get_by_role("button", name="Try again").click):
        press()
        wait_for_text(status, "steps, gradient")
        status.get_by_role("button", name="Cancel").click()
        wait_for_text(opened.locator('[role="alert"]:visible').first, "Stopped")
        opened.wait_for_selector('[role="status"]', state="hidden")
    turn(opened, "In-context behaviour")
    opened.get_by_role("button", name="Identify").click()
    wait_for_text(opened.locator("main"), "This setting has no trained layer yet")
    ratio = opened.locator('[data-figure="ratio"]')
    ratio.wait_for(state="attached")
    assert not ratio.is_visible()  # no empty axes for what is not known


def test_a_shared_address_opens_the_same_setting(opened):
    box(opened, "horizon").fill("7")
    choose(opened, "objective", "the last one only")
    opened.wait_for_function("location.search.includes('weights.6=1')")
    other = opened.context.new_page()
    try:
        other.goto(opened.url)
        other.wait_for_selector('[data-fact="limit"]')
        assert box(other, "horizon").input_value() == "7"
        assert other.url == opened.url
        assert from_query(urlsplit(opened.url).query).weights == {6: 1}
        # two windows, two states
        box(other, "init.a").fill("0.9")
        other.wait_for_function("location.search.includes('init.a=0.9')")
        assert box(opened, "init.a").input_value() == "0.5"
        assert parse_qs(urlsplit(opened.url).query)["init.a"] == ["0.5"]
    finally:
        other.close()


BAD = [  # every kind of bad value is in test_setting; here every field
    ("dim", "1000", "at most 24"),
    ("horizon", "", "must be an integer"),
    ("law.scale", "1e308", "choose other units"),
    ("law.scale", "1e50", "leaves double precision"),  # which nobody knows before the flow
    ("init.a", "NaN", "must be finite"),
    ("init.a", "1e308", "at most 1e+06"),
    ("init.b", "1e999", "finite"),
    ("until", "soon", "neither a time"),
    ("tolerance", "2", "must lie between"),
    ("max_steps", "0", "at least 1"),
]
READ = [  # what reading the form finds
    ("law.kind", "Constant", [("law.value", "1, x", "not a rational number")]),
    ("law.kind", "Empirical", [("law.samples", "1, x", "rational")]),
    ("law.kind", "Mixture", [("law.parts", "0.5 gaussian", "must sum to 1, not 0.5")]),
    ("law.kind", "Moments", [("law.moments", "1, 2", "must be the 7 numbers")]),
    (
        "init.kind",
        "Gaussian",
        [("init.seed", "-1", "at least 0"), ("init.scale", "inf", "not a rational number")],
    ),
    (
        "init.kind",
        "Explicit",
        [
            ("init.w_kq", "1 x", "not a rational number"),
            ("init.w_pv", "1 2\n3", "make rows equally long"),
        ],
    ),
]
BUILT = [  # what is found when all fields are read
    ("law.kind", "Student t", "law.df", "5", "df > 6"),
    ("objective", "weights by context length", "weights", "9: 1", "context lengths are 2 … 5"),
]
GOOD = {
    "init.w_kq": "0 0 0 0\n0 0 0 0\n1 0 0 0\n0 1 0 0",
    "init.w_pv": "1 0 0 0\n0 1 0 0",
    "law.kind": "Gaussian",
    "objective": "every prediction (autoregressive)",
    "init.kind": "Diagonal",
}


def message_at(page, name):
    return page.locator(f'.q-field:has([data-field="{name}"]), .q-field[data-field="{name}"]').locator(
        '.q-field__messages [role="alert"]'
    )


@contextmanager
def nothing_computed(page):
    """Meanwhile one field is wrong that is read after all others."""
    if not box(page, "max_steps").is_visible():
        page.get_by_text("Solver", exact=True).click()
    write(page, "max_steps", "0")
    try:
        wait_for_text(message_at(page, "max_steps").first, "at least 1", seconds=10)
    except AssertionError:
        # seen once, on a machine with much else to do, never when tried again: the text was gone, nobody knows why
        write(page, "max_steps", "")
        write(page, "max_steps", "0")
        wait_for_text(message_at(page, "max_steps").first, "at least 1")
    yield
    write(page, "max_steps", "")


def test_a_bad_value_is_reported_at_its_field_and_the_page_lives(lab, opened):
    opened.get_by_text("Solver", exact=True).click()
    for name, text, message in BAD:
        good = box(opened, name).input_value()
        write(opened, name, text)
        wait_for_text(message_at(opened, name).first, re.escape(message))
        write(opened, name, good)
        opened.wait_for_selector('.q-field__messages [role="alert"]', state="detached")
    with nothing_computed(opened):
        for choice, option, fields in READ:
            choose(opened, choice, option)
            for name, text, message in fields:
                good = GOOD.get(name, box(opened, name).input_value())
                write(opened, name, text)
                wait_for_text(message_at(opened, name).first, re.escape(message))
                write(opened, name, good)
            choose(opened, choice, GOOD[choice])  # what is hidden is not asked for
            wait_for_text(message_at(opened, "max_steps").first, "at least 1")
    for choice, option, name, text, message in BUILT:
        with nothing_computed(opened):
            choose(opened, choice, option)
            good = box(opened, name).input_value()
            write(opened, name, text)
        wait_for_text(message_at(opened, name).first, re.escape(message))
        with nothing_computed(opened):
            write(opened, name, good)
            choose(opened, choice, GOOD[choice])
        opened.wait_for_selector('.q-field__messages [role="alert"]', state="detached")
    write(opened, "law.scale", "2")
    opened.wait_for_function("location.search.includes('law.scale=2')")


def test_claims_are_browsed_and_one_is_checked_again(opened):
    turn(opened, "Claims")
    wait_for_text(
        opened.locator('[data-claim="zheng2024/trajectory"]'), "a² − b² stays what it was"
    )  # found here
    choose(opened, "paper", "zheng2024")
    row = opened.locator('[data-claim="zheng2024/theorem-4.2"]')
    wait_for_text(row, "holds · Data are recovered if and only if")
    row.locator(".q-item").first.click()
    wait_for_text(row, "measured: error: 1e-09")
    wait_for_text(row, "what the numbers are: distance to the limit")
    row.locator('[data-figure="zheng2024-risk-2"] .cartesianlayer .subplot').wait_for(state="attached")
    other = opened.locator('[data-claim="zheng2024/conservation"]')
    wait_for_text(other, "holds · ")  # its record comes with the package
    other.locator(".q-item").first.click()
    other.get_by_role("button", name="Check it again").click()
    wait_for_text(opened.locator("body"), "zheng2024/conservation: holds")  # shown once that is done
    choose(opened, "paper", FAST.partition("/")[0])
    row = opened.locator(f'[data-claim="{FAST}"]')
    row.locator(".q-item").first.click()
    wait_for_text(row, "No figures lie beside its record")
    row.get_by_role("button", name="Check it again with its figures").click()
    row.locator("[data-figure] .cartesianlayer .subplot").first.wait_for(state="attached")
    assert row.get_by_role("button", name="Check it again", exact=True).count() == 1


def test_a_store_is_browsed_beside_the_claims(opened):
    turn(opened, "Claims")
    choose(opened, "paper", "runs")
    study = opened.locator('[data-claim="grid"]')
    wait_for_text(study, "6 runs: 6 done")
    study.locator(".q-item").first.click()
    study.locator('[data-figure^="outcomes"] .cartesianlayer .subplot').first.wait_for(state="attached")
    single = opened.locator(f'[data-claim="{stored.run_id((9, 9))}"]')
    single.locator(".q-item").first.click()
    wait_for_text(single, "loss: 10")


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


def test_a_phone_shows_all_without_scrolling_sideways(opened, lab):
    before = opened.viewport_size
    opened.set_viewport_size({"width": 390, "height": 844})
    try:
        open_at(opened, lab, SMALL)
        for tab in TABS:
            turn(opened, tab)
            wait_until_drawn(opened, tab)
            assert opened.evaluate("document.documentElement.scrollWidth") <= 390
    finally:
        opened.set_viewport_size(before)


def test_an_address_that_cannot_be_read_says_so(
    opened, lab
):  # last: the default, which it opens instead, takes long
    opened.goto(lab.address + "?dim=99&horizon=6&law.kind=gaussian&init.kind=diagonal&init.a=1&init.b=1")
    wait_for_text(opened.locator("main"), "dim: must be at most 24 here, got 99")
