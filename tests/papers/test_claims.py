"""The contract of claims, and that a claim can fail."""

import pytest

from mesascope.papers import claims
from mesascope.papers._claim import UnsettledError
from mesascope.papers.zheng2024 import _capability, _descent, _full_one, _reviews, _theorem_41
from mesascope.records import canonical_json


def test_every_numbered_statement_and_every_rebuttal_addition_has_its_claim():
    assert {claim.id.removeprefix("zheng2024/") for claim in claims("zheng2024")} >= {
        *(f"theorem-4.1-{law}" for law in ("gaussian", "one-hot", "rademacher", "uniform")),
        *(
            "assumption-4.1",
            "proposition-4.1",
            "proposition-4.2",
            "theorem-4.2",
            "example-4.1",
            "theorem-4.3",
        ),
        *(
            "conservation",
            "trajectory",
            "one-product",
            "standard-initialization",
            "small-contexts",
            "full-one-limit",
        ),
        *("authors-descent", "figure-1a", "figure-1b", "figure-1c", "last-term-only"),
    }
    assert {claim.origin for claim in claims("zheng2024")} == {"paper", "review", "ours"}


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


SMALL_CASE = {"law": "gaussian", "starts": [[0.1, 0.1]], "cases": [[2, 6, 1.0]], "tolerance": 1e-8}
PATH = {"law": "gaussian", "dim": 2, "horizon": 6, "starts": [[0.1, 0.1], [0.5, 1.5]], "tolerance": 1e-7}
SMOKE = {
    "limit": (_theorem_41._limit, SMALL_CASE),
    "conserved": (_theorem_41._conserved, PATH),
    "trajectory": (_theorem_41._trajectory, PATH),
    "one product": (_theorem_41._one_product, {**PATH, "distinct": 0.01}),
    "standard start": (
        _theorem_41._standard_start,
        {
            "law": "gaussian",
            "dim": 2,
            "horizon": 6,
            "scales": [0.1],
            "starts_per_scale": 2,
            "seed": 0,
            "rest": 1e-9,
            "max_steps": 100_000,
            "tolerance": 1e-8,
            "off_diagonal_tolerance": 1e-3,
        },
    ),
    "expected ratio": (
        _capability._expected_ratio,
        {"scale": 1.0, "dim": 2, "horizons": [10, 10**6], "tolerance": 2e-5, "flow_tolerance": 1e-8},
    ),
    "sampled ratio": (
        _capability._sampled_ratio,
        {
            "scale": 1.0,
            "dim": 2,
            "horizon": 10,
            "context_lengths": [2, 9],
            "samples": 4000,
            "seed": 0,
            "tolerance": 4.0,
        },
    ),
    "gap": (
        _capability._gap,
        {"dim": 2, "horizons": [10**5, 10**7], "without_gap": ["rademacher", "one-hot"], "tolerance": 1e-5},
    ),
    "moments": (_capability._moments, {"dim": 2, "horizon": 6, "lacking": [[4, 4], [6, 6], [7, None]]}),
    "unmasked": (
        _full_one._unmasked,
        {
            "dim": 5,
            "horizon": 100,
            "starts": [[0.1, 0.1], [2.0, 2.0]],
            "learning_rate": 5e-4,
            "epochs": 20,
            "expected_loss": 38.17957874025589,
            "tolerance": 1e-9,
        },
    ),
    "one hot": (_capability._one_hot, {"dim": 2, "horizon": 6, "scales": [0.5, 1.0], "tolerance": 1e-12}),
    "masked": (_full_one._masked, {"cases": [[2, 6]], "starts": [[0.1, 0.1]], "tolerance": 1e-8}),
    "not critical": (_full_one._not_critical, {"dim": 3, "horizon": 20, "threshold": 0.1}),
    "last term": (
        _reviews._last_only,
        {
            "law": "gaussian",
            "dim": 2,
            "horizon": 20,
            "start": [0.1, 0.1],
            "tolerance": 1e-8,
            "time_tolerance": 0.01,
        },
    ),
    "curves": (
        _descent._curves,
        {
            "law": "one-hot",
            "dim": 2,
            "horizon": 10,
            "starts": [[0.5, 1.5]],
            "schedules": [[1.0, 0.05, 60]],
            "samples": 50,
            "sampled": [1.0],
            "seed": 1,
            "figure": "figure-1c",
            "risk_figure": "figure-1d",
            "distance": 0.05,
            "risk_left": 0.01,
            "tolerance": 1e-9,
        },
    ),
}


