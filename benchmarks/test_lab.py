"""The lab as people wait for it: from a slider to the picture, and for a shape that was compiled by an earlier start."""

import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
from contextlib import contextmanager

import pytest
from measuring import ALL_CORES

# From the press of a key on a slider to another curve on the screen, and to all five pictures drawn anew, in seconds.
_REDRAW = """
(name) => new Promise((done) => {
  const slider = document.querySelector(`[data-slider="${name}"] .q-slider__track-container`);
  const line = () => document.querySelector('[data-figure="product"] .js-line').getAttribute("d");
  const pictures = [...document.querySelectorAll(".js-plotly-plot")].filter((one) => one.offsetWidth);
  const before = line(), begin = performance.now(), since = () => (performance.now() - begin) / 1000;
  let first = null, drawn = new Set();
  for (const one of pictures) one.once("plotly_afterplot", () => drawn.add(one));
  const look = () => {
    if (first === null && line() !== before) first = since();
    if (first === null || drawn.size < pictures.length) requestAnimationFrame(look);
    else done([first, since()]);
  };
  slider.focus();
  slider.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", keyCode: 39, bubbles: true }));
  look();
})
"""


# The frames of the story while it trains, from press to end: their number, and the seconds between them.
_FRAMES = """
() => new Promise((done) => {
  const button = document.querySelector('[data-act="play"]'), times = [];
  const look = (now) => {
    times.push(now / 1000);
    if (times.length < 10 || button.textContent.includes("Pause")) requestAnimationFrame(look);
    else done(times.slice(1).map((time, k) => time - times[k]));
  };
  button.scrollIntoView(); // what is not seen stands still
  button.click();
  requestAnimationFrame(look);
})
"""


@contextmanager
def _browser(cache):
    """The address of a lab that compiles nothing by itself, and a browser."""
    driver = pytest.importorskip("playwright.sync_api")
    path = shutil.which("chromium") or pytest.skip("no chromium on the path")
    command = [sys.executable, "-m", "mesascope", "lab", "--no-warm", "--port", "0"]
    own = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "JAX_"))}
    own["XDG_CACHE_HOME"] = str(cache)
    process = subprocess.Popen(
        command,
        cwd=cache,
        env=own,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: os.sched_setaffinity(0, ALL_CORES),
    )
    try:
        address = re.search(r"http://\S+", process.stdout.readline())[0]
        with driver.sync_playwright() as playwright:
            chromium = playwright.chromium.launch(
                executable_path=path, args=["--no-sandbox", "--disable-gpu"]
            )
            page = chromium.new_page(viewport={"width": 1280, "height": 900})
            page.set_default_timeout(120_000)
            yield address, page
            chromium.close()
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)


@contextmanager
def _page(cache):
    """The training panel, drawn."""
    with _browser(cache) as (address, page):
        page.goto(address.replace("/?", "/expert?"))
        page.get_by_role("tab", name="Training").click()
        page.wait_for_selector('[data-figure="product"] .js-line', state="attached")
        yield page


def test_slider(benchmark, bar, tmp_path):
    bar(
        what="lab: from the slider of a₀ to the redrawn flow, d = 5, T = 100, compiled (median of 40)",
        seconds=0.1,
    )
    with _page(tmp_path) as page:
        page.evaluate(_REDRAW, "init.a")
        waits = []
        benchmark.pedantic(lambda: waits.append(page.evaluate(_REDRAW, "init.a")), rounds=40)
    curve, pictures = zip(*waits, strict=True)
    benchmark.extra_info["seconds"] = statistics.median(curve)
    benchmark.extra_info["detail"] = (
        f"slowest {1000 * max(curve):.0f} ms; all five pictures {1000 * statistics.median(pictures):.0f} ms"
    )


def test_new_shape(benchmark, bar, tmp_path):
    bar(
        what="lab: from the slider of d = 5 to the flow in d = 6, T = 100, compiled at an earlier start",
        seconds=1.5,
    )
    with _page(tmp_path) as page:
        _, first = page.evaluate(_REDRAW, "dim")
    waits = []

    def again():
        with _page(tmp_path) as page:
            waits.append(page.evaluate(_REDRAW, "dim")[0])

    benchmark.pedantic(again, rounds=3)
    benchmark.extra_info["seconds"] = statistics.median(waits)
    benchmark.extra_info["detail"] = f"compiled for the first time {first:.1f} s"


def test_first_paint(benchmark, bar, tmp_path):
    bar(
        what="lab: from the printed address to the first paint of the story (median of 3 starts)", seconds=2.5
    )
    waits = []

    def start():
        with _browser(tmp_path) as (address, page):
            page.goto(address)
            painted = page.wait_for_function(
                "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
            )
            waits.append(painted.json_value())

    benchmark.pedantic(start, rounds=3)
    benchmark.extra_info["seconds"] = statistics.median(waits) / 1000


def test_frames_of_the_story(benchmark, bar, tmp_path):
    bar(what="lab: between two frames of the story while it trains (mean)", seconds=1 / 30)
    frames = []
    with _browser(tmp_path) as (address, page):
        page.goto(address)
        page.wait_for_selector('[data-act="play"]:not([disabled])')
        page.wait_for_function("document.querySelector('[data-fact=result]').innerText.includes('It became')")
        benchmark.pedantic(lambda: frames.extend(page.evaluate(_FRAMES)), rounds=1)
    benchmark.extra_info["seconds"] = statistics.mean(frames)
    benchmark.extra_info["detail"] = (
        f"{1 / statistics.mean(frames):.0f} a second, longest {1000 * max(frames):.0f} ms"
    )
