"""Laws that break properties: what a search finds, and that a certificate stands without the search and its code."""

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import mesascope as ms
from laurent_loss import independent, laurent_loss, with_signs
from mesascope.dynamics import check_counterexample
from mesascope.dynamics.counterexamples import FAMILIES, PROPERTIES, Counterexample, Setting
from mesascope.theory import zheng2024

CYCLE = ((0, 3, 4, 3),)
SHIFTS = [(0, 3, 4, 3), (3, 4, 3, 0), (4, 3, 0, 3), (3, 0, 3, 4)]


def broken(name, setting, seed=0):
    """The counterexample that a property proposes for a setting."""
    witness, _ = PROPERTIES[name].propose(setting, np.random.default_rng(seed))
    return Counterexample(name, setting, witness, PROPERTIES[name].decide(setting, witness), seed, 0)


def shifted():
    return Setting(FAMILIES["cyclic"].law(CYCLE), 4, 3, "t-1")


def tables(theta, dim):
    w_kq = [theta[2 * dim * n : 2 * dim * (n + 1)] for n in range(2 * dim)]
    w_pv = [theta[4 * dim**2 + 2 * dim * n : 4 * dim**2 + 2 * dim * (n + 1)] for n in range(dim)]
    return w_kq, w_pv


@pytest.mark.slow
def test_a_search_finds_shifted_tokens_below_the_limit():
    search = ms.counterexample("diagonal-optimum", laws=["cyclic"], dims=[4], horizons=[3])
    found = search.found
    assert found.check() == found.quantity < 0
    assert zheng2024.satisfies_assumption_41(found.setting.law, 4)
    again = ms.counterexample("diagonal-optimum", laws=["cyclic"], dims=[4], horizons=[3])
    assert again.found.setting == found.setting and again.tried == search.tried


def test_the_lower_loss_is_that_of_an_oracle():
    found = broken("diagonal-optimum", shifted())
    setting = found.setting
    below, limit = (
        laurent_loss(with_signs(SHIFTS), 3, *tables(theta, 4), lambda t: t - 1)
        for theta in (setting.diagonal(found.witness), setting.point)
    )
    assert below - limit == found.quantity < 0
    assert limit == zheng2024.limit_loss(setting.process, setting.task)


@pytest.mark.parametrize("name", ["limit-is-minimum", "flow-returns"])
def test_the_limit_of_shifted_tokens_is_a_saddle(name):
    found = broken(name, shifted())
    assert not any(found.setting.gradient) and found.check() < 0
    start = found.setting.point if name == "limit-is-minimum" else [0] * 96
    moved = [Fraction(p) + v / (100 if any(start) else 1) for p, v in zip(start, found.witness, strict=True)]
    assert laurent_loss(with_signs(SHIFTS), 3, *tables(moved, 4), lambda t: t - 1) < found.setting.limit_loss


@pytest.mark.slow
def test_floating_point_agrees_that_the_start_is_below_the_limit():
    found = broken("flow-returns", shifted())
    losses = []
    for theta in (found.witness, found.setting.point):
        w_kq, w_pv = (np.array(table, float) for table in tables(theta, 4))
        losses.append(float(ms.population_loss(ms.LinearAttention(w_kq, w_pv), found.process, found.task)))
    # differences of the loss are exact to 1e-13 of it, and this one is 1e-6 of it
    assert losses[0] - losses[1] == pytest.approx(float(found.quantity), rel=1e-5)


@pytest.mark.slow
def test_the_gap_of_assumption_4_1_is_found():
    found = ms.counterexample("limit-is-critical", laws=["independent"], dims=[2], horizons=[4]).found
    samples = found.setting.law.samples.table.ravel()
    assert set(samples.tolist()) <= {2.0, -1.0} and samples.sum() == 0  # the law of zheng2024/skewed-tokens
    place, theta = int(found.witness[0]), list(found.setting.point)
    atoms, step = independent(samples.astype(int).tolist(), 2), Fraction(1, 10**6)
    losses = []
    for sign in (1, -1):
        moved = [one + sign * step * (n == place) for n, one in enumerate(theta)]
        losses.append(laurent_loss(atoms, found.setting.horizon, *tables(moved, 2), lambda t: t - 1))
    # the loss is quadratic in W^KQ and in W^PV each: central differences are exact
    assert -abs(losses[0] - losses[1]) / (2 * step) == found.quantity


