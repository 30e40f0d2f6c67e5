"""The page of two settings in a real browser: its address, its theme, a phone."""

from urllib.parse import parse_qs, urlsplit

import pytest

from lab_page import SMALL, wait_for_text, write
from mesascope.lab._compare_page import compare_address
from mesascope.lab._setting import from_query
from mesascope.theory import zheng2024

SIDES = ("left", "right")


@pytest.fixture
def sides(browser, lab):
    """Opens the comparison of a setting with itself; both sides are drawn when it returns."""

    def opened(page):
        page.goto(lab.at(urlsplit(compare_address(f"/expert{SMALL}")).query, "compare"))
        for name in SIDES:
            page.frame_locator(f'iframe[name="{name}"]').locator('[data-fact="limit"]').wait_for()
        return [page.frame(name) for name in SIDES]

    return opened


def limit(query):
    """The limit of a setting as a pattern: pages write it as a fraction where that is short."""
    exact = zheng2024.limit_product(*from_query(query).data())
    return f"{exact}$|{float(exact):.10g}$"


@pytest.mark.slow
def test_two_settings_side_by_side_are_one_address(browser, lab, sides):
    with browser.page(viewport={"width": 1440, "height": 900}) as (page, seen):
        _, right = sides(page)
        right.get_by_text("Data", exact=True).first.click()  # the form is folded: each side is narrow
        write(right, "horizon", "50")
        page.wait_for_function("new URLSearchParams(location.search).get('right').includes('horizon=50')")
        given = {name: urlsplit(one[0]) for name, one in parse_qs(urlsplit(page.url).query).items()}
        assert {name: one.path for name, one in given.items()} == dict.fromkeys(SIDES, "/expert")
        page.goto(page.url)  # as somebody opens it to whom the address was sent
        for name, horizon in zip(SIDES, (6, 50), strict=True):
            fact = page.frame_locator(f'iframe[name="{name}"]').locator('[data-fact="limit"]')
            assert f"horizon={horizon}&" in given[name].query
            wait_for_text(fact, limit(given[name].query))
        left, right = (page.locator(f'iframe[name="{name}"]').bounding_box() for name in SIDES)
        assert left["y"] == right["y"] and left["x"] + left["width"] <= right["x"]
        page.goto(lab.at(SMALL, "expert"))
        page.locator('[data-fact="limit"]').wait_for()
        page.get_by_role("link", name="Compare").click()
        for name in SIDES:
            wait_for_text(
                page.frame_locator(f'iframe[name="{name}"]').locator('[data-fact="limit"]'), limit(SMALL[1:])
            )
        assert (seen.errors, seen.outside()) == ([], [])


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (390, "dark")])
def test_both_sides_follow_the_theme_and_a_phone_stacks_them(browser, lab, sides, width, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    size = {"width": width, "height": 900}
    with browser.page(viewport=size, color_scheme=scheme, reduced_motion="reduce") as (page, seen):
        frames = sides(page)
        found = axe.Axe().run(page).response["violations"]
        assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in found] == []
        for one in (page, *frames):
            assert one.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.get_by_role("button", name="light or dark").click()
        for one in frames:
            assert not one.get_by_role("button", name="light or dark").is_visible()
            one.wait_for_function(
                f"document.body.classList.contains('body--dark') === {str(scheme == 'light').lower()}"
            )
        if width < 500:
            left, right = (page.locator(f'iframe[name="{name}"]').bounding_box() for name in SIDES)
            assert left["y"] + left["height"] <= right["y"]
        assert seen.errors == []
