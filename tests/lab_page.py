"""What people do on the lab's page, for the tests that drive it in a browser."""

import re
from contextlib import contextmanager

SMALL = "?dim=2&horizon=6&law.kind=gaussian&law.scale=1&init.kind=diagonal&init.a=0.5&init.b=0.2"
FAST_CLAIM = "vladymyrov2024/one-layer-row"  # a claim with a figure that is checked in a second
# Theorem 4.1 and 4.3, Assumption 4.2; the ratio κ₁ E x²/κ₂ of Student t with 8 degrees of freedom is 1/15
RIGHT = {
    "heavy-tails": (0, "answers 1/15 of the next token"),
    "one-hot": (0, "one step size is right"),
    "full-one-mask": (0, "One plain gradient step, with ab = 0.8258"),
    "full-one": (1, "The mean ab is"),
    "random-start": (0, "from small diagonal weights all end at 0.1919"),
    "last-token": (2, "ab → 0.1984 instead of 0.1919"),
}
"""Preset of the story → number of the right option, and words of the answer."""
TABS = ("Data", "Training", "In-context behaviour")
FIGURES = {
    "Data": ("law", "paths", "sequence"),
    "Training": ("product", "loss", "phase", "w_kq", "w_pv"),
    "In-context behaviour": ("error", "predictions", "ratio", "sensitivity"),
}
# adds up in `window.shifted` how far things move that nobody has touched: the cumulative layout shift
SHIFTS = """
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) window.shifted = (window.shifted || 0) + (entry.hadRecentInput ? 0 : entry.value);
}).observe({ type: "layout-shift", buffered: true });
"""

_EMPTY = """
() => [...document.querySelectorAll(".lab-card, .story-preset")].filter((card) => card.offsetHeight).flatMap((card) => {
  const drawn = (one) => one.matches("svg, canvas, input") || (!one.children.length && one.textContent);
  const ends = [...card.querySelectorAll("*")].filter(drawn).map((one) => one.getBoundingClientRect().bottom);
  const box = card.getBoundingClientRect(), share = (box.bottom - Math.max(...ends)) / box.height;
  return share > 1 / 3 ? [`${card.innerText.slice(0, 40)}: ${share.toFixed(2)}`] : [];
})
"""


def empty_cards(page):
    """The cards whose lower part is empty by more than a third, and how much of them is."""
    return page.evaluate(_EMPTY)


def open_at(page, lab, query):
    page.goto(lab.at(query))
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
    """Wait for all figures of a panel."""
    for name in FIGURES.get(tab, ()):
        described = f'[data-figure="{name}"][aria-label*=". "]'  # by its caption, once it is drawn
        page.wait_for_selector(f"{described} .cartesianlayer .subplot", state="attached")


def choose(page, name, option):
    page.locator(f'.q-select:has([data-field="{name}"]), .q-select[data-field="{name}"]').first.click()
    page.get_by_role("option", name=option, exact=True).click()
    # a third of a second after a choice the menu gives the focus back to its field, wherever one types by then
    page.wait_for_selector('[id^="q-portal--menu"]', state="detached")


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
    wait_for_text(message_at(page, "max_steps").first, "at least 1")
    yield
    write(page, "max_steps", "")
