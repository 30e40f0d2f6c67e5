"""The report in a real browser, opened from its file."""

import pytest

import stored_records as stored
from mesascope.report import write_report

PANELS = 6  # of the figures below


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    figures = {"zheng2024/curves": stored.curves_figure(), "zheng2024/map": stored.map_figure()}
    run = stored.run_directory(folder / "run", stored.claim(), figures=figures)
    stored.store(folder / "store")
    what = (run, stored.certificate(folder / "c.json"), "grid")
    written = write_report(*map(str, what), out=folder / "report.html", store=folder / "store")
    assert written.figures == 4
    return written.file.as_uri()


def opened(page, seen, address):
    """Open the report and wait until it is drawn; nothing is said on the console, nobody is asked."""
    page.goto(address)
    page.wait_for_selector(f"html[data-drawn='{PANELS}']", state="attached")
    assert not seen.errors
    assert seen.requests == [address]


@pytest.fixture(scope="module", params=["light", "dark"])
def read(browser, address, request):
    """The report in the theme of a reader."""
    with browser.page(color_scheme=request.param) as (page, seen):
        opened(page, seen, address)
        yield page, seen, request.param


def right_edges(page):
    edges = "all => all.map(one => one.getBoundingClientRect().right)"
    return page.locator(".plot .main-svg").evaluate_all(edges)


def ground(page):
    return page.locator(".plot .main-svg").first.evaluate("one => one.style.background")


@pytest.mark.slow
def test_all_figures_are_drawn_in_the_theme_of_the_reader(read):
    page, seen, theme = read
    assert page.locator(".plot .main-svg").count() >= PANELS
    assert page.locator(".plot path.js-line").count() >= 8
    assert page.locator(".plot .heatmaplayer image").count() == 1
    assert ground(page) == {"light": "rgb(255, 255, 255)", "dark": "rgb(21, 24, 28)"}[theme]
    assert not seen.errors


@pytest.mark.slow
def test_a_name_of_the_legend_hides_its_traces_and_shows_them_again(read):
    page, seen, _ = read
    button = page.get_by_role("button", name="exact & more")
    lines = page.locator(".plot").first.locator(".scatterlayer .trace")
    assert lines.count() == 4
    button.focus()
    page.keyboard.press("Enter")
    assert button.get_attribute("aria-pressed") == "false" and lines.count() == 2
    button.click()
    assert button.get_attribute("aria-pressed") == "true" and lines.count() == 4
    assert not seen.errors


@pytest.mark.slow
def test_anchors_lead_to_their_claims(read):
    page, _, _ = read
    page.get_by_role("link", name="zheng2024").first.click()
    assert page.url.endswith("#zheng2024") and page.locator("h2#zheng2024").is_visible()
    page.locator('.matrix a[data-claim="zheng2024/theorem-4.1"]:visible').focus()
    page.keyboard.press("Enter")
    assert page.url.endswith("#zheng2024/theorem-4.1")
    page.get_by_role("link", name="Curves").click()
    assert page.url.endswith("#figure/small/zheng2024/curves")


@pytest.mark.slow
def test_it_is_accessible(read):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    page, _, _ = read
    page.locator("details").evaluate_all("all => all.forEach(one => { one.open = true; })")
    found = axe.Axe().run(page)
    assert found.violations_count == 0, found.generate_report()


def test_no_figure_is_wider_than_the_paper_and_all_are_light_on_it(read):
    page, seen, _ = read
    page.set_viewport_size({"width": 700, "height": 990})  # A4 within its margins
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert max(right_edges(page)) <= 700
    assert ground(page) == "rgb(255, 255, 255)"
    assert len(page.pdf(format="A4")) > 20_000
    assert not seen.errors


@pytest.mark.slow
def test_nothing_is_wider_than_a_phone(browser, address):
    with browser.page(viewport={"width": 390, "height": 844}) as (page, seen):
        opened(page, seen, address)
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        assert max(right_edges(page)) <= 390
