"""The loss as a formula, compared with the paper's formulas, with quadrature, and with the rational polynomial."""

from fractions import Fraction

import numpy as np
import pytest
import sympy
from flint import fmpq

import mesascope as ms
from laurent_loss import independent, laurent_loss
from mesascope.objectives import loss_polynomial
from mesascope.theory import zheng2024

d, T, t, a, b = sympy.symbols("d T t a b")
LAWS = {
    "gaussian": ms.Gaussian("1/2"),
    "full-one": ms.Constant(1),
    "vector": ms.Constant(["1/2", -2]),
    "one-hot": ms.Sparse("3/2"),
    "mixture": ms.Mixture([("1/3", ms.Gaussian(1)), ("2/3", ms.Constant("1/2"))]),
    "skewed": ms.Moments([1, "1/10", 1, "1/5", 3, 0, 15]),
}
TASKS = {
    "all": (ms.NextToken(9), "t-1"),
    "shortest": (ms.NextToken(3), "1"),
    "last": (ms.NextToken.last(7), "t"),
    "weights": (ms.NextToken(8, {2: 1, 3: "2/5", 7: "1/3"}), "1"),
}
BLOCKS = ([["k_1", ["1/2", "k_2"]], ["k_3", ["1/3", 2]]], [[["p_1", "p_2"], -1]])


def equal(one, other):
    return sympy.simplify(one - other) == 0


def rationals(names, seed):
    rng = np.random.default_rng(seed)
    return {
        str(name): Fraction(int(n), 7)
        for name, n in zip(names, rng.integers(-9, 10, len(names)), strict=True)
    }


def matrix(blocks, values, dim):
    """A table of blocks as its entries."""
    rows = []
    for row in blocks:
        pairs = [block if isinstance(block, list) else [block, 0] for block in row]
        numbers = [[values[u] if u in values else Fraction(u) for u in pair] for pair in pairs]
        rows += [[u if i == j else v for u, v in numbers for j in range(dim)] for i in range(dim)]
    return rows


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("task", TASKS)
def test_on_the_diagonal_it_is_the_loss_of_the_paper(law, task):
    process, (task, normalizer) = ms.DiagonalUnitary(LAWS[law], 2), TASKS[task]
    found = ms.formula(process, task, normalizer=normalizer)
    weights = Fraction(2, 3), Fraction(-1, 5)
    expected = zheng2024.diagonal_loss(process, task, weights[0] * weights[1], normalizer=normalizer)
    assert found(a=weights[0], b=weights[1]) == expected
    ((product, critical),) = found.critical_products().items()
    alpha, beta = zheng2024.flow_coefficients(process, task, normalizer=normalizer)
    assert product == a * b and Fraction(str(found.numbers(critical))) == beta / alpha


def test_the_critical_point_is_theorem_4_1():
    m2, m4, m6, m42 = sympy.symbols("m_2 m_4 m_6 m_42")
    mean = sympy.Sum(1 / (t - 1), (t, 2, T - 1)) / (T - 2)
    for law, kappa3 in (("gaussian", (d - 1) * m2 * m4), ("mixture", (d - 1) * m42)):
        found = ms.formula(ms.DiagonalUnitary(LAWS[law], 3), ms.NextToken(9))
        (critical,) = found.critical_products().values()
        assert equal(critical, m4 / (m6 + kappa3 * mean))


def test_the_critical_point_of_full_one_tokens_is_theorem_4_3():
    found = ms.formula(ms.DiagonalUnitary(ms.Constant(1), 3), ms.NextToken(9))
    (critical,) = found.critical_products().values()
    mean = sympy.Sum(1 / (t - 1), (t, 2, T - 1)) / (T - 2)
    assert equal(critical.subs(found.moments), 1 / (1 + (d - 1) * mean))
    assert Fraction(str(found.numbers(critical))) == zheng2024.masked_full_one_limit(3, ms.NextToken(9))


def test_the_gradient_at_multiples_of_the_identity_stays_there():
    # by symmetry it is made of I and J in every block; docs/mathematics/derive-your-own-theorem.md has all of them
    off = ["k_0", "k_1", "k_2", "k_3", "p_0"]
    w_kq, w_pv = [[["k_0", "k_1"], 0], [["a", "k_2"], "k_3"]], [[["b", "p_0"], 0]]
    found = ms.formula(ms.DiagonalUnitary(LAWS["gaussian"], 3), ms.NextToken(9), w_kq, w_pv)
    zero = dict.fromkeys(off, 0)
    assert all(found.expression.diff(one).subs(zero) == 0 for one in off)


