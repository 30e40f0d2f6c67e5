"""The page, used by the keyboard alone."""

import pytest

from lab_page import FIGURES, end_of_flow, wait_for_text, wait_until_drawn, write

# The name of what has the focus, and whether what had it before looks otherwise now: that it had it was to be seen.
FOCUSED = """
async () => {
  for (const _ of [1, 2]) await new Promise(requestAnimationFrame); // until it is drawn
  const transitions = document.getAnimations().filter((one) => one instanceof CSSTransition);
  await Promise.allSettled(transitions.map((one) => one.finished));
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


@pytest.mark.slow
def test_everything_is_reached_by_the_keyboard_in_the_order_of_the_page(opened):
    opened.wait_for_selector('[role="status"]', state="hidden")
    names = "law.kind|law.scale|slider law.scale|dim|slider dim|horizon|slider horizon|objective|rho"
    starts = "init.kind|init.a|slider init.a|init.b|slider init.b|mask"
    assert tab_through(opened, "Data") == [
        *(
            "Story",
            "Expert",
            "Models",
            "Claims",
            "Compare",
            "Share",
            "light or dark",
            'Collapse "Data"',
            *names.split("|"),
        ),
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


@pytest.mark.slow
def test_what_a_layer_does_is_reached_by_the_keyboard(opened):
    opened.get_by_role("tab", name="Data").focus()
    for key in ("ArrowRight", "ArrowRight", "Enter"):
        opened.keyboard.press(key)
    wait_until_drawn(opened, "In-context behaviour")
    opened.locator('[role="status"]:visible').first.wait_for(state="detached")  # with its own button, Cancel
    assert tab_through(opened, "identify") == [
        "slider behaviour",
        *(f"download {name}" for name in FIGURES["In-context behaviour"]),
        *("six learners that compete here", "all learners, a minute or more", "identify"),
    ]
