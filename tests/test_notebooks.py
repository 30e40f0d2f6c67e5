"""The notebooks are the tutorials, with outputs."""

import re

import nbformat
import pytest
from write_notebooks import NOTEBOOKS, PAGES, notebook, place


def _shown(cells):
    return [(cell.cell_type, cell.source) for cell in cells]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_notebook_is_its_page(page):
    """Run `make notebooks` after a change of the page."""
    written = nbformat.read(place(page), as_version=4)
    nbformat.validate(written)
    assert _shown(written.cells) == _shown(notebook(page).cells)
    code = [cell for cell in written.cells if cell.cell_type == "code"]
    assert any(output.output_type == "stream" for cell in code for output in cell.outputs)
    assert not any(output.output_type == "error" for cell in code for output in cell.outputs)


def test_links_of_notebooks_lead_to_files():
    for page in PAGES:
        for cell in notebook(page).cells:
            for target in re.findall(r"\]\((?!http)([^)#\s]+)\)", cell.source):
                assert (NOTEBOOKS / target).exists(), target


def test_there_is_no_other_notebook():
    assert {path.name for path in NOTEBOOKS.glob("*.ipynb")} == {place(page).name for page in PAGES}
