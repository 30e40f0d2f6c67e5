"""The site: it builds without a warning, describes all public names, fetches nothing; and pages are run as `blocks` says."""

import fcntl
import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import blocks
import numpy as np
import pages
import pytest
from public_names import TABLE, describe, listed, names_of, rooms_of_names
from sphinx.errors import ConfigError
from sphinx.util.inventory import InventoryFile
from verdicts import Verdicts
from write_animation import PICTURE, picture
from write_notebooks import PAGES, place

import mesascope
from mesascope.papers import claims
from mesascope.records import SIGNS

ROOT = Path(__file__).parents[1]
SITE = ROOT / "docs" / "_build" / "html"


@pytest.fixture(scope="module")
def site():
    """The built site; what did not change is not built again.

    Other tests run the pages meanwhile, so that outputs may be missing here; `make docs`, which `.ci/run` calls next, builds
    it with all.
    """
    SITE.mkdir(parents=True, exist_ok=True)
    with open(SITE.parent / "building.lock", "w") as lock:  # other workers of the same run build it, too
        fcntl.flock(lock, fcntl.LOCK_EX)
        options = ["-W", "--keep-going", "--quiet", "-D", "outputs_needed=0"]
        command = [sys.executable, "-m", "sphinx", *options, "docs", str(SITE)]
        built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    return SITE


@pytest.mark.slow
def test_nothing_is_fetched_from_elsewhere(site):
    wanted = re.compile(
        r"<(?:link|script|img|iframe|source|object)\b[^>]*?\s(?:src|href|data)=\"([^\"]*)\"", re.S
    )
    pages = list(site.rglob("*.html"))
    assert len(pages) > 40
    found = {(page.name, place) for page in pages for place in wanted.findall(page.read_text("utf-8"))}
    assert len(found) > 200
    assert not {one for one in found if re.match(r"(\w+:)?//", one[1])}
    for sheet in (site / "_static").rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*['\"]?(https?:)?//", sheet.read_text("utf-8")), sheet


def _rooms():
    """All packages that offer names, and the modules of theory."""
    for module in pkgutil.walk_packages(mesascope.__path__, "mesascope."):
        parts = module.name.split(".")[1:]
        hidden = any(part.startswith("_") for part in parts)
        # what these offer are commands, and the claims of which docs/papers has a table
        other = parts[0] in ("cli", "__main__") or module.name.startswith("mesascope.papers.")
        if not hidden and not other and (module.ispkg or parts[0] == "theory"):
            yield module.name


def _public(room):
    module = importlib.import_module(room)
    offered = {name: getattr(module, name) for name in getattr(module, "__all__", vars(module))}
    return {
        name: value
        for name, value in offered.items()
        if not name.startswith("_")
        and not isinstance(value, ModuleType)
        and (hasattr(module, "__path__") or getattr(value, "__module__", None) == room)
    }


@pytest.mark.slow
def test_every_public_name_is_described(site):
    inventory = InventoryFile.loads((site / "objects.inv").read_bytes(), uri="").data
    told = {name for kind, names in inventory.items() if kind.startswith("py:") for name in names}
    rooms = list(_rooms())
    assert {"mesascope.models", "mesascope.records.store", "mesascope.theory.ahn2023"} <= set(rooms)
    anywhere = {
        id(value) for room in rooms for name, value in _public(room).items() if f"{room}.{name}" in told
    }
    assert [
        f"{room}.{name}"
        for room in rooms
        for name, value in _public(room).items()
        if id(value) not in anywhere
    ] == []
    assert [name for name, value in _public("mesascope").items() if id(value) not in anywhere] == []


@pytest.mark.parametrize("room", sorted(_rooms()))
def test_every_description_says_something(room):
    for name, value in names_of(room).items():
        head, _, text = describe(room, name, value).strip().partition("\n")
        assert re.search(r"\w{3}", text), head


@pytest.mark.slow
def test_pages_open_from_a_file_without_a_network(site, browser):
    with browser.page(color_scheme="dark") as (page, seen):
        page.goto((site / "index.html").as_uri())
        assert page.locator("h1").inner_text().startswith("mesascope")
        assert page.locator("article img").first.evaluate("image => image.naturalWidth") > 800
        page.get_by_role("link", name="The exact loss").first.click()
        page.locator("mjx-container").nth(20).wait_for()
        assert page.locator(".math mjx-merror").count() == 0
        assert page.get_by_text("\\hat y").count() == 0  # no formula is left as it was written
    assert (seen.errors, seen.outside()) == ([], [])


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["index", "gallery", "identify", "papers/README", "api/models", "mathematics/exact-loss"]
)
def test_pages_fit_a_phone(site, browser, name):
    with browser.page(viewport={"width": 390, "height": 844}) as (page, seen):
        page.goto((site / f"{name}.html").as_uri())
        page.wait_for_load_state("load")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert seen.errors == []


