"""The pages of papers: every paper has one whose examples run, and the table shows what the records say."""

import importlib.util
import re
import shutil
import sys
import types
from importlib import import_module
from pathlib import Path

import claim_pictures
import jax
import pytest
from blocks import run
from PIL import Image

import stored_records as stored
from mesascope.papers import PAPERS, PRESETS, claims, restated, shipped_record, shipped_run
from mesascope.records import SHIPPED, RunDirectory, shipped_pictures

DOCS = Path(__file__).parents[1] / "docs"
FOLDER = DOCS / "papers"


@pytest.fixture(scope="module")
def writer():
    sys.path.insert(0, str(DOCS))
    spec = importlib.util.spec_from_file_location("write_claims", DOCS / "write_claims.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    sys.path.remove(str(DOCS))


@pytest.fixture(scope="module")
def marks(writer):
    return sys.modules["page_marks"]


@pytest.mark.parametrize("paper", PAPERS)
def test_a_page_names_every_claim_and_shows_its_figures(paper):
    text = (FOLDER / f"{paper}.md").read_text(encoding="utf-8")
    figures = re.findall(r"!\[[^\]]{20,}\]\(([^)]+\.png)\)", text)
    assert figures and all((FOLDER / figure).stat().st_size < 300_000 for figure in figures)
    named = set(re.findall(r"`([a-z0-9./…-]+)`", text))
    for claim in claims(paper):
        name = claim.id.removeprefix(f"{paper}/")
        assert any(
            {name, claim.id} & {one} or re.fullmatch(re.escape(one).replace("…", ".+"), name) for one in named
        ), f"{claim.id} is not on its page"


@pytest.mark.slow
@pytest.mark.parametrize("paper", PAPERS)
def test_examples_on_the_page_run(paper, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (FOLDER / f"{paper}.md").read_text(encoding="utf-8")
    assert "```python\n" in page
    run(page, {"__name__": paper})
    jax.config.update("jax_enable_x64", True)


@pytest.mark.slow
def test_the_overview_is_what_the_records_say_and_every_claim_has_one_with_its_words_and_settings(writer):
    assert (FOLDER / "README.md").read_text(encoding="utf-8") == writer.overview()
    drawn = (FOLDER / writer.MATRIX).read_text(encoding="utf-8")
    assert drawn == writer.picture(), "python docs/write_claims.py draws it again"
    assert all(f'data-claim="{claim.id}"' in drawn for claim in claims())
    records = {preset: {one.id: one for one in shipped_run(preset).claims()} for preset in PRESETS}
    assert set(records["small"]) == {claim.id for claim in claims()} >= set(records["full"])
    for claim in claims():
        for found in records.values():
            if claim.id in found:
                assert restated(found[claim.id], claim) == found[claim.id], (
                    "python docs/write_claims.py takes words over"
                )


@pytest.mark.parametrize("paper", PAPERS)
def test_numbers_beside_an_outcome_are_of_the_preset_that_gave_it(paper, marks):
    text = (FOLDER / f"{paper}.md").read_text(encoding="utf-8")
    presets = {claim.id: shipped_record(claim).preset for claim in claims(paper)}
    for row in marks.ROW.finditer(text):
        for name in marks.claim_names(row["claims"]):
            for id in marks.claims_meant(name, paper, presets):
                short = id.partition("/")[2]
                shown = {
                    mark["preset"] for mark in marks.MARK.finditer(row["middle"]) if mark["claim"] == short
                }
                assert not shown or presets[id] in shown, id


def test_every_claim_is_listed_once_by_outcome_and_evidence():
    told = re.findall(r"^\| `([^`]+)` \|", (FOLDER / "README.md").read_text(encoding="utf-8"), re.M)
    assert sorted(told) == sorted(claim.id for claim in claims())


@pytest.mark.parametrize("paper", PAPERS)
def test_numbers_outcomes_and_differences_on_the_page_are_those_of_records_and_claims(paper, writer, marks):
    text = (FOLDER / f"{paper}.md").read_text(encoding="utf-8")
    assert marks.MARK.search(text)
    assert len(marks.DIFFERENCES.findall(text)) == 1
    rest = text.replace("<!--differences-->", "").replace("<!--/differences-->", "")
    assert (
        len(marks.MARK.findall(rest)) == rest.count("<!--/-->") == rest.count("<!--") // 2
    )  # none that is not read
    assert text == writer.paper_page(paper), "python docs/write_claims.py writes it anew"


def test_numbers_of_other_pages_are_those_of_records(writer, marks):
    pages = writer.marked_pages()
    assert "pools" in pages and any(name.startswith("disagreement-") for name in pages)
    for name in pages:
        text = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
        assert len(marks.MARK.findall(text)) == text.count("<!--/-->") == text.count("<!--") // 2
        assert text == writer.marked_page(name), "python docs/write_claims.py writes it anew"


def test_the_page_of_what_abstracts_announce_has_the_outcomes_of_the_records(writer):
    text = (FOLDER / "headlines.md").read_text(encoding="utf-8")
    assert text == writer.announced(), "python docs/write_claims.py writes it anew"


def test_the_list_of_differences_links_each_dossier(writer):
    listed = (FOLDER / "disagreements.md").read_text(encoding="utf-8")
    assert writer.disagreeing()
    assert all(f"(disagreement-{paper}.md)" in listed for paper in writer.disagreeing())


@pytest.mark.parametrize("paper", PAPERS)
def test_every_line_on_a_claim_has_marked_numbers_and_an_outcome_that_is_read(paper, marks):
    text = (FOLDER / f"{paper}.md").read_text(encoding="utf-8")
    ids = [claim.id for claim in claims(paper)]
    lines = [line for line in text.splitlines() if line.startswith("| `")]
    told = [
        line
        for line in lines
        if any(marks.claims_meant(name, paper, ids) for name in marks.claim_names(line.split(" | ")[0]))
    ]
    assert told
    for line in told:
        assert marks.ROW.match(line), line
        measured = marks.MARK.sub("", line.split(" | ")[2])
        assert not re.search(r"\d\.\d|\de-?\d", measured), (
            f"a number without its mark (docs/page_marks.py tells of marks): {measured}"
        )


@pytest.mark.parametrize("paper", PAPERS)
def test_pictures_bear_the_names_of_figures_of_the_paper(paper):
    # so that write_claims.py finds them in a run
    text = (FOLDER / f"{paper}.md").read_text(encoding="utf-8")
    module = Path(import_module(f"mesascope.papers.{paper}").__file__)
    files = module.parent.glob("*.py") if module.name == "__init__.py" else [module]
    source = "".join(file.read_text(encoding="utf-8") for file in files)
    for picture in re.findall(r"\(([^)]+)\.png\)", text):
        assert f'"{picture.removeprefix(f"{paper}-")}"' in source, picture


RECORD = types.SimpleNamespace(
    measured={
        "loss": 0.00123,
        "ratio": 0.8,
        "interval": [0.71, 0.92],
        "error": 1.6e-15,
        "steps": 67253,
        "z": -0.46,
    },
    details={"seeds": {"a": {"x": [1, 2]}, "b": {"x": [3, 4]}}, "name": "ridge"},
)


@pytest.mark.parametrize(
    ("form", "key", "text"),
    [
        (".2%", "measured/loss", "0.12 %"),
        ("[.0p]", "measured/interval", "[71, 92]"),
        (".1e", "measured/error", "1.6e-15"),
        (".1^", "measured/error", "1.6·10⁻¹⁵"),
        ("^", "measured/error", "10⁻¹⁵"),
        (",d", "measured/steps", "67 253"),
        (".2f", "measured/z", "−0.46"),
        ("abs:.1f", "measured/z", "0.5"),
        ("minus:.1f", "measured/z", "0.5"),
        ("below:.0%", "measured/ratio", "20 %"),
        ("above:.1f", "measured/ratio", "−0.2"),
        ("below:[.2f]", "measured/interval", "[0.08, 0.29]"),
        ("half:.3f", "measured/interval", "0.105"),
        ("mean:.1f", "details/seeds/*/x", "2.5"),
        ("max:d", "details/seeds/*/x", "4"),
        ("d", "details/seeds/*/x/0", "1, 3"),
        ("s", "details/name", "ridge"),
    ],
)
def test_how_marks_are_written(form, key, text, marks):
    page = f"before <!--small other/claim {form} {key}-->anything<!--/--> after"
    written = marks.written(page, "paper", lambda preset, id: {("small", "other/claim"): RECORD}[preset, id])
    assert written == page.replace("anything", text)
    assert marks.written(written, "paper", lambda preset, id: RECORD) == written


@pytest.mark.parametrize(
    "mark",
    ["small a .2f measured/no", "small a .2f no", "small a what:d measured/steps", "small a d measured/loss"],
)
def test_a_mark_that_finds_nothing_says_which(mark, marks):
    with pytest.raises(ValueError, match=f"mark '<!--{mark}-->1<!--/-->' of paper"):
        marks.written(f"<!--{mark}-->1<!--/-->", "paper", lambda preset, id: RECORD)


def test_outcomes_are_written_into_tables(marks):
    lines = (
        "`one` | x | 1 | holds (exact)",
        "`p/two` | x | 1 | contradicted (exact): it is less",
        "`part-…` | x | 1 | not reproduced at this scale (measured, reduced)",
        "`model` | y",
    )
    page = "".join(f"| {line} |\n" for line in lines)
    outcomes = {
        "p/one": "holds (exact)",
        "p/two": "contradicted (exact)",
        "p/part-a": "not reproduced at this scale (measured, reduced)",
        "p/part-b": "not reproduced at this scale (measured, reduced)",
    }
    assert marks.outcome_cells(page, "p", outcomes) == page
    turned = marks.outcome_cells(
        page, "p", {**outcomes, "p/one": "holds with a difference (exact)", "p/two": "holds (proved)"}
    )
    assert turned == page.replace("1 | holds (exact)", "1 | holds with a difference (exact)").replace(
        "contradicted (exact): it is less", "holds (proved)"
    )
    with pytest.raises(ValueError, match=r"has no one outcome, but holds .*, not reproduced"):
        marks.outcome_cells(page, "p", {**outcomes, "p/part-b": "holds (exact)"})
    with pytest.raises(ValueError, match="has no one outcome, but none"):
        marks.outcome_cells("| `three` | x | 1 | holds (exact) |", "p", outcomes)


def test_pictures_of_pages_lie_small_beside_the_record_of_one_claim_with_the_words_of_the_page():
    owners = {}
    for claim in claims():
        for file in shipped_pictures(claim.id):
            assert owners.setdefault(f"{file.parent.name}-{file.name}", (claim.id, file))[0] == claim.id
    assert {picture.name for picture in FOLDER.glob("*.png")} <= set(owners)
    there = set(SHIPPED.glob("*/pictures/*/*"))
    assert there == {file for _, file in owners.values()}
    assert sum(file.stat().st_size for file in there) < 2e6
    for name, (claim, file) in owners.items():
        words = claim_pictures.words_on(FOLDER, name)
        with Image.open(file) as picture:
            picture.load()
            assert picture.width == claim_pictures.WIDTH and claim.startswith(f"{file.parent.name}/")
            assert picture.text["Description"] == words if words else picture.text["Description"]


def test_colours_that_are_values_are_kept():
    assert claim_pictures.has_values(stored.map_figure())
    assert not claim_pictures.has_values(stored.curves_figure())
    picture = Image.effect_noise((64, 64), 90).convert("RGB").resize((640, 64))
    assert claim_pictures.reduced(picture, values=True) is picture
    assert len(claim_pictures.reduced(picture, values=False).getcolors()) <= claim_pictures.COLOURS


@pytest.mark.slow
def test_records_figures_and_numbers_are_taken_over_from_runs(tmp_path, monkeypatch, writer):
    figure, id = "zheng2024-normalizers.png", "zheng2024/other-normalizers"
    for page in FOLDER.glob("*.md"):
        (tmp_path / page.name).write_text(page.read_text(encoding="utf-8"), encoding="utf-8")
    shipped = tmp_path / "shipped"
    shutil.copytree(SHIPPED, shipped)
    gone = shipped / "small" / "claims" / "zheng2024" / "gone.json"
    run = RunDirectory.create(tmp_path / "run" / "small")
    record = shipped_run("small").read_claim(id)
    changed = record.model_copy(
        update={
            "title": "Words of then",
            "files": (run.write_figure("zheng2024/normalizers", stored.curves_figure()),),
            "seconds": 12345.0,
        }
    )
    run.write_claim(changed)
    Image.effect_noise((40, 30), 50).save(run.figure_stem("zheng2024/normalizers").with_suffix(".png"))
    monkeypatch.setattr(writer, "FOLDER", tmp_path)
    monkeypatch.setattr("mesascope.papers._earlier.SHIPPED", shipped)
    RunDirectory(shipped / "small").write_claim(record.model_copy(update={"id": "zheng2024/gone"}))
    with pytest.raises(SystemExit, match="nowhere: holds no records"):
        writer.main(["nowhere"])
    writer.main([tmp_path / "run"])
    taken = RunDirectory(shipped / "small").read_claim(id)
    small = "pictures/zheng2024/normalizers.png"
    assert taken == record.model_copy(update={"files": (small,), "seconds": 12345.0}) and not gone.exists()
    for page in FOLDER.glob("*.md"):
        assert (tmp_path / page.name).read_text(encoding="utf-8") == page.read_text(encoding="utf-8")
    for path, size in ((tmp_path / figure, (40, 30)), (shipped / "small" / small, (480, 360))):
        with Image.open(path) as picture:
            assert picture.size == size
    for field, value, told in (
        ("setting", {}, "setting"),
        ("criterion", "Another.", "criterion"),
        ("statement", "Another.", "statement"),
        ("evidence", "proved", "evidence"),
    ):
        run.write_claim(changed.model_copy(update={field: value}))
        with pytest.raises(
            SystemExit, match=f"{id}, small: {told} changed since it was checked; run `mesascope rep"
        ):
            writer.main([tmp_path / "run"])