def test_the_gradient_at_multiples_of_the_identity_leaves_them_for_full_one_tokens():
    found = ms.formula(
        ms.DiagonalUnitary(ms.Constant(1), 3), ms.NextToken(9), [[0, 0], [["a", "c"], 0]], [["b", 0]]
    )
    assert found.expression.diff("c").subs("c", 0) != 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("law", "dim", "task"),
    [("vector", 2, "all"), ("skewed", 1, "last"), ("skewed", 2, "weights")],
)
def test_blocks_agree_with_quadrature_and_with_the_rational_polynomial(law, dim, task):
    process, (task, normalizer) = ms.DiagonalUnitary(LAWS[law], dim), TASKS[task]
    found = ms.formula(process, task, *BLOCKS, normalizer=normalizer)
    values = rationals(found.weights, seed=dim)
    exact = found(**values)
    w_kq, w_pv = (matrix(blocks, values, dim) for blocks in BLOCKS)
    theta = [fmpq(x.numerator, x.denominator) for row in (*w_kq, *w_pv) for x in row]
    assert str(exact) == str(loss_polynomial(process, task, normalizer).value(theta))
    model = ms.LinearAttention(np.array(w_kq, float), np.array(w_pv, float), normalizer)
    listed = ms.population_loss(model, process, task, ms.Enumeration()).value
    assert float(exact) == pytest.approx(float(listed), rel=1e-12)  # rounding of the quadrature


def test_numbers_as_entries_give_the_values_of_another_program(reference):
    process, task, case = reference
    found = ms.formula(process, task, case["w_kq"], case["w_pv"], normalizer=case["rho"])
    assert float(found()) == pytest.approx(case["loss"], rel=1e-12)  # rounding of the quadrature


@pytest.mark.slow
def test_entries_agree_with_the_rational_polynomial():
    w_kq = [[f"k_{i}{j}" for j in range(4)] for i in range(4)]
    w_pv = [[f"p_{i}{j}" if (i + j) % 2 else 0 for j in range(4)] for i in range(2)]
    process, task = ms.DiagonalUnitary(ms.Gaussian("1/2"), 2), ms.NextToken(9)
    found = ms.formula(process, task, w_kq, w_pv)
    values = rationals(found.weights, seed=3)
    entries = [Fraction(values.get(name, 0)) for row in (*w_kq, *w_pv) for name in row]
    theta = [fmpq(x.numerator, x.denominator) for x in entries]
    assert str(found(**values)) == str(loss_polynomial(process, task).value(theta))


def test_other_numbers_than_those_of_the_process():
    small, large = (ms.formula(ms.DiagonalUnitary(ms.Gaussian(1), n), ms.NextToken(3 * n)) for n in (1, 4))
    other = small.subs(d=4, T=12, m_2=1, m_4=3, m_6=15)
    assert sympy.expand(other - large.polynomial) == 0


def test_how_it_is_written():
    found = ms.formula(ms.DiagonalUnitary(ms.Sparse(1), 3), ms.NextToken(9))
    assert repr(found) == f"Formula({found.text})"
    assert found.text.startswith("L = ") and found.latex.startswith("L = ")
    assert found._repr_latex_().strip("$").endswith(found.latex)
    assert (
        sympy.sympify(found.text[4:], {str(s): s for s in found.expression.free_symbols}) == found.expression
    )


@pytest.mark.parametrize(
    ("w_kq", "w_pv", "message"),
    [
        ([[0, 0], ["T", 0]], [["b", 0]], r"w_kq\[1\]\[0\]: 'T' has a meaning in the formula"),
        ([[0, 0], ["m_2", 0]], [["b", 0]], r"w_kq\[1\]\[0\]: 'm_2' has a meaning"),
        ([[0, 0], ["I", 0]], [["b", 0]], r"w_kq\[1\]\[0\]: 'I' has a meaning in sympy or Python; rename it"),
        ([[0, 0], ["a", 0]], [["a", 0]], "w_pv: 'a' is also an entry of w_kq; rename"),
        ([[0, 0], ["a b", 0]], [["b", 0]], r"w_kq\[1\]\[0\]: 'a b' is neither a number nor a name such as"),
        ([[0, 0], [None, 0]], [["b", 0]], r"w_kq\[1\]\[0\]: must be a number, got none"),
        ([[0, 0], ["1/0", 0]], [["b", 0]], r"w_kq\[1\]\[0\]: '1/0' is not a rational number"),
        ([[0, 0], [["a", 1, 2], 0]], [["b", 0]], r"w_kq\[1\]\[0\]: must be u for u I"),
        ([[0, 0]], [["b", 0]], "w_kq: must have 2 × 2 blocks or 6 × 6 entries"),
        ("a", [["b", 0]], "w_kq: must be a list of rows"),
        ([[0, 0], ["a", 0]], [["b"] * 6] * 3, "w_pv: must have blocks if w_kq has blocks"),
    ],
)
def test_refused_weights(w_kq, w_pv, message):
    with pytest.raises(ValueError, match=message):
        ms.formula(ms.DiagonalUnitary(ms.Gaussian(1), 3), ms.NextToken(9), w_kq, w_pv)


