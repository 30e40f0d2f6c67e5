"""What ARCHITECTURE.md says of the rooms, held against the import contracts and the folders."""

import re
import tomllib
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
ROOMS = {path.name for path in (ROOT / "src" / "mesascope").iterdir() if (path / "__init__.py").exists()}


def test_the_order_of_the_rooms_is_that_of_the_contract():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    layers = next(one["layers"] for one in contracts["contracts"] if one["type"] == "layers")
    enforced = [re.sub(r"[()]", "", layer) for layer in layers if layer != "__main__"]
    drawn = re.search(r"^    (cli > .*)$", PAGE, re.M).group(1)
    assert drawn.split(" > ") == enforced


def test_every_room_has_its_row():
    assert set(re.findall(r"^\| `(\w+)` \|", PAGE, re.M)) == ROOMS


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "CONTRIBUTING.md", "docs/reference/inside.md"])
def test_files_that_are_named_exist(page):
    named = re.findall(r"`((?:\w+/)*\w+\.py)`", (ROOT / page).read_text(encoding="utf-8"))
    files = [path.as_posix() for room in ("src", "docs", "tests") for path in (ROOT / room).rglob("*.py")]
    assert [name for name in named if not any(file.endswith(f"/{name}") for file in files)] == []


def test_no_module_imports_itself_through_others():
    """Imports for type checkers and inside of functions count, too."""
    graph = grimp.build_graph("mesascope", cache_dir=None)
    imported = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    TopologicalSorter(imported).prepare()  # raises CycleError, which names the circle