@pytest.mark.parametrize("name", SMOKE)
def test_checks_verify_at_smoke_size(name):
    check, settings = SMOKE[name]
    finding = check(settings)
    assert finding.verdict == "verified", finding.details
    canonical_json({"measured": finding.measured, "expected": finding.expected, "details": finding.details})


@pytest.fixture
def wrong_engine(monkeypatch):
    """An exact engine whose cross term is 1 % too large: every limit moves by a percent."""
    from mesascope.objectives import _exact

    right = _exact.schedule_features
    monkeypatch.setattr(
        _exact,
        "schedule_features",
        lambda task, normalizer, power: right(task, normalizer, power) * (1.01 if power == 1 else 1),
    )
    _exact._exact_objective.cache_clear()
    yield
    monkeypatch.undo()
    _exact._exact_objective.cache_clear()


@pytest.mark.parametrize(
    "name",
    [
        "limit",
        "trajectory",
        "standard start",
        "expected ratio",
        "gap",
        "one hot",
        "masked",
        "unmasked",
        "curves",
        "last term",
    ],
)
def test_a_wrong_loss_refutes(name, wrong_engine):
    check, settings = SMOKE[name]
    assert check(settings).verdict == "refuted"


@pytest.fixture
def wrong_gradient(monkeypatch):
    """A flow whose W^KQ part runs twice as fast: same limits for the product, other invariants and paths."""
    from mesascope.dynamics import _flow

    right = _flow.masked_gradient

    def skewed(objective, rebuild, allowed):
        gradient = right(objective, rebuild, allowed)

        def field(vector):
            half = 2 * vector.size // 3  # W^KQ has 4d² of the 6d² weights
            slope = gradient(vector)
            return slope.at[:half].multiply(2.0)

        return field

    import jax

    monkeypatch.setattr(_flow, "masked_gradient", skewed)
    jax.clear_caches()
    yield
    monkeypatch.undo()
    jax.clear_caches()


@pytest.mark.parametrize("name", ["conserved", "trajectory"])
def test_a_wrong_gradient_refutes(name, wrong_gradient):
    check, settings = SMOKE[name]
    assert check(settings).verdict == "refuted"


def test_other_wrong_worlds_refute(monkeypatch):
    # predictions 5 % too large
    from mesascope.models import LinearAttention

    right = LinearAttention.predictions
    with monkeypatch.context() as patch:
        patch.setattr(LinearAttention, "predictions", lambda self, tokens: 1.05 * right(self, tokens))
        check, settings = SMOKE["sampled ratio"]
        assert check({**settings, "samples": 40_000}).verdict == "refuted"
    # a token for which the masked limit is critical: then nothing is left of Proposition 4.2
    from mesascope.processes import Rademacher

    with monkeypatch.context() as patch:
        patch.setattr(_full_one, "Constant", Rademacher)
        check, settings = SMOKE["not critical"]
        assert check(settings).verdict == "refuted"
    # starts that are the same start: one product, but nothing that differs
    check, settings = SMOKE["one product"]
    assert check({**settings, "starts": [[0.1, 0.1], [0.1, 0.1]]}).verdict == "refuted"
    # a law that has the moment it is said to lack, and one that lacks what it is said to have
    check, settings = SMOKE["moments"]
    assert check({**settings, "lacking": [[7, 6]]}).verdict == "refuted"
    assert check({**settings, "lacking": [[6, None]]}).verdict == "refuted"
    # a schedule that is far too short
    check, settings = SMOKE["curves"]
    assert check({**settings, "schedules": [[1.0, 0.05, 2]]}).verdict == "refuted"


def test_a_run_that_does_not_finish_is_no_refutation():
    check, settings = SMOKE["standard start"]
    with pytest.raises(UnsettledError, match="step limit"):
        check({**settings, "max_steps": 3})


def test_an_interrupted_flow_is_not_judged(monkeypatch):
    from mesascope.dynamics import _flow

    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(_flow, "_segment", interrupted)
    for name in ("limit", "trajectory", "conserved", "one product", "last term", "masked", "one hot"):
        check, settings = SMOKE[name]
        with pytest.raises(KeyboardInterrupt):
            check(settings)


def test_the_authors_numbers_would_be_missed_if_they_were_others():
    settings = {
        "learning_rate": 1e-4,
        "epochs": [4, 8],
        "printed": [0.0124260, 0.0153935],
        "authors_samples": 10_000,
        "samples": 250,
        "replicas": 6,
        "seed": 1,
        "tolerance": 6.0,  # six replicas know the spread to a third only
    }
    assert _descent._printed(settings).verdict == "verified"
    assert _descent._printed({**settings, "printed": [0.0132, 0.0170]}).verdict == "refuted"
