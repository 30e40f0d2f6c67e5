"""The search for a law that breaks the theory: what a worker computes, and the fold-out in a browser."""

import pytest

import mesascope as ms
from lab_page import SMALL, open_at, turn, wait_for_text
from mesascope.dynamics.counterexamples import PROPERTIES
from mesascope.lab._compute_counterexample import broken, properties
from mesascope.lab._counterexample_panel import _address
from mesascope.lab._setting import from_query


def silent(text, *points):
    pass


def test_every_property_is_offered_with_its_statement():
    assert properties(silent) == {name: stated.statement for name, stated in PROPERTIES.items()}


@pytest.mark.slow
def test_the_setting_that_is_found_is_an_address_of_the_page():
    found = broken("limit-is-critical", silent)
    spec = from_query(_address(found["setting"]).partition("?")[2])
    again = ms.counterexample("limit-is-critical", laws=spec.law, dims=[spec.dim], horizons=[spec.horizon])
    assert again.found is not None
    assert found["table"]["quantity"] == again.found._printed()[1]["quantity"]


@pytest.mark.slow
def test_the_fold_out_finds_a_law_and_opens_it(opened, lab):
    open_at(opened, lab, SMALL)
    turn(opened, "Data")
    opened.get_by_text("Search for a law that breaks the theory").click()
    wait_for_text(opened.locator('[data-act="counterexample"]'), "limit of Theorem 4.1 is a critical point")
    opened.get_by_role("button", name="Search", exact=True).click()
    wait_for_text(opened.locator('[data-fact="counterexample"]'), "quantity: ", 180)
    opened.get_by_role("link", name="Open this setting").click()
    opened.wait_for_function("location.search.includes('law.kind=')")
