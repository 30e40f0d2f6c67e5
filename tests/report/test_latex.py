"""The figures of a report for LaTeX."""

import re
import shutil
import subprocess

import pytest

import stored_records as stored
from mesascope.records import Figure, Line, RecordError, cite
from mesascope.report import write_report
from mesascope.report._latex import tex, write_latex
from mesascope.report._tex import tex_to_html, tex_to_text

SPECIAL = r"100 % of {a} & b_j ~ #1 \input{x} ^ < > | $5 — W^KQ ≤ Σ⁻¹ ŷ, x̄ᵀ ← ¼ … 'é' “ß”"


@pytest.fixture
def written(tmp_path):
    figures = {
        "zheng2024/curves": stored.curves_figure().model_copy(update={"caption": SPECIAL}),
        "zheng2024/map": stored.map_figure(),
    }
    other = stored.claim("huang2024/stages", source="huang2024")
    folder = stored.run_directory(tmp_path / "run", stored.claim(), other, figures=figures)
    reported = []
    write_report(str(folder), out=tmp_path / "r.html", latex=tmp_path / "tex", progress=reported.append)
    assert [one.describe() for one in reported] == [
        "0 figures, reading records",
        "0 of 2 figures, drawing small/zheng2024/curves",
        "1 of 2 figures, drawing small/zheng2024/map",
    ]
    return tmp_path / "tex"


@pytest.mark.slow
def test_pdfs_at_the_widths_of_a_paper_with_their_letters(written):
    for name, inches in (("curves", 6.75), ("map", 3.25)):
        pdf = (written / "figures" / "small" / "zheng2024" / f"{name}.pdf").read_bytes()
        assert b"/Type3" not in pdf and b"/FontFile2" in pdf  # embedded TrueType
        (box,) = re.findall(rb"/MediaBox \[ ?0 0 ([\d.]+) ", pdf)
        assert float(box) == pytest.approx(72 * inches, abs=0.1)


@pytest.mark.parametrize("name", ["figures.tex", "references.bib"])
def test_files_of_others_are_not_replaced(tmp_path, name):
    (tmp_path / name).write_text("@article{mine, title={precious}}")
    with pytest.raises(RecordError, match=f"{name} exists and is not one that mesascope wrote"):
        write_latex(tmp_path, None, lambda _: None)
    assert (tmp_path / name).read_text() == "@article{mine, title={precious}}"


@pytest.mark.slow
def test_every_figure_is_included_once_with_caption_and_citation(written):
    text = (written / "figures.tex").read_text(encoding="utf-8")
    for name in re.findall(r"\\includegraphics\{([^}]*)\}", text):
        assert (written / name).is_file()
    assert text.count(r"\includegraphics") == text.count(r"\cite{zheng2024}") == 2
    assert (
        text.count(r"\begin{figure*}") == text.count(r"\end{figure*}") == 1
    )  # two panels: as wide as the page
    assert r"Curves. 100 \% of \{a\} \& b\_j" in text
    head, _, entries = (written / "references.bib").read_text(encoding="utf-8").partition("\n")
    assert head.startswith("% ") and entries == cite("zheng2024", "huang2024") + "\n"


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a_b & 5 %", r"a\_b \& 5 \%"),
        ("$a_b$ and x_i", r"$a_b$ and x\_i"),
        (r"\input{x}", r"\textbackslash{}input\{x\}"),
        ("costs 5 $", r"costs 5 \$"),
        ("$a}{$", r"\$a\}\{\$"),
        ("$a}$", r"\$a\}\$"),
        ("Σ⁻¹ ≤ ŷ", r"$\Sigma$$^{-}$$^{1}$ $\le$ $\hat{y}$"),
        ("Ĉ = C̄ᵀ, λ̂ … ¼", r"Ĉ = $\bar{C}$$^{\top}$, $\hat{\lambda}$ $\ldots$ $\frac14$"),
        ("$x̄ ← y$", r"$\bar{x}  \leftarrow  y$"),
        ("$Σ ≤ 5%$", r"$\Sigma  \le  5\%$"),
        (r"$5\% # & 1$", r"$5\% \# \& 1$"),
        (r"$\left\{ \frac{a}{b} \right\}$", r"$\left\{ \frac{a}{b} \right\}$"),
        ("a\n\nb\x00\x1b", "a  b  "),
    ],
)
def test_texts_for_latex(text, written):
    assert tex(text) == written


