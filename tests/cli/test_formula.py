"""`mesascope formula`: the loss in symbols, with the numbers of a specification."""

from fractions import Fraction

import pytest
import sympy

import mesascope as ms
from mesascope.theory import zheng2024

SPEC = {"law": "laplace", "dim": 3, "horizon": 9}


def test_one_object(run, spec):
    found = run("formula", spec(SPEC), "--json").json
    assert found["weights"] == ["a", "b"] and found["values"]["m_6"] == "720"
    process, task = ms.DiagonalUnitary(ms.Laplace(1), 3), ms.NextToken(9)
    critical = found["critical_products"]["a*b"]
    assert Fraction(critical["numbers"]) == zheng2024.limit_product(process, task)
    loss = sympy.sympify(found["loss"]["numbers"]).subs({"a": 1, "b": critical["numbers"]})
    assert Fraction(str(loss)) == zheng2024.limit_loss(process, task)
    numbers = (
        sympy.sympify(found["loss"]["sympy"]).subs({"d": 3, "T": 9, "m_2": 2, "m_4": 24, "m_6": 720}).doit()
    )
    assert numbers.expand() == sympy.sympify(found["loss"]["numbers"])
    assert len(found["contractions"]) == len(ms.objectives.contractions(process, task))


@pytest.mark.slow
def test_for_people(run, spec):
    data = {**SPEC, "w_kq": [[0, 0], ["a", "c"]]}
    lines = run("formula", spec(data)).out.splitlines()
    assert lines[0].startswith("L = ") and lines[1].startswith("  = ") and "m_4 = 24" in lines
    longer = run("formula", spec({**SPEC, "rho": "t"}), "--contractions").out.splitlines()
    assert any("sum_{i,j} A00[i,i] K10[j,j] K10[j,j]" in line for line in longer)
    assert any(line.startswith("a*b = ") for line in longer)


def test_long_numbers_are_rounded(run, spec):
    found = run("formula", spec({**SPEC, "horizon": 5000}), "--json").json
    limit = float(zheng2024.limit_product(ms.DiagonalUnitary(ms.Laplace(1), 3), ms.NextToken(5000)))
    # the theorem sums so many terms in floating point
    assert float(found["critical_products"]["a*b"]["numbers"]) == pytest.approx(limit, rel=1e-12)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"w_kq": [[0, 0], ["d", 0]]}, "w_kq[1][0]: 'd' has a meaning in the formula"),
        ({"w_pv": "b"}, "w_pv: must be a list of rows"),
        ({"law": {"kind": "studentt", "df": 5}}, "law: "),
        ({"engine": "enumeration"}, "engine: a formula is exact; leave it out"),
        ({"horizon": 10**6}, "horizon: rational numbers grow with it"),
    ],
)
def test_refused(run, spec, fields, message):
    assert f"spec.json: {message}" in run("formula", spec({**SPEC, **fields})).refusal
