"""Formulas as letters, subscripts and superscripts."""

import re
from pathlib import Path

import pytest

from mesascope.report._latex import tex
from mesascope.report._tex import tex_to_html, tex_to_text
from mesascope.specs import families, field_help, known_kinds, summary

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


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("$x_{t+1} = W x_t$", "x_{t+1} = Wx_t"),
        (r"$\sum_{i=1}^{t-1} x_i^2$", "Σ_{i=1}^{t−1}x_i^2"),
        (r"$e^{-x_{j+1}^2}$, $a_{ij}$, $w_{1,2}$", "e^{−x_{j+1}^2}, a_ij, w_{1,2}"),
        (r"$\theta' = -\nabla L$, $A^\top$, $\Sigma^{-1}$", "θ' = −∇L, A^⊤, Σ^{−1}"),
        (r"$A \tanh(B x_t)$", "A tanh (Bx_t)"),
        (r"$[0, \sigma_{\max}]$", "[0,σ_max]"),
        (r"$P_{i<j}$ if $i < j$", "P_{i<j} if i < j"),
        (
            r"the scale $> 0$, density $\propto e^{-x^2}$, $x = \pm c$",
            "the scale > 0, density ∝ e^{−x^2}, x = ± c",
        ),
    ],
)
def test_scripts_of_more_than_a_word_keep_their_braces(text, plain):
    assert tex_to_text(text) == plain


def test_no_kind_says_in_plain_words_what_it_does_not_mean():
    texts = [
        tex_to_text(text)
        for family in families()
        for kind in known_kinds(family).values()
        for text in (summary(kind), *(one.text for one in field_help(kind)))
    ]
    assert any("x_{t+1}" in text for text in texts)
    # a script that ends before its sum does: x_t + 1 for x_{t+1}; written by hand it would be 1 + x_t
    assert [text for text in texts if re.search(r"[_^]\w [+−] 1\b", text)] == []


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
        assert set(words) <= {"max", "min", "log", "tr", "Re"}, f"{formula} is shown as {shown}"
        assert tex(f"${formula.replace(chr(92) * 2, chr(92))}$").startswith("$"), formula
