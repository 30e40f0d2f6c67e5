"""The page of claims in a real browser."""

import json

import pytest

import stored_records as stored
from lab_page import FAST_CLAIM, SHIFTS, empty_cards, wait_for_text
from mesascope.lab import _compute_claims
from mesascope.papers import PAPERS, Event, Reproduction, claims
from mesascope.records import IMPORTANCE

CELLS = ".matrix a[data-claim]:visible"


@pytest.fixture
def listed(window, lab):
    """The page with its matrix; whatever it says on the console or asks of others is an error."""
    page, seen = window
    seen.errors.clear(), seen.requests.clear()
    open_claims(page, lab)
    yield page
    assert (seen.errors, seen.outside()) == ([], [])


def test_trainings_of_a_check_report_and_no_report_ends_them(monkeypatch, tmp_path):
    (claim,) = claims(FAST_CLAIM)
    told = []

    def checked(*selection, out, rerun, watch):
        for kind, progress in (("start", ""), ("progress", "seed 1: 20 of 100 steps")):
            watch(Event(kind, claim, 0, 1, tmp_path, None, progress=progress))
        return Reproduction((stored.claim(),), tmp_path)

    def tell(text):
        told.append(text)
        if len(told) > 1:
            raise KeyboardInterrupt  # as a job that is asked to stop does

    monkeypatch.setattr(_compute_claims, "reproduce", checked)
    assert _compute_claims.rerun(FAST_CLAIM, str(tmp_path), tell) == {"outcome": "holds", "error": None}
    assert told[1:] == [f"checking {FAST_CLAIM}: seed 1: 20 of 100 steps"]


def open_claims(page, lab, query=""):
    page.goto(lab.at(query, "claims"))
    page.wait_for_selector(CELLS)


def cell(page, id):
    return page.locator(f'.matrix a[data-claim="{id}"]:visible')


def focused(page):
    return page.evaluate("document.activeElement.dataset.claim")


@pytest.mark.slow
def test_every_claim_has_a_cell_and_the_switch_brings_up_what_does_not_simply_hold(listed):
    words = listed.locator(CELLS).evaluate_all("all => all.map(one => one.getAttribute('aria-label'))")
    assert [one.partition(":")[0] for one in words] == [claim.id for claim in claims()]
    assert words[0].endswith("– exact – holds")
    listed.get_by_role("switch", name="Contradicted and not reproduced first").click()
    worst = min({one.rpartition(" – ")[2] for one in words}, key=IMPORTANCE.index)
    assert not words[0].endswith(worst)
    listed.wait_for_function(
        "worst => document.querySelector('.matrix a').getAttribute('aria-label').endsWith(worst)", arg=worst
    )
    assert listed.locator(CELLS).count() == len(claims())


@pytest.mark.slow
def test_a_cell_opens_its_claim_with_record_and_figures(listed):
    cell(listed, "zheng2024/theorem-4.2").click()
    sheet = listed.get_by_role("dialog")
    wait_for_text(sheet, "As T, t → ∞ the risk tends to|Data are recovered if and only if")
    for name, text in (("measured", "error: 1e-09"), ("what the numbers are", "distance to the limit")):
        wait_for_text(sheet.locator(f'[data-fact="{name}"]'), text)
    title, *sections = sheet.get_by_role("heading").all_inner_texts()
    assert title.startswith("Data are recovered") and sections[:2] == ["Criterion", "Setting"]
    assert sections[-1] == "Record"
    sheet.locator('[data-figure="zheng2024-risk-2"] .cartesianlayer .subplot').wait_for(state="attached")
    assert listed.url.endswith("/claims?claim=zheng2024/theorem-4.2")
    sheet.get_by_role("button", name="close").click()
    sheet.wait_for(state="detached")
    assert listed.url.endswith("/claims") and focused(listed) == "zheng2024/theorem-4.2"
    listed.get_by_role("link", name="The whole training path has a closed form").last.click()
    wait_for_text(sheet, "a² − b² stays what it was")
    listed.keyboard.press("Escape")
    sheet.wait_for(state="detached")


@pytest.mark.slow
def test_an_address_opens_its_claim_and_it_is_run_with_progress(listed, lab):
    open_claims(listed, lab, f"claim={FAST_CLAIM}")
    sheet = listed.get_by_role("dialog")
    picture = sheet.get_by_role("img", name="The closed form of one layer through the eight values")
    assert picture.evaluate("one => [one.complete, one.naturalWidth]") == [True, 480]
    wait_for_text(sheet, "As drawn for the record that comes with mesascope")
    sheet.get_by_role("button", name="Run it now").click()
    sheet.get_by_role("progressbar", name="progress of the check").wait_for()
    wait_for_text(sheet.get_by_role("status").first, f"checking {FAST_CLAIM}")
    assert sheet.get_by_role("button", name="Run it now").is_disabled()
    sheet.locator("[data-figure] .cartesianlayer .subplot").first.wait_for(state="attached")
    assert not picture.is_visible()
    wait_for_text(listed.locator("body"), f"{FAST_CLAIM}: holds")
    sheet.get_by_role("button", name="Run it now", disabled=False).wait_for()
    open_claims(listed, lab, "claim=zheng2024/theorem-4.1")
    wait_for_text(sheet, "No figures lie beside its record")