def test_one_hot_tokens_divided_by_t_have_a_risk_that_rises():
    setting = Setting(ms.Sparse(1), 3, 10, "t")
    found = broken("monotone-risk", setting)
    c, t = setting.product, int(found.witness[0])
    risks = [((c * Fraction(n - 1, n) - 1) ** 2) / 2 for n in (t, t + 1)]  # d/2 E x² (c r_t − 1)², E x² = 1/d
    assert found.quantity == risks[0] - risks[1] < 0


@pytest.mark.slow
def test_what_the_page_proves_is_not_found_otherwise():
    for name, laws, rho in (("monotone-risk", None, ["t-1"]), ("diagonal-optimum", ["exchangeable"], None)):
        search = ms.counterexample(name, laws=laws, normalizers=rho, dims=[2, 3], starts=4)
        assert search.found is None and "that is no proof of it" in repr(search) and search.tried > 40


def test_lower_weights_of_independent_skewed_tokens():
    found = broken("one-gradient-step", Setting(FAMILIES["independent"].law(((1,), (0,), (0,))), 2, 3, "t-1"))
    assert found.check() < 0


def test_a_record_is_checked_without_the_search():
    found = broken("limit-is-critical", Setting(ms.Moments([1, 0, 2, 2, 6, 10, 22]), 2, 5, "t-1"))
    record = json.loads(json.dumps(found.record()))
    assert check_counterexample(record) == found
    assert ms.counterexample("limit-is-critical", laws=found.setting.law, dims=[2], horizons=[5]).found
    for field, value, message in (
        ("quantity", "-1/3", "this is no proof"),
        ("witness", ["0"], "this is no proof"),
        ("witness", ["1", "2"], "must be 1 numbers"),
        ("property", "limit-is-critica", "did you mean 'limit-is-critical'"),
        ("format", "1", "format"),
        (
            "spec",
            {**record["spec"], "law": {"kind": "moments", "moments": [1, 0, 1, 0, "1/2", 0, 15]}},
            "spec.law",
        ),
        ("spec", {"dim": 2}, "spec.law"),
    ):
        with pytest.raises(ValueError, match=message):
            check_counterexample({**record, field: value})


def test_what_is_not_negative_is_no_counterexample():
    found = broken("limit-is-critical", Setting(ms.Gaussian(1), 2, 3, "t-1"))
    with pytest.raises(ValueError, match="this is no proof"):
        replace(found, quantity=Fraction(0)).check()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"property": "limit"}, "unknown property 'limit'"),
        ({"laws": ["cyclc"]}, "unknown law 'cyclc'; did you mean 'cyclic'?"),
        ({"laws": []}, "laws: must not be empty"),
        ({"normalizers": ["t+1"]}, "unknown normalizer"),
        ({"dims": [7]}, "dims: must be at most 6"),
        ({"dims": []}, "must not be empty"),
        ({"horizons": [2]}, "horizons must be at least 3"),
        ({"starts": 0}, "starts must be at least 1"),
        ({"laws": ms.StudentT(5)}, "E x"),
        ({"laws": ms.Constant(0)}, "always 0"),
    ],
)
def test_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        ms.counterexample(**{"property": "limit-is-critical", **arguments})


@pytest.mark.parametrize("names", [{"laws": 0}, {"laws": "cyclic"}, {"normalizers": "t-1"}])
def test_one_name_is_no_list(names):
    with pytest.raises(TypeError, match="must be a list of names"):
        ms.counterexample("limit-is-critical", **names)