@pytest.mark.parametrize(
    "formula",
    [
        r"\input{/etc/passwd}",
        r"\immediate\write18{id}",
        r"\def\alpha{}",
        r"\catcode`\@=0",
        r"\csname input\endcsname",
        r"\begin{verbatim}",
        r"a \\ b",
        r"\{ }",
        r"\left} \right)",
        r"\right) \left(",
        "^^5cinput{x}",
        "x^⁰",  # `^` before `^{0}` would take the brace
        "a\\",
        "{" * 100_000,
        " ",
        "",
    ],
)
def test_formulas_that_are_no_mathematics_are_shown_as_they_are_written(formula):
    text = tex(f"before $a_b$ ${formula}$ after")
    assert text.startswith(r"before $a_b$ \$") and text.endswith(r"\$ after")
    harmless = re.sub(r"\\textbackslash\{\}|\\textasciicircum\{\}|\\[{}$]|\$\^\{0\}\$", "", text[13:])
    assert not re.search(r"[\\{}$^%#&]", harmless)
    assert "<" not in tex_to_text(f"${formula}$") and "\x1b" not in tex_to_html(f"${formula}$")


@pytest.mark.slow
def test_figures_that_cannot_be_drawn_are_left_out_and_reported(tmp_path):
    words = {"title": r"No formula $\frac{a$", "caption": r"$\input{/etc/passwd}$"}
    curves = stored.curves_figure()
    line = Line(x=(0.0, 1.0), y=(5e-324, 1.7e308), label="all that a double holds")
    figures = {
        "zheng2024/bad": curves.model_copy(update=words),
        "zheng2024/good": curves,
        "zheng2024/deep": curves.model_copy(update={"title": f"${'{' * 5000}$"}),
        "zheng2024/wide": Figure(title="wide", panels=(stored.panel(line, yscale="log"),)),
    }
    folder = stored.run_directory(tmp_path / "run", stored.claim(), figures=figures)
    report = write_report(str(folder), out=tmp_path / "r.html", latex=tmp_path / "tex")
    assert len(report.problems) == 3 and not any("\n" in one for one in report.problems)
    for problem, name in zip(report.problems, ("figure zheng2024/wide", "bad.pdf", "deep.pdf"), strict=True):
        assert name in problem and "cannot be drawn" in problem
    text = (tmp_path / "tex" / "figures.tex").read_text()
    assert re.findall(r"\\includegraphics\{(.*)\}", text) == ["figures/small/zheng2024/good.pdf"]
    page = (tmp_path / "r.html").read_text()
    assert "cannot be drawn" in page and "MathJax.js" not in page


@pytest.mark.skipif(
    not all(map(shutil.which, ("pdflatex", "bibtex"))), reason="no pdflatex, or no bibtex, on the path"
)
def test_latex_takes_it(written):
    main = (
        r"\documentclass{article}\usepackage{graphicx}\begin{document}\input{figures}"
        r"\bibliographystyle{plain}\bibliography{references}\end{document}"
    )
    (written / "main.tex").write_text(main)
    latex = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "main.tex"]
    for command in (latex, ["bibtex", "main"], latex, latex):
        done = subprocess.run(command, cwd=written, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-2000:]
    log = (written / "main.log").read_text(encoding="latin-1")
    assert "undefined" not in log and "Missing character" not in log and "multiply defined" not in log
    assert log.count("Graphic file (type pdf)") + log.count(".pdf>") >= 2
