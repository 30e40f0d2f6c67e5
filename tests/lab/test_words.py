"""Sentences of the page."""

import re

import pytest

from mesascope.lab._words import conclusions, typeset
from mesascope.papers import claims


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("κ1 = 3, κ2 = 15", "κ<sub>1</sub> = 3, κ<sub>2</sub> = 15"),
        ("E[x_j^2] − E[x_12^4]²", "E[x<sub>j</sub><sup>2</sup>] − E[x<sub>12</sub><sup>4</sup>]²"),
        ("|x_j| ≠ Σ_{r≠j} x_r", "|x<sub>j</sub>| ≠ Σ<sub>r≠j</sub> x<sub>r</sub>"),
        ("products a_j b_j", "products a<sub>j</sub> b<sub>j</sub>"),
        ("W^KQ, ∂L/∂W^PV, W_Q", "W<sup>KQ</sup>, ∂L/∂W<sup>PV</sup>, W<sub>Q</sub>"),
        (
            "‖Σ^{1/2}AΣ^{1/2}‖, λ_max, L_∞",
            "‖Σ<sup>1/2</sup>AΣ<sup>1/2</sup>‖, λ<sub>max</sub>, L<sub>∞</sub>",
        ),
        ("(1/κ)^(2^k), e^−β, 10^-4", "(1/κ)<sup>2<sup>k</sup></sup>, e<sup>−β</sup>, 10<sup>-4</sup>"),
        ("1/‖Λ²‖_F", "1/‖Λ²‖<sub>F</sub>"),
        ("p_{T−1}²‖C‖², wᵀx_q", "p<sub>T−1</sub>²‖C‖², wᵀx<sub>q</sub>"),
        ("raise max_steps, x_max", "raise max_steps, x_max"),
        ("E x^6 < <b>1</b> & 2", "E x<sup>6</sup> &lt; &lt;b&gt;1&lt;/b&gt; &amp; 2"),
    ],
)
def test_signs_stand_below_and_above_their_letters(written, shown):
    assert typeset(written) == shown


GAUSSIAN = {
    "limit": (0.19, "0.19"),
    "gap": (0.4, "2/5"),
    "ratio": (0.2, "1/5"),
    "moments": {"m2": (1.0, "1"), "kappa1": (3.0, "3"), "kappa2": (15.0, "15")},
    "theorem": "Theorem 4.1",
    "normalizer": "t-1",
}


@pytest.mark.parametrize(
    ("changes", "first"),
    [
        ({}, "ab → 0.19: κ₁ divided by κ₂ and what κ₃ adds at this horizon (Theorem 4.1)."),
        ({"theorem": "Theorem 4.3"}, "at this horizon (Theorem 4.3)."),
        (
            {"normalizer": "t"},
            "ab → 0.19, times (t − 1)/t with this normalizer (as Theorem 4.1, which has t − 1).",
        ),
        ({"gap": (None, "steps grow")}, "ab → 0.19."),
        (
            {"limit": (None, "E[x_j x_r] is not 0")},
            "says nothing about where training ends: E[x_j x_r] is not 0.",
        ),
    ],
)
def test_what_follows_is_reported_of_the_mask_and_the_normalizer(changes, first):
    line, *_ = conclusions(GAUSSIAN | changes)
    assert line.endswith(first)


def test_no_claim_shows_a_sign_of_notation():
    """The marks _ ^ { } stand for scripts in titles, statements and criteria; names of programs keep theirs."""
    for one in claims():
        for text in (one.title, one.statement, one.criterion):
            shown = re.sub(r"`[^`]*`|<su[bp]>|</su[bp]>|\w{2,}_\w+|\{[^{}^_]*,[^{}^_]*\}", "", typeset(text))
            assert not re.search(r"[\^{}]|_", shown), (one.id, shown)
