"""Write tutorials as notebooks, with what their blocks print and draw: `make notebooks`.

A page is run if no outputs of its blocks under the code of today are kept.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS / "extensions"))

from blocks import BLOCK, Output, kept  # noqa: E402

NOTEBOOKS = DOCS.parent / "notebooks"
PAGES = tuple(
    DOCS / f"{name}.md"
    for name in (
        "start/five-minutes",
        "tutorials/conjecture",
        "tutorials/law-of-your-own",
        "tutorials/pytorch-model",
        "tutorials/memorize-or-learn",
        "tutorials/which-when",
        "tutorials/thousand-settings",
    )
)
INSTALL = """\
from importlib.util import find_spec

if find_spec("mesascope") is None:
    %pip install --quiet 'mesascope[all]'"""
LINK = re.compile(r"(?<=\]\()(?!https?:|#)([^)#]+)")


def place(page: Path) -> Path:
    """The file of the notebook of a page."""
    return NOTEBOOKS / f"{page.stem}.ipynb"


def notebook(page: Path, outputs: list[Output] | None = None) -> nbformat.NotebookNode:
    """The notebook of a page; without outputs if none are given."""
    text = page.read_text(encoding="utf-8")
    cells = [new_code_cell(INSTALL)]
    end = 0
    for number, block in enumerate(BLOCK.finditer(text)):
        cells += _words(text[end : block.start()], page)
        cells += _cell(block[2], block[3].rstrip("\n"), outputs[number] if outputs else Output())
        end = block.end()
    cells += _words(text[end:], page)
    executed = 0
    for number, cell in enumerate(cells):
        cell["id"] = f"{page.stem}-{number}"
        if outputs and cell.cell_type == "code":
            executed += 1
            cell["execution_count"] = executed
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return new_notebook(cells=cells, metadata={"kernelspec": kernel, "language_info": {"name": "python"}})


def _words(text: str, page: Path) -> list[nbformat.NotebookNode]:
    """A cell of text with links that lead from the notebook to where they led from the page."""

    def led(link: re.Match[str]) -> str:
        return os.path.relpath((page.parent / link[1]).resolve(), NOTEBOOKS)

    return [new_markdown_cell(LINK.sub(led, text.strip()))] if text.strip() else []


def _cell(kind: str, block: str, output: Output) -> list[nbformat.NotebookNode]:
    """The cells of a block: code with its outputs, or text."""
    file = re.match(r"# (\S+\.\w+)\n", block)
    if kind in ("python", "toml") and file:
        return [new_code_cell(f"%%writefile {file[1]}\n{block}")]
    if kind == "sh":
        return [new_code_cell("\n".join(f"!{line}" for line in block.splitlines()), outputs=_outputs(output))]
    if kind == "python":
        return [new_code_cell(block, outputs=_outputs(output))]
    return [new_markdown_cell(f"```{kind}\n{block}\n```")]


def _outputs(output: Output) -> list[nbformat.NotebookNode]:
    printed = [new_output("stream", name="stdout", text=output.text + "\n")] if output.text else []
    drawn = [new_output("display_data", data={"image/png": png}) for png in output.pictures.values()]
    return [*printed, *drawn]


def main() -> None:
    """Write all notebooks."""
    subprocess.run([sys.executable, str(DOCS / "extensions" / "blocks.py")], check=True)
    NOTEBOOKS.mkdir(exist_ok=True)
    for page in PAGES:
        written = notebook(page, kept(page.read_text(encoding="utf-8")))
        nbformat.write(written, place(page))
        print(place(page).relative_to(DOCS.parent))


if __name__ == "__main__":
    main()
