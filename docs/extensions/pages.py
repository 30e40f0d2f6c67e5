"""Pages of Markdown as notebooks: their blocks with what they printed and drew when they were run (see `blocks`).

Pages stay what they are in any viewer of Markdown. A page with a line `<!-- all of ../FILE.md -->` shows that file, which lies
outside of the documentation; links to the file lead to the page. A picture in SVG is a part of its page, so that it has the
theme of the site and its cells lead somewhere. Links to notebooks download them, and a page that is one, too, says so.
"""

import os
import posixpath
import re

from blocks import BLOCK, DOCS, kept, not_run, place_of
from nbformat import NotebookNode, v4
from sphinx.errors import ConfigError
from typeset import typeset
from write_notebooks import PAGES, place

ROOT = DOCS.parent
TAKEN = re.compile(r"<!-- all of (\S+\.md) -->\n")
COMMANDS = "# the commands above"  # stands for them where their output is shown: myst-nb leaves out cells without source
DRAWN = re.compile(r"^!\[[^\]]*\]\(([\w/-]+\.svg)\)$", re.M)
HIDDEN, HIDDEN_END = "<!-- not shown\n", "-->\n"  # around a block that runs without being shown
PACKAGES = {"torch": "PyTorch"}
THEME = "--ink: var(--color-foreground-primary); --paper: var(--color-background-primary)"  # that of the site
LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\((?!\w+:|#)([^)#\s]+)(#[^)\s]*)?\)")


def notebook(text: str) -> NotebookNode:
    """The notebook that myst-nb shows for a page."""
    outputs = kept(text) or []
    cells, end = [], 0
    blocks = list(BLOCK.finditer(text))
    for number, block in enumerate(blocks):
        output = outputs[number] if outputs else None
        kind, code = block.group(2, 3)
        before = text[end : block.start()]
        if before.endswith(HIDDEN):
            cells.append(v4.new_markdown_cell(before.removesuffix(HIDDEN)))
            end = text.index(HIDDEN_END, block.end()) + len(HIDDEN_END)
        elif output and output.lacked and kind in ("python", "sh"):
            package = PACKAGES.get(output.lacked, output.lacked)
            lacking = f"\n\n*{package} was not installed where this page was built: no output.*\n\n"
            cells.append(v4.new_markdown_cell(text[end : block.end()] + lacking))
            end = block.end()
        elif kind == "python" and _is_told(blocks[number + 1 :]):
            cells += [v4.new_markdown_cell(before), _cell(code, None, text)]
            end = block.end()
        elif kind == "python":
            cells += [v4.new_markdown_cell(before), _cell(code, output, text)]
            end = block.end()
        elif kind == "sh" and output and not _is_told(blocks[number + 1 :]):
            cells += [v4.new_markdown_cell(text[end : block.end()]), _cell(COMMANDS, output, text)]
            end = block.end()
    cells.append(v4.new_markdown_cell(text[end:]))
    return v4.new_notebook(cells=cells, metadata={"language_info": {"name": "python"}})


def _is_told(later):
    """Whether the page goes on with what the block prints."""
    return bool(later) and later[0].group(2) == "text"


def _cell(code, output, page):
    cell = v4.new_code_cell(code.rstrip("\n"))
    if code == COMMANDS:
        cell.metadata["tags"] = ["remove-input"]
    if output and output.text:
        cell.outputs.append(v4.new_output("stream", name="stdout", text=output.text))
    for name, picture in output.pictures.items() if output else ():
        if f"{name})" not in page:
            cell.outputs.append(v4.new_output("display_data", data={"image/png": picture}))
    return cell


def require_outputs(app):
    """Refuse to build a site whose blocks were not run, unless that is what is wanted."""
    lacking = [path.relative_to(ROOT).as_posix() for path in not_run()] if app.config.outputs_needed else []
    if lacking:
        raise ConfigError(f"not run with the code of today: {', '.join(lacking)}; `make docs` runs them")


def read_source(app, docname, source):
    """Take in the file that a page is all of, and lead links to where the site has what they mean."""
    place = f"docs/{docname}.md"
    taken = TAKEN.search(source[0])
    if taken:
        place = posixpath.normpath(posixpath.join(posixpath.dirname(place), taken[1]))
        app.env.note_dependency(str(ROOT / place))
        source[0] = (ROOT / place).read_text(encoding="utf-8")
    app.env.note_dependency(str(place_of(source[0])))
    source[0] = _with_notebook(typeset(source[0]), ROOT / place, docname)
    source[0] = DRAWN.sub(lambda found: _inside(ROOT / posixpath.dirname(place) / found[1]), source[0])
    pages = _pages_of_files()
    source[0] = LINK.sub(lambda link: _lead(link, posixpath.dirname(place), docname, pages), source[0])


def _inside(picture):
    """A picture as a part of the page, in one line: Markdown ends HTML at an empty one."""
    drawn = picture.read_text(encoding="utf-8").replace('.md"', '.html"')
    return f'<div style="{THEME}">{" ".join(drawn.split())}</div>'


def _with_notebook(text, page, docname):
    """The page with a link to its notebook below the title, where there is one."""
    if page not in PAGES:
        return text
    target = posixpath.relpath(os.path.relpath(place(page), DOCS), posixpath.dirname(docname) or ".")
    title, _, rest = text.partition("\n")
    return f"{title}\n\n{{download}}`This page as a notebook, with its outputs <{target}>`\n{rest}"


def _pages_of_files():
    """File outside of the documentation → page that shows it, both from the root of the repository."""
    found = {}
    for page in (DOCS / "reference").glob("*.md"):
        taken = TAKEN.search(page.read_text(encoding="utf-8"))
        if taken:
            found[os.path.relpath(page.parent / taken[1], ROOT).replace(os.sep, "/")] = (
                f"docs/reference/{page.name}"
            )
    return found | {"README.md": "docs/index.md"}


def _lead(link, folder, docname, pages):
    """The link as it is written on its page; its words alone where the site does not have what it leads to."""
    words, target, anchor = link.groups()
    path = posixpath.normpath(posixpath.join(folder, target))
    path = pages.get(path, path)
    if path.endswith(".ipynb") and (ROOT / path).exists():
        return f"{{download}}`{words} <{posixpath.relpath(path, posixpath.dirname(f'docs/{docname}'))}>`"
    if (path.startswith("docs/") and not (ROOT / path).is_dir()) or not (ROOT / path).exists():
        return f"[{words}]({posixpath.relpath(path, posixpath.dirname(f'docs/{docname}'))}{anchor or ''})"
    return words