def _pages():
    return sorted(page for page in (ROOT / "docs").rglob("*.md") if "_build" not in page.parts)


COLUMNS = 88  # of code that the site shows without scrolling


def _names(pages):
    return [page.relative_to(ROOT).as_posix() for page in pages]


@pytest.mark.parametrize("page", _names(_pages()))
def test_no_block_is_wider_than_the_site(page):
    text = (ROOT / page).read_text("utf-8")
    blocks_of_page = re.findall(r"^(`{3,})[^\n]*\n(.*?)^\1$", text, re.M | re.S)
    assert not [line for _, block in blocks_of_page for line in block.splitlines() if len(line) > COLUMNS]


@pytest.mark.slow
def test_the_animation_is_that_of_the_flow():
    stored = PICTURE.read_text("utf-8")
    drawn, number = picture(), re.compile(r"-?\d+(?:\.\d+)?")
    assert number.sub("#", drawn) == number.sub("#", stored), "python docs/write_animation.py writes it anew"
    # processors differ in the last digits, and with them the solver's steps: a pixel at most
    numbers = (np.array([float(one) for one in number.findall(text)]) for text in (drawn, stored))
    np.testing.assert_allclose(*numbers, atol=1, rtol=0.01)
    assert len(stored) < 60_000 and "prefers-reduced-motion" in stored and "prefers-color-scheme" in stored
    process, task = mesascope.DiagonalUnitary(mesascope.Gaussian(1.0), dim=5), mesascope.NextToken(100)
    limit = mesascope.theory.zheng2024.limit_product(process, task)
    assert f">{float(limit):.4f}</text>" in stored


def test_every_name_is_in_one_table_of_the_first_page_on_the_api():
    page = (ROOT / "docs" / "api" / "index.md").read_text("utf-8")
    tables = [
        (table["names"].split(), dict(re.findall(r":(\w+): (.*)", table["options"])))
        for table in TABLE.finditer(page)
    ]
    assert len(tables[0][0]) == 10
    told = [
        name for names, options in tables for name in listed(page, names, options.get("rooms", "").split())
    ]
    assert sorted(told) == sorted(rooms_of_names())


def test_every_notebook_can_be_downloaded_from_its_page_and_from_the_list():
    listing = (ROOT / "docs" / "tutorials" / "notebooks.md").read_text("utf-8")
    for page in PAGES:
        assert f"](../../notebooks/{place(page).name})" in listing
        source = [page.read_text("utf-8")]
        docname = page.relative_to(ROOT / "docs").with_suffix("").as_posix()
        env = SimpleNamespace(note_dependency=lambda path: None)
        pages.read_source(SimpleNamespace(env=env), docname, source)
        assert f"<../../notebooks/{place(page).name}>`" in source[0]


def test_the_first_page_counts_every_claim_by_its_outcome():
    env = SimpleNamespace(docname="index", note_dependency=lambda path: None)
    directive = SimpleNamespace(env=env)
    (shown,) = Verdicts.run(directive)
    counts = [int(count) for count in re.findall(r"<b>(\d+)</b>", shown.astext())]
    assert (len(counts), sum(counts)) == (len(SIGNS), len(claims()))


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A folder to run in, and another to keep outputs in."""
    monkeypatch.setattr(blocks, "KEPT", tmp_path / "kept")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


PAGE = """
```toml
# some.toml
x = 1
```

```python
from pathlib import Path
print(Path("some.toml").read_text())
Path("drawn.png").write_bytes(b"picture")
```

