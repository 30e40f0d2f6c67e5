"""Plateaus and formula of a setting: what a worker computes, and the fold-out in a browser."""

import re

import pytest

import mesascope as ms
from lab_page import SMALL, open_at, turn, wait_for_text
from mesascope.lab._compute_landscape import derivation, saddles
from mesascope.lab._setting import from_query

# so small a start waits at the saddle 0 before it falls to its end
AT_SADDLE = SMALL.removeprefix("?").replace("init.a=0.5&init.b=0.2", "init.a=1e-3&init.b=1e-3")


def silent(text, *points):
    pass


def limit(query):
    return float(ms.theory.zheng2024.limit_product(*from_query(query).data()))


def test_the_formula_is_typeset_and_has_the_limit_of_the_theory():
    found = derivation(from_query(AT_SADDLE), silent)
    assert list(found["symbols"]) == list(found["numbers"]) == ["L", "a*b"]
    assert "<mfrac>" in found["symbols"]["L"] and "<munderover>" in found["symbols"]["a*b"]
    assert f"<mn>{limit(AT_SADDLE):.5g}</mn>" in found["numbers"]["a*b"]
    assert found["values"] == {"d": "2", "T": "6", "m_2": "1", "m_4": "3", "m_6": "15"}


@pytest.mark.slow
def test_a_flow_from_a_small_start_passes_the_saddle_at_zero():
    found = saddles(from_query(AT_SADDLE), silent)
    first, last = found["table"]
    assert first["loss"] > last["loss"] and first["order"] == 2
    # the linearization leaves out the growth of what is left behind: a part in log(1/ε)
    assert first["predicted"] == pytest.approx(first["leaves"], rel=0.1)
    assert found["figure"].panels[0].title == "2 critical points"


@pytest.mark.slow
def test_the_fold_out_shows_both(opened, lab):
    open_at(opened, lab, AT_SADDLE)
    turn(opened, "Training")
    opened.get_by_text("Plateaus of this flow, and its loss as a formula").click()
    opened.get_by_role("button", name="Find the plateaus").click()
    wait_for_text(opened.locator('[data-fact="plateaus"]'), "predicted", 120)
    opened.locator('[data-figure="plateaus"] .cartesianlayer .subplot').wait_for(state="attached")
    opened.get_by_role("button", name="Derive the formula").click()
    wait_for_text(opened.locator('[data-fact="formula"]'), re.escape(f"{limit(AT_SADDLE):.5g}"))
    assert opened.locator('[data-fact="formula"] math').count() == 4
    opened.locator('[data-act="landscape"]').scroll_into_view_if_needed()
    open_at(opened, lab, SMALL)