@pytest.mark.slow
def test_an_address_of_no_claim_is_reported(listed, lab):
    open_claims(listed, lab, "claim=zheng2024/theorem-9")
    wait_for_text(listed.locator('[role="alert"]:visible').first, "There is no claim 'zheng2024/theorem-9'")


@pytest.mark.slow
def test_a_claim_is_chosen_by_the_keyboard(listed):
    ids = [claim.id for claim in claims()]
    listed.get_by_role("switch").focus()
    listed.keyboard.press("Tab")
    assert focused(listed) == ids[0]
    for key, then in (("ArrowRight", ids[1]), ("End", ids[-1]), ("Home", ids[0]), ("ArrowLeft", ids[0])):
        listed.keyboard.press(key)
        assert focused(listed) == then
    listed.keyboard.press("ArrowDown")
    assert focused(listed).startswith(f"{PAPERS[1]}/")
    listed.keyboard.press("ArrowUp")
    assert focused(listed) == ids[0]
    listed.keyboard.press("Enter")
    sheet = listed.get_by_role("dialog")
    sheet.wait_for()
    listed.wait_for_function("document.querySelector('[role=dialog]').contains(document.activeElement)")
    listed.keyboard.press("Escape")
    sheet.wait_for(state="detached")
    assert focused(listed) == ids[0]
    listed.keyboard.press("Tab")  # one cell only is on the way
    assert focused(listed) and listed.evaluate("document.activeElement.closest('.matrix')") is None


@pytest.mark.slow
def test_a_store_is_browsed_below_the_claims(listed):
    store = listed.locator('[data-row="runs"]')
    store.locator(".q-item").first.click()
    study = listed.locator('[data-row="grid"]')
    wait_for_text(study, "6 runs: 6 done")
    study.locator(".q-item").first.click()
    study.locator('[data-figure^="outcomes"] .cartesianlayer .subplot').first.wait_for(state="attached")
    single = listed.locator(f'[data-row="{stored.run_id((9, 9))}"]')
    single.locator(".q-item").first.click()
    wait_for_text(single, "loss: 10")


@pytest.mark.slow
@pytest.mark.parametrize(("width", "height"), [(1440, 900), (390, 844)])
def test_nothing_jumps_and_no_card_is_empty(browser, lab, width, height):
    with browser.page(viewport={"width": width, "height": height}) as (page, seen):
        page.add_init_script(SHIFTS)
        open_claims(page, lab)
        page.locator('[data-row="runs"] .q-item').wait_for()  # what is listed last
        page.wait_for_timeout(300)
        assert empty_cards(page) == []
        cell(page, "zheng2024/recovery-gap").click()
        page.locator(".lab-sheet img").wait_for()
        page.wait_for_timeout(300)
        assert empty_cards(page) == []
        assert page.evaluate("window.shifted || 0") < 0.05
        assert seen.errors == []


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_accessible(listed, lab, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    listed.emulate_media(color_scheme=scheme)
    try:
        for query in ("", "claim=zheng2024/theorem-4.2"):
            open_claims(listed, lab, query)
            if query:
                listed.get_by_role("dialog").locator(".subplot").first.wait_for(state="attached")
            found = axe.Axe().run(listed, options={"resultTypes": ["violations"]}).response["violations"]
            text = [(one["id"], [node["html"][:200] for node in one["nodes"][:3]]) for one in found]
            assert text == [], json.dumps(text)
    finally:
        listed.emulate_media(color_scheme="no-override")


@pytest.mark.slow
def test_a_phone_shows_all_without_scrolling_sideways(listed, lab):
    before = listed.viewport_size
    listed.set_viewport_size({"width": 390, "height": 844})
    try:
        open_claims(listed, lab)
        assert listed.evaluate("document.documentElement.scrollWidth") == 390
        cell(listed, "zheng2024/theorem-4.2").click()
        sheet = listed.locator(".lab-sheet")
        sheet.locator(".subplot").first.wait_for(state="attached")
        assert sheet.evaluate("one => [one.scrollWidth, one.getBoundingClientRect().left]") == [390, 0]
    finally:
        listed.set_viewport_size(before)
