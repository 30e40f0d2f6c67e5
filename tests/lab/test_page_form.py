"""The form of the page: bad values, a law of a plugin, and settings as addresses and files."""

import json
import re
import tomllib
from urllib.parse import parse_qs, urlsplit

import pytest

from lab_page import (
    SMALL,
    box,
    choose,
    end_of_flow,
    message_at,
    nothing_computed,
    slider,
    turn,
    wait_for_text,
    write,
)
from mesascope.lab._setting import from_query, read_setting


@pytest.mark.slow
def test_a_law_of_ones_own_has_its_fields_in_the_form_and_is_computed(opened):
    assert opened.get_by_label("standard deviation σ > 0", exact=True).first.is_visible()
    choose(opened, "law.kind", "Triangular")
    opened.get_by_label("half-width h > 0 of the density", exact=True).first.wait_for()
    assert slider(opened, "law.scale").is_visible()
    assert box(opened, "law.scale").input_value() == "1"
    choose(opened, "law.centred", "yes")
    write(opened, "law.scale", "1/2")
    opened.wait_for_function(
        "location.search.includes('law.kind=triangular&law.scale=1%2F2&law.centred=true')"
    )
    # E x² = h²/6, κ₁ = h⁴/15 and κ₂ = h⁶/28
    wait_for_text(opened.locator("main"), "it predicts 14/45 of the next token on average")
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
    assert spec["law"] == {"kind": "triangular", "scale": "1/2", "centred": True}
    assert [name.rpartition("/")[2] for name in spec["plugins"]] == ["triangular.py"]
    opened.wait_for_selector(".q-menu", state="detached")
    choose(opened, "law.kind", "Gaussian")
    opened.wait_for_function("location.search.includes('law.kind=gaussian')")
    opened.get_by_role("button", name="Share").click()
    opened.get_by_text("Open a specification …").click()
    upload = {"name": "spec.toml", "mimeType": "application/toml", "buffer": content}
    opened.locator(".q-uploader__input").set_input_files(upload)
    opened.wait_for_function("location.search.includes('law.kind=triangular')")


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


@pytest.mark.slow
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


@pytest.mark.slow
def test_new_fields_come_with_their_texts(opened):
    """A text that the server sets a moment later would replace what was typed meanwhile."""
    frames = []
    opened.on("websocket", lambda socket: socket.on("framereceived", lambda frame: frames.append(str(frame))))
    opened.reload()
    opened.wait_for_selector('[data-fact="limit"]')
    choose(opened, "init.kind", "Explicit")
    assert box(opened, "init.w_kq").input_value() and "shape (2d, 2d)" in "".join(frames)
    assert [frame for frame in frames if "updateValue" in frame] == []


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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
    opened.get_by_role("button", name="Share").click()
    opened.get_by_text("Open a specification …").click()
    opened.locator(".q-uploader__input").set_input_files(
        content | {"name": "bad.json", "buffer": b'{"dim": 1000}'}
    )
    wait_for_text(opened.locator(".q-notification"), "'bad.json': .*")


@pytest.mark.slow
def test_an_address_that_cannot_be_read_says_so(
    opened, lab
):  # last: the default, which it opens instead, takes long
    opened.goto(lab.at("?dim=99&horizon=6&law.kind=gaussian&init.kind=diagonal&init.a=1&init.b=1"))
    wait_for_text(opened.locator("main"), "dim: must be at most 24 here, got 99")