def test_refused_processes_and_questions():
    heavy = ms.DiagonalUnitary(ms.StudentT(5, 1), 2)
    with pytest.raises(ValueError, match="moment"):
        ms.formula(heavy, ms.NextToken(9))
    with pytest.raises(TypeError, match="process: must be a DiagonalUnitary"):
        ms.formula(ms.Gaussian(1), ms.NextToken(9))
    with pytest.raises(TypeError, match="task: must be a task such as"):
        ms.formula(ms.DiagonalUnitary(ms.Gaussian(1), 2), 9)
    with pytest.raises(
        ValueError, match=r"w_kq: moments of Constant.* depend on the coordinate; give blocks"
    ):
        ms.formula(
            ms.DiagonalUnitary(ms.Constant([1, 2]), 2), ms.NextToken(9), [["a"] * 4] * 4, [["b"] * 4] * 2
        )
    with pytest.raises(ValueError, match="w_kq: 64 entries that are not 0 have too many products"):
        ms.formula(ms.DiagonalUnitary(ms.Gaussian(1), 4), ms.NextToken(9), [["a"] * 8] * 8, [["b"] * 8] * 4)
    found = ms.formula(ms.DiagonalUnitary(ms.Gaussian(1), 2), ms.NextToken(9))
    with pytest.raises(TypeError, match="weights: must be a, b; got a"):
        found(a=1)
    with pytest.raises(TypeError, match="unknown symbol 'n'; use one of T, a, b, d"):
        found.subs(n=1)
    with pytest.raises(ValueError, match="normalizer: 'n' is unknown"):
        ms.formula(ms.DiagonalUnitary(ms.Gaussian(1), 2), ms.NextToken(9), normalizer="n")
    process = ms.DiagonalUnitary(ms.Gaussian(1), 2)
    coupled = ms.formula(process, ms.NextToken(9), [[0, 0], ["a", "c"]])
    with pytest.raises(ValueError, match="the loss does not depend on products"):
        coupled.critical_products()
    for w_kq, w_pv in (([[0, 0], [1, 0]], [["b", 0]]), ([[0, 0], [1, 0]], [[2, 0]])):
        with pytest.raises(ValueError, match="the loss does not depend on products"):
            ms.formula(process, ms.NextToken(9), w_kq, w_pv).critical_products()


ENTRIES = {
    "every entry": (1, [["k_1", "k_2"], ["k_3", "k_4"]], [["p_1", "p_2"]]),
    "some entries": (
        2,
        [[0, "k_1", 0, 0], [0, 0, "1/2", 0], ["k_2", 0, 0, -1], ["k_3", "k_4", 0, 0]],
        [["p_1", "p_2", 0, 1], [0, "p_1", "p_3", 0]],
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("entries", ENTRIES)
@pytest.mark.parametrize(
    ("values", "normalizer", "rho"), [((2, -1), "t-1", lambda t: t - 1), ((0, 1, -3), "t", lambda t: t)]
)
def test_entries_in_symbols_are_the_mean_over_atoms_and_unit_circles(entries, values, normalizer, rho):
    dim, *tables = ENTRIES[entries]
    process, task = ms.DiagonalUnitary(ms.Empirical(list(values)), dim), ms.NextToken(4)
    found = ms.formula(process, task, *tables, normalizer=normalizer)
    symbols = {str(one): one for one in found.weights}
    w_kq, w_pv = (
        [[symbols[x] if x in symbols else sympy.Rational(x) for x in row] for row in table]
        for table in tables
    )
    expected = laurent_loss(independent(values, dim), task.horizon, w_kq, w_pv, rho)
    assert sympy.expand(expected - found.polynomial) == 0
