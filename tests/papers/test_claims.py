"""Which claims zheng2024 has, how claims are selected, and runs that do not finish."""

from dataclasses import replace

import pytest
from claim_cases import cases_of

from mesascope.papers import claims
from mesascope.papers._claim import UnsettledError


def checked(name, **changed):
    """The finding on a claim at small size."""
    (claim,) = claims(f"zheng2024/{name}")
    return claim.check(replace(claim.settings["small"], **cases_of("zheng2024")[claim.id].smoke | changed))


def test_every_numbered_statement_and_every_rebuttal_addition_has_its_claim():
    names = """
        theorem-4.1 assumption-4.1 proposition-4.1 proposition-4.2 theorem-4.2 example-4.1 theorem-4.3
        conservation trajectory one-product standard-initialization full-one-limit
        authors-descent figure-1a figure-1b figure-1c last-term-only
    """
    assert {claim.id.removeprefix("zheng2024/") for claim in claims("zheng2024")} >= set(names.split())
    assert {claim.origin for claim in claims("zheng2024")} == {
        *("paper, second-hand", "authors' code", "review", "ours")  # the paper's text was not read
    }
    for name in ("factored-weights", "other-normalizers", "other-starts", "several-layers", "softmax"):
        assert claims(f"zheng2024/{name}")[0].origin == "review"


def test_selection():
    assert claims("zheng2024/theorem-4.2")[0].id == "zheng2024/theorem-4.2"
    assert claims("zheng2024", "zheng2024/theorem-4.2") == claims("zheng2024")
    with pytest.raises(ValueError, match="did you mean 'zheng2024'"):
        claims("zheng2042")
    with pytest.raises(ValueError, match="did you mean 'zheng2024'"):
        claims("ZHENG2024")
    with pytest.raises(ValueError, match=r"did you mean 'zheng2024/theorem-4\.2'"):
        claims("zheng2024/teorem-4.2")
    with pytest.raises(ValueError, match="did you mean 'zheng2024/conservation'"):
        claims("conservatoin")
    with pytest.raises(ValueError, match="paper '' is unknown; papers: ahn2023, "):
        claims("")


def test_a_run_that_does_not_finish_is_no_refutation():
    with pytest.raises(UnsettledError, match="step limit"):
        checked("standard-initialization", max_steps=3)


def test_an_interrupted_flow_is_not_judged(monkeypatch):
    from mesascope.dynamics import _flow

    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(_flow, "_segment", interrupted)
    names = "theorem-4.1 trajectory conservation one-product last-term-only theorem-4.3 example-4.1"
    for name in names.split():
        with pytest.raises(KeyboardInterrupt):
            checked(name)


@pytest.mark.parametrize("claim", claims(), ids=lambda claim: claim.id)
def test_what_was_not_run_is_said_of_papers_at_smaller_settings_and_with_the_cost(claim):
    elsewhere = ("measured, reduced", "measured, another model")
    for preset in ("small", "full"):
        said = claim.not_run(preset)
        smaller = claim.origin != "ours" and claim.evidence_of(preset) in elsewhere
        assert ("not run at the paper's setting" in said) == smaller
        if smaller and not claim.one_size and claim.evidence_of("full") in elsewhere:
            assert claim.papers_setting and f"paper's setting ({claim.papers_setting})" in said
        assert ("the full preset was not run" in said) == bool(
            claim.cost and preset == "small" and not claim.one_size
        )
    assert claim.cost or not smaller
    assert claim.cost in claim.not_run("small")
    assert claim.not_run(None) == claim.not_run("small")
