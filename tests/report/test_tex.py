"""Formulas as letters, subscripts and superscripts."""

import re
from pathlib import Path

import pytest

from mesascope.report._latex import tex
from mesascope.report._tex import tex_to_html, tex_to_text

SOURCES = Path(__file__).parents[2] / "src" / "mesascope"


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("no formula, 5 < 6 & more", "no formula, 5 &lt; 6 &amp; more"),
        ("$ab$ and $a_j b_j$", "<i>ab</i> and <i>a</i><sub><i>j</i></sub><i>b</i><sub><i>j</i></sub>"),
        (r"$E\|\hat y - y\|^2$", "<i>E</i>‖<i>ŷ</i> − <i>y</i>‖<sup>2</sup>"),
        (r"$E[\hat y \bar x]$", "<i>E</i>[<i>ŷx̄</i>]"),
        (r"$\frac{1}{5\sigma^2}$", "1/(5σ<sup>2</sup>)"),
        (r"$\frac12 x$", "½<i>x</i>"),
        (r"$\mathrm{tr}\,\Lambda$", "tr Λ"),
        ("$Σ^{-1}$", "Σ<sup>−1</sup>"),
        ("$x^12$", "<i>x</i><sup>1</sup>2"),
        (r"$1/\sqrt{n + 1}$", "1/√(<i>n</i> + 1)"),
        (r"$T \to \infty$", "<i>T</i> → ∞"),
        (r"$\unknown x$", "unknown <i>x</i>"),
        ("costs 5 $ <b>", "costs 5 $ &lt;b&gt;"),
        ("$<script>$", " &lt; <i>script</i> &gt; "),
        ("$x^$ $_$ ${$ $}$ $\\frac$", "<i>x</i><sup></sup> <sub></sub>   /"),
    ],
)
def test_formulas_in_letters(text, html):
    assert tex_to_html(text) == html


def test_labels_are_read_aloud_without_markup():
    assert tex_to_text(r"loss of $W^{KQ}$ < 1 & $x_t$") == "loss of W^KQ < 1 & x_t"


def test_every_command_that_figures_use_is_known():
    used = set()
    for room in ("papers", "report", "probes"):
        for path in (SOURCES / room).rglob("*.py"):
            for line in path.read_text(encoding="utf-8").splitlines():
                if "label" in line or "title" in line:
                    used |= {formula for formula in re.findall(r"\$([^$`]+)\$", line) if "\\" in formula}
    assert len(used) > 10
    for formula in used:
        shown = tex_to_html(f"${formula.replace(chr(92) * 2, chr(92))}$")
        words = re.findall(r"[A-Za-z]{3,}", re.sub(r"<i>.*?</i>|</?su[bp]>", "", shown))
        assert set(words) <= {"max", "min", "tr", "Re"}, f"{formula} is shown as {shown}"
        assert tex(f"${formula.replace(chr(92) * 2, chr(92))}$").startswith("$"), formula
