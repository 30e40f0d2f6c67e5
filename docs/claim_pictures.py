"""Pictures of the figures of claims: as pages show them, and small beside the records that come with the package.

A record of the package names its small pictures, `pictures/KEY/NAME.png`, where that of a run names `figures/KEY/NAME.json`:
which figures a claim has is said by its check alone. Each holds the words that stand for it, those of the page that shows it.
"""

import re
from pathlib import Path

from PIL import Image, PngImagePlugin

from mesascope.papers import shipped_run
from mesascope.records import CellMap, Figure, Heatmap, RunDirectory
from mesascope.report import tex_to_text

WIDTH = 480
"""Pixels of a small picture."""
COLOURS = 128
"""Of a picture whose colours are no values."""
_NAMED = re.compile(r"figures/([a-z0-9.-]+)/([a-z0-9.-]+)\.json")


def drawn(record, folder):
    """Paper, name, traces and picture of every figure of a record that its run has drawn."""
    for file in record.files:
        path = (Path(folder) / file).with_suffix(".png")
        if (named := _NAMED.fullmatch(file)) and path.exists():
            paper, name = named.groups()
            yield paper, name, RunDirectory(folder).read_figure(f"{paper}/{name}"), path


def kept(record, folder):
    """What a record of the package names in place of its run's files."""
    return tuple(f"pictures/{paper}/{name}.png" for paper, name, _, _ in drawn(record, folder))


def take(record, folder, pages):
    """Write the pictures of a record: those that pages show, and a small one of each beside it."""
    for paper, name, figure, path in drawn(record, folder):
        picture = Image.open(path).convert("RGB")
        shown = f"{paper}-{name}.png"
        words = words_on(pages, shown)
        if words or (pages / shown).exists():
            reduced(picture, has_values(figure)).save(pages / shown, optimize=True)
        words = words or ". ".join(filter(None, map(tex_to_text, (figure.title, figure.caption))))
        write_small(small_file(record.preset, paper, name), picture, words, has_values(figure))


def small_file(preset, paper, name):
    """Where the small picture of a figure lies."""
    return shipped_run(preset).path / "pictures" / paper / f"{name}.png"


def write_small(file, picture, words, values):
    """Write a picture `WIDTH` wide with the words that stand for it."""
    size = WIDTH, round(WIDTH * picture.height / picture.width)
    file.parent.mkdir(parents=True, exist_ok=True)
    _save(reduced(picture.resize(size, Image.Resampling.LANCZOS), values), file, words)


def reduced(picture, values):
    """The picture in few colours, or with all of them where they are values."""
    return picture if values else picture.quantize(COLOURS, dither=Image.Dither.NONE)


def has_values(figure: Figure):
    """Whether colours of a figure are values."""
    return any(isinstance(one, Heatmap | CellMap) for panel in figure.panels for one in panel.traces)


def words_on(pages, shown):
    """The words with which a page shows a picture; empty where none does."""
    for page in sorted(pages.glob("*.md"), key=lambda page: page.stem != shown.partition("-")[0]):
        if found := re.search(rf"!\[([^\]]+)\]\({re.escape(shown)}\)", page.read_text(encoding="utf-8")):
            return found[1]
    return ""


def tidy(pages, presets):
    """Remove small pictures that no record names, and give the others the words of the pages."""
    for preset in presets:
        run = shipped_run(preset)
        named = {run.path / file for record in run.claims() for file in record.files}
        for file in sorted((run.path / "pictures").glob("*/*.png")):
            if file not in named:
                file.unlink()
                continue
            with Image.open(file) as picture:
                picture.load()
            words = words_on(pages, f"{file.parent.name}-{file.name}")
            if words and words != picture.text["Description"]:
                _save(picture, file, words)


def _save(picture, file, words):
    about = PngImagePlugin.PngInfo()
    about.add_itxt("Description", words)
    picture.save(file, optimize=True, pnginfo=about)
