"""Claims as a matrix: every claim has a cell whose shape, colour and sign say what was found, and how."""

import xml.etree.ElementTree as ElementTree
from itertools import product
from typing import get_args

import pytest

import stored_records as stored
from mesascope.records import IMPORTANCE, SIGNS, Evidence, Outcome
from mesascope.report import MatrixCell, MatrixRow, matrix, most_important_first

SVG = "{http://www.w3.org/2000/svg}"


def cell(id="zheng2024/a", evidence="exact", outcome="holds", **more):
    return MatrixCell(id, "A title", evidence, outcome, **more)


def read(rows, **options):
    return ElementTree.fromstring(matrix(rows, **options))


def marked(drawn):
    """Words of every cell → shape, colour and sign."""
    found = {}
    for one in drawn.iter():
        title = one.find(f"{SVG}title")
        if title is not None:
            path = one.find(f"{SVG}path")
            found[title.text] = path.get("d"), path.get("fill"), one.find(f"{SVG}text").text
    return found


def test_every_evidence_has_a_shape_and_every_outcome_a_colour_and_its_sign():
    pairs = list(product(get_args(Evidence), get_args(Outcome)))
    drawn = marked(read([MatrixRow("p", tuple(cell(f"p/{n}", *pair) for n, pair in enumerate(pairs)))]))
    by_pair = {tuple(words.split(" – ")[1:]): look for words, look in drawn.items()}
    assert list(by_pair) == pairs
    shapes = {evidence: {by_pair[evidence, one][0] for one in SIGNS} for evidence in get_args(Evidence)}
    looks = {outcome: {by_pair[one, outcome][1:] for one in get_args(Evidence)} for outcome in SIGNS}
    assert all(len(one) == 1 for one in (*shapes.values(), *looks.values()))
    assert len(set.union(*shapes.values())) == len(shapes)
    ((colors, signs),) = [zip(*set.union(*looks.values()), strict=True)]
    assert len(set(colors)) == len(set(signs)) == len(SIGNS)
    assert {outcome: sign for outcome, ((_, sign),) in looks.items()} == SIGNS


def luminance(color):
    parts = (int(color[at : at + 2], 16) / 255 for at in (1, 3, 5))
    linear = (one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts)
    return sum(weight * one for weight, one in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_signs_are_legible_on_every_colour():
    cells = [cell(f"p/{n}", outcome=outcome) for n, outcome in enumerate((*SIGNS, "not checked"))]
    for words, (_, color, _) in marked(read([MatrixRow("p", tuple(cells))])).items():
        assert (luminance(color) + 0.05) / 0.05 >= 4.5, words  # black on it


def test_cells_lead_to_their_claims_and_say_what_they_are():
    rows = [MatrixRow("zheng2024", (cell(link="z.md#a&b"), cell("zheng2024/b")), "z.md")]
    drawn = read(rows)
    linked = [one for one in drawn.iter(f"{SVG}a") if one.get("data-claim")]
    assert [(one.get("href"), one.get("aria-label")) for one in linked] == [
        ("z.md#a&b", "zheng2024/a: A title – exact – holds")
    ]
    assert [one.get("aria-label") for one in drawn.iter() if one.get("role") == "img"] == [
        "zheng2024/b: A title – exact – holds"
    ]
    assert "holds: 2" in [one.text for one in drawn.iter(f"{SVG}text")]


def test_words_of_a_claim_cannot_leave_their_place():
    hostile = '</title><script>alert(1)</script>" onclick="x'
    drawn = read([MatrixRow(hostile, (MatrixCell(hostile, hostile, "exact", hostile, hostile),), hostile)])
    assert not list(drawn.iter(f"{SVG}script")) and not any("onclick" in one.attrib for one in drawn.iter())


def test_what_is_contradicted_comes_first_and_what_holds_keeps_its_order():
    rows = [
        MatrixRow("a", (cell("a/1"), cell("a/2"))),
        MatrixRow("b", (cell("b/1"), cell("b/2", outcome="undecided"))),
        MatrixRow("c", (cell("c/1"),)),
        MatrixRow("d", (cell("d/1", outcome="undecided"), cell("d/2", outcome="contradicted"))),
    ]
    ordered = most_important_first(rows)
    assert [row.name for row in ordered] == ["d", "b", "a", "c"]
    assert [one.id for row in ordered for one in row.cells][:4] == ["d/2", "d/1", "b/2", "b/1"]
    assert IMPORTANCE[:2] == ("contradicted", "not reproduced at this scale") and set(IMPORTANCE) == set(
        SIGNS
    )


@pytest.mark.parametrize(("stacked", "columns"), [(False, 32), (False, 5), (True, 12)])
def test_everything_lies_inside_the_picture(stacked, columns):
    cells = tuple(cell(f"p/{n}") for n in range(33))
    drawn = read([MatrixRow("vladymyrov2024", cells)], columns=columns, stacked=stacked)
    width, height = (int(drawn.get(name)) for name in ("width", "height"))
    places = [one.get("transform") for one in drawn.iter() if one.get("transform")]
    at = [tuple(map(int, one[10:-1].split())) for one in places]
    assert all(14 <= x <= width - 14 and 14 <= y <= height - 14 for x, y in at)
    assert len(set(at)) == len(at)


def test_a_page_gives_its_colours_and_has_one_stop_for_the_tabulator():
    row = MatrixRow("p", tuple(cell(f"p/{n}", link="#") for n in range(3)))
    inside = matrix([row], alone=False, one_stop=True)
    assert "prefers-color-scheme" not in inside and "prefers-color-scheme: dark" in matrix([row])
    drawn = ElementTree.fromstring(inside)
    assert [one.get("tabindex") for one in drawn.iter(f"{SVG}a")] == ["0", "-1", "-1"]
    assert {one.get("tabindex") for one in read([row]).iter(f"{SVG}a")} == {None}


def test_a_matrix_without_claims_is_a_legend():
    assert "contradicted: 0" in [one.text for one in read([]).iter(f"{SVG}text")]


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_browser_draws_the_file_in_the_theme_of_the_reader(browser, tmp_path, scheme):
    file = tmp_path / "matrix.svg"
    record = stored.claim()
    row = MatrixRow("zheng2024", (MatrixCell.of(record, "zheng2024.md"),), "zheng2024.md")
    file.write_text(matrix([row]), encoding="utf-8")
    with browser.page(color_scheme=scheme) as (page, seen):
        page.goto(file.as_uri())
        ground = page.locator("rect").evaluate("one => getComputedStyle(one).fill")
        assert ground == {"light": "rgb(255, 255, 255)", "dark": "rgb(21, 24, 28)"}[scheme]
        wide = page.locator("text.name").evaluate("one => one.getBBox().width")
        assert wide < 8 * len("zheng2024") + 10  # its cells begin two pixels further
    assert seen.errors == []