<!-- needs no_such_package -->
```python
raise AssertionError("is not run")
```
"""


def test_what_blocks_print_and_draw_is_kept_until_blocks_or_code_change(elsewhere, monkeypatch):
    assert blocks.kept(PAGE) is None
    nothing, said, left_out = outputs = blocks.run(PAGE, {})
    assert (nothing, left_out) == (blocks.Output(), blocks.Output(lacked="no_such_package"))
    assert said == blocks.Output("# some.toml\nx = 1", {"drawn.png": "cGljdHVyZQ=="})
    assert blocks.kept(PAGE) == outputs == blocks.kept("More words.\n" + PAGE)
    assert blocks.kept(PAGE.replace("x = 1", "x = 2")) is None
    monkeypatch.setattr("mesascope.records.code_version", lambda: "another")
    assert blocks.kept(PAGE) is None


def test_what_was_left_out_is_said_and_run_once_it_can_be(elsewhere, monkeypatch):
    page = PAGE.replace("no_such_package", "torch")
    monkeypatch.setattr(blocks, "find_spec", lambda package: None)
    blocks.run(page, {})
    assert "PyTorch was not installed" in "".join(cell.source for cell in pages.notebook(page).cells)
    monkeypatch.setattr(blocks, "find_spec", lambda package: True)
    assert blocks.kept(page) is None


def test_blocks_that_are_not_shown_are_run(elsewhere):
    page = "Words.\n\n<!-- not shown\n```python\nx = 2\n```\n-->\n\n```python\nprint(x)\n```\n\n```text\n2\n```\n"
    blocks.run(page, {})
    words, *_, rest = cells = pages.notebook(page).cells
    assert [cell.source for cell in cells if cell.cell_type == "code"] == ["print(x)"]
    assert "not shown" not in words.source + rest.source and "2" in rest.source
    assert not any(cell.get("outputs") for cell in cells)  # the page goes on with what it prints


COMMAND = "```sh\nmesascope cite zheng2024\n```\n"


def test_a_page_is_shown_with_what_its_blocks_said(elsewhere):
    page = COMMAND + PAGE + COMMAND + "```text\n@inproceedings{zheng2024\n```\n![Drawn](other.png)\n"
    blocks.run(page, {})
    code = [cell for cell in pages.notebook(page).cells if cell.cell_type == "code"]
    said = [[output.get("text") or output.data["image/png"] for output in cell.outputs] for cell in code]
    (cited,), *others = said
    assert "zheng2024" in cited and others == [["# some.toml\nx = 1", "cGljdHVyZQ=="]]
    assert all(cell.source for cell in code) and code[0].metadata["tags"] == ["remove-input"]
    shown = pages.notebook(page.replace("other.png", "drawn.png")).cells  # by the page itself
    assert not any(output.get("data") for cell in shown for output in cell.get("outputs", ()))


def test_a_site_is_not_built_without_what_its_pages_print(elsewhere):
    def app(needed):
        return SimpleNamespace(config=SimpleNamespace(outputs_needed=needed))

    with pytest.raises(ConfigError, match=r"not run with the code of today: .*docs/identify\.md"):
        pages.require_outputs(app(True))
    pages.require_outputs(app(False))
    for path in blocks.pages():
        blocks.keep(path.read_text("utf-8"), [])
    pages.require_outputs(app(True))


@pytest.mark.parametrize(
    "page",
    [
        "```python\nprint(1 / 0)\n```\n",
        "```pycon\n>>> 1 + 1\n3\n```\n",
        "```sh\nmesascope cite nobody1900\n```\n",
        COMMAND + "```text\n@article{somebody\n```\n",
        COMMAND + "```text\nvolume = {38},\n```\n",
        "```console\n$ mesascope cite nobody1900\nmesascope cite: another line\n```\n",
        "```console\n$ mesascope cite zheng2024\nmesascope cite: no error\n```\n",
        "```python\nprint(1)\n```\n```text\n2\n```\n",
    ],
)
def test_a_page_that_says_what_is_not_so_fails_and_nothing_is_kept(elsewhere, page):
    with pytest.raises((blocks.PageError, ZeroDivisionError)):
        blocks.run(page, {})
    assert blocks.kept(page) is None


def test_pages_that_are_run_elsewhere_are_read_by_their_tests():
    for page, test in blocks.RUN_BY.items():
        assert (ROOT / page).exists() and Path(page).name in (ROOT / test).read_text("utf-8")


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("loss 0.1234, 18 examples", "a loss 0.1236,  18 examples ─── done", True),
        ("loss 0.1234", "loss 0.1334", False),
        ("18 examples", "19 examples", False),
        ("distance 2.48e-31", "distance 7.1e-32", True),
        ("distance 2.48e-31", "distance 2.48e-3", False),
        ("steps 1\npenalty 0.5", "penalty 0.5\nsteps 1", False),
        ("one more", "one", False),
    ],
)
def test_numbers_of_a_page_are_those_that_are_printed(shown, printed, same):
    if same:
        blocks.RUNNERS["text"](shown, {"printed": printed})
    else:
        with pytest.raises(blocks.PageError):
            blocks.RUNNERS["text"](shown, {"printed": printed})
