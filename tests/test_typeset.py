"""Formulas in plain text become LaTeX, and prose stays prose."""

from pathlib import Path

import pytest
from typeset import typeset

DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.parametrize(
    ("plain", "shown"),
    [
        (
            "follow x_{t+1} = W x_t with W = diag(λ),",
            r"follow $x_{t+1} = W x_{t}$ with $W = \operatorname{diag}(λ)$,",
        ),
        ("the limit c*/(t−1) of a_j b_j", "the limit $c^{*}/(t-1)$ of $a_{j} b_{j}$"),
        ("(W^KQ, W^PV) → (s W^KQ, W^PV/s)", r"$(W^{KQ}, W^{PV}) \to (s W^{KQ}, W^{PV}/s)$"),
        ("is E x² − (E x⁴)²/E x⁶.", "is $E x^{2} - (E x^{4})^{2}/E x^{6}$."),
        ("S = Σ x_i x_iᵀ", r"$S = \sum x_{i} x_{i}^{\top}$"),
        ("w ~ N(0, Σ⁻¹)", r"$w \sim N(0, Σ^{-1})$"),
        ("an error (1 − 1/κ)^(2^k)", "an error $(1 - 1/κ)^{2^{k}}$"),
        ("with x̂_{T+1} and ‖f − g‖²", r"with $\hat{x}_{T+1}$ and $\Vert f - g\Vert ^{2}$"),
        ("is 1/(ν + √(νμ) + μ)", r"is $1/(ν + \sqrt{νμ} + μ)$"),
        ("d = 5, T = 100", "$d = 5$, $T = 100$"),
        ("(see λ)", "(see $λ$)"),
        ("a λ of its own", "a $λ$ of its own"),
        ("which A minimize. A layer", "which $A$ minimize. A layer"),
        ("x_i\nx_j", "$x_{i} x_{j}$"),
        (
            "N(0, scale²), tr Λ and max_steps",
            r"$N(0, \mathrm{scale}^{2})$, $\operatorname{tr} Λ$ and max_steps",
        ),
        ("W LayerNorm(z_t) + b", r"$W \operatorname{LayerNorm}(z_{t}) + b$"),
        ("$a\n- b$", "$a - b$"),
    ],
)
def test_formulas_are_typeset(plain, shown):
    assert typeset(plain) == shown


@pytest.mark.parametrize(
    "text",
    [
        "a step of 9 h, 33.8 s on two cores; 1.2e-3 and 5 of 8",
        "GPT-2, Figure 1a, arXiv v1, Student's t-test, Ctrl-C, e.g. this",
        "`x_t` and $x_t$ and [it](y_t.md) and <!--small x_t--> and ![x_t](a.png)",
        "```python\nx_t = W x_t\n```",
        "```sh\nx_t = 1\n```\n",
        "# A title with x_t\n",
        ":::{py:function} f(x_t)\n:::",
        "[0.99, 0.109] → 0.2, 1 / 2 / 3",
        "*emphasis* and **bold** and snake_case and __init__",
    ],
)
def test_everything_else_stays(text):
    assert typeset(text) == text


@pytest.mark.parametrize(
    "page", sorted(DOCS.rglob("*.md")), ids=lambda page: page.relative_to(DOCS).as_posix()
)
def test_what_is_typeset_is_not_typeset_again(page):
    if "_build" in page.parts:
        pytest.skip("built")
    once = typeset(page.read_text(encoding="utf-8"))
    assert typeset(once) == once
