"""The site: Sphinx shows the pages of this folder and the docstrings, with what their blocks printed; nothing is fetched."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent / "extensions"))

import pages

import mesascope
from mesascope.records import code_version

project = "mesascope"
author = "the mesascope developers"
version = release = mesascope.__version__
extensions = ["myst_nb", "sphinx.ext.mathjax", "sphinx-mathjax-offline", "public_names", "kinds", "verdicts"]
exclude_patterns = ["_build", "extensions", "static"]

nb_custom_formats = {".md": ["pages.notebook", {}, False]}
nb_execution_mode = "off"  # `blocks` has run them: in the tests, and before a build
myst_enable_extensions = ["amsmath", "colon_fence", "dollarmath"]
myst_heading_anchors = 3
highlight_language = "text"
suppress_warnings = ["ref.python"]  # annotations name classes by their last names, which two rooms may share

html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_title = "mesascope"
html_copy_source = False
html_show_copyright = False
maximum_signature_line_length = 88


def setup(app):
    """Pages are read through `pages`, all of them anew when the code has changed that they show or that shows them."""
    shown_by = [path.read_text(encoding="utf-8") for path in sorted(Path(pages.__file__).parent.glob("*.py"))]
    app.add_config_value("code", [code_version(), *shown_by], "env")
    app.add_config_value("outputs_needed", True, "")
    app.connect("builder-inited", pages.require_outputs)
    app.connect("source-read", pages.read_source)
