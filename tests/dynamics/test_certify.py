"""Certificates: what is proved is true, and what is false is not proved."""

from dataclasses import replace
from fractions import Fraction

import jax
import numpy as np
import pytest
from flint import arb, fmpq
from scipy.optimize import minimize

from mesascope.dynamics import real_vector
from mesascope.dynamics.certificates import (
    NotProvedError,
    SequenceQuestion,
    certify,
    certify_near,
    diagonal_places,
    diagonal_point,
    exact_gradient,
    prove_exactly,
    prove_isolated,
    statement,
)
from mesascope.dynamics.certificates._exact_point import exact_inertia
from mesascope.dynamics.certificates._inertia import certified_inertia
from mesascope.models import LinearAttention
from mesascope.objectives import Enumeration, objective_of
from mesascope.processes import Constant, DiagonalUnitary, Gaussian, Moments, NextToken, Sparse
from mesascope.theory.zheng2024 import limit_product

GAUSSIAN = SequenceQuestion(DiagonalUnitary(Gaussian(1), 2), NextToken(10), "t-1")


def limit(question, signs=None, a=None):
    """Floating-point weights with the product of Theorem 4.1 in every coordinate, with given signs."""
    dim = question.process.dim
    product = float(limit_product(question.process, question.task, mask=question.mask))
    signs = np.ones(dim) if signs is None else np.asarray(signs, float)
    a = product**0.5 if a is None else a
    model = LinearAttention.diagonal(dim, a, product / a)
    both = np.tile(signs, 2)
    return np.concatenate([np.ravel(np.asarray(m) * both) for m in (model.w_kq, model.w_pv)])


@pytest.mark.parametrize("a", [None, 0.1, 3.0])
def test_the_limit_of_theorem_41_is_proved_in_the_whole_space(a):
    certificate = certify_near(GAUSSIAN, limit(GAUSSIAN, a=a), 40)
    proved = certificate.proved
    assert proved.radius == Fraction(1, 10**40) < proved.unique_within
    assert proved.inertia == (23, 0, 1)
    assert proved.theorem == limit_product(GAUSSIAN.process, GAUSSIAN.task)
    for low, high in proved.products:
        assert low <= proved.theorem <= high and high - low < Fraction(1, 10**38)
    dim, c = 2, proved.theorem
    k1, k2, k3 = 3, 15, 3  # E x⁴, E x⁶, (d − 1) E x² E x⁴ of standard Gaussian tokens
    loss = sum(Fraction(dim, 2) * (c**2 * (k2 + Fraction(k3, t - 1)) - 2 * c * k1 + 1) for t in range(2, 10))
    low, high = proved.loss
    assert low <= loss <= high and high - low < Fraction(1, 10**36)


@pytest.mark.parametrize("signs", [(-1, -1), (1, -1)])
def test_signed_diagonals_are_minima_with_equal_loss(signs):
    plain = certify_near(GAUSSIAN, limit(GAUSSIAN), 30).proved
    signed = certify_near(GAUSSIAN, limit(GAUSSIAN, signs), 30).proved
    assert (signed.inertia, signed.theorem) == (plain.inertia, plain.theorem)
    assert signed.loss[0] <= plain.loss[1] and plain.loss[0] <= signed.loss[1]


@pytest.mark.slow
def test_the_end_of_a_flow_that_no_theorem_names():
    """Full-one tokens without the mask: the limit is irrational."""
    process, task = DiagonalUnitary(Constant(1), 2), NextToken(10)
    certificate = certify(LinearAttention.diagonal(2, 0.1, 0.1), process, task)
    assert certificate.isolated
    assert certificate.proved.theorem is None
    assert certificate.proved.inertia == (23, 0, 1)


def test_the_masked_limit_is_proved_with_the_mask_and_no_critical_point_without():
    masked = SequenceQuestion(DiagonalUnitary(Constant(1), 2), NextToken(10), "t-1", "off-diagonal")
    certificate = certify_near(masked, limit(masked), 30)
    assert certificate.proved.inertia == (11, 0, 1)
    assert certificate.proved.theorem == limit_product(masked.process, masked.task, mask="off-diagonal")
    free = SequenceQuestion(masked.process, masked.task, "t-1")
    point = [Fraction(0)] * 24
    for n, m in zip(*diagonal_places(2), strict=True):
        point[n], point[m] = certificate.proved.theorem, Fraction(1)
    assert not any(exact_gradient(masked, point))
    assert max(map(abs, exact_gradient(free, point))) > Fraction(1, 10)
    with pytest.raises(NotProvedError, match="the gradient is not 0 at these weights"):
        prove_exactly(free, point)


@pytest.mark.slow
def test_one_hot_tokens_are_not_isolated_but_exact():
    process, task = DiagonalUnitary(Sparse(2), 2), NextToken(8)
    certificate = certify(LinearAttention.diagonal(2, 0.1, 0.1), process, task)
    assert not certificate.isolated
    assert certificate.proved.loss == (0, 0)
    assert certificate.proved.theorem == Fraction(1, 4)
    assert certificate.proved.inertia.negative == 0
    # the scalings of both coordinates, and a second family each: one block reads what the other attends to
    assert (certificate.proved.inertia.zero, certificate.proved.unused) == (4, 8)


def test_the_origin_is_a_saddle():
    proved = prove_exactly(GAUSSIAN, [Fraction(0)] * 24)
    assert proved.inertia.negative == proved.inertia.positive > 0
    assert proved.loss == (8, 8)  # ½ d E x² for every one of 8 contexts


@pytest.mark.slow
def test_the_irrational_limit_is_where_another_solver_and_another_engine_end():
    """Full-one tokens: minimized by scipy over the diagonals, the off-diagonals and the other blocks, by enumeration."""
    process, task = DiagonalUnitary(Constant(1), 2), NextToken(5)
    objective = objective_of(LinearAttention.diagonal(2, 1.0, 1.0), process, task, Enumeration())

    def loss(vector):
        return objective(LinearAttention(vector[:16].reshape(4, 4), vector[16:].reshape(2, 4))).value

    start = np.asarray(real_vector(LinearAttention.diagonal(2, 0.5, 0.5))[0])
    found = minimize(
        jax.jit(loss), start, jac=jax.jit(jax.grad(loss)), method="BFGS", options={"gtol": 1e-10}
    )
    proved = certify(LinearAttention.diagonal(2, 0.5, 0.5), process, task, digits=20).proved
    # BFGS stops where the gradient is 1e-8 or so; the loss is quadratic there, the products are not
    assert float(proved.loss[0]) == pytest.approx(found.fun, rel=1e-12)
    for (low, high), n, m in zip(proved.products, *diagonal_places(2), strict=True):
        assert float(low) == pytest.approx(found.x[n] * found.x[m], rel=1e-6)
        assert 0 < high - low < Fraction(1, 10**18)


def test_every_size_of_the_data_is_proved():
    """Weights of 1e-9 beside curvatures of 1e36, and the reverse."""
    for scale in (Fraction(1, 10**9), 10**9):
        question = SequenceQuestion(DiagonalUnitary(Gaussian(scale), 2), NextToken(10), "t-1")
        certificate = certify_near(question, limit(question), 40)
        assert certificate.isolated and certificate.proved.inertia == (23, 0, 1)
        assert certificate.proved.theorem == limit_product(question.process, question.task)


def test_masked_weights_must_be_zero_in_the_centre():
    """Else the scaling, which multiplies them, is no symmetry of what is left, and the counted zero is none."""
    masked = SequenceQuestion(DiagonalUnitary(Constant(1), 2), NextToken(10), "t-1", "off-diagonal")
    centre = list(certify_near(masked, limit(masked), 30).centre)
    centre[1] = Fraction(1, 5)
    with pytest.raises(NotProvedError, match="entry 1 is masked and must be 0") as refused:
        prove_isolated(masked, centre, Fraction(1, 10**20))
    assert refused.value.field == "w_kq"
    exact = list(diagonal_point(limit_product(masked.process, masked.task, mask="off-diagonal"), (1, 1)))
    assert prove_exactly(masked, exact).inertia == (11, 0, 1)
    exact[-2] = Fraction(1, 5)
    with pytest.raises(NotProvedError, match="entry 22 is masked") as refused:
        prove_exactly(masked, exact)
    assert refused.value.field == "w_pv"


def test_weights_that_nothing_depends_on_are_told_and_not_counted():
    """A coordinate that is always 0: the weights that only meet it are free, and no minimum is strict along them."""
    question = SequenceQuestion(DiagonalUnitary(Sparse(1), 2), NextToken(8), "t-1")
    proved = prove_exactly(question, diagonal_point(Fraction(1), (1, 1)))
    assert sum(proved.inertia) + proved.unused == 24 and proved.unused == 8
    curvature = question.polynomial.hessian([fmpq(int(x)) for x in diagonal_point(Fraction(1), (1, 1))])
    assert exact_inertia(curvature).zero == proved.inertia.zero + proved.unused
    assert "It does not depend on 8 of the weights" in statement(question, proved)[1]
    assert len(statement(GAUSSIAN, prove_exactly(GAUSSIAN, [Fraction(0)] * 24))) == 5  # all weights matter


@pytest.mark.slow
def test_a_flat_landscape_is_followed_to_its_end():
    """In one dimension minima are not isolated, and an explicit solver creeps along them."""
    start = LinearAttention.gaussian(1, 0.1, key=jax.random.key(1))
    with pytest.raises(NotProvedError, match=r"may be singular|do not shrink|not near"):
        certify(start, DiagonalUnitary(Gaussian(1), 1), NextToken(10))


def test_another_point_than_the_one_asked_about_is_not_certified():
    """The products are those of the theorem, but other weights are far from it."""
    question = SequenceQuestion(DiagonalUnitary(Sparse(1), 2), NextToken(8), "t-1")
    near = limit(question)
    assert not certify_near(question, near, 20).isolated
    near[18] = 7.0
    with pytest.raises(NotProvedError):
        certify_near(question, near, 20)


def test_bounds_in_sentences_are_rounded_to_the_safe_side():
    proved = prove_exactly(GAUSSIAN, [Fraction(0)] * 24)
    isolated = replace(proved, radius=Fraction(101, 10**6), unique_within=Fraction(199, 10**6))
    said = "lies within 101e-6 of it, entry by entry, and no other within 1e-4."
    assert said in statement(GAUSSIAN, isolated)[1]
    alone = replace(isolated, unique_within=isolated.radius)
    assert "entry by entry." in statement(GAUSSIAN, alone)[1]
    spread = replace(proved, products=((Fraction(1), Fraction(1)), (Fraction(2), Fraction(2))), theorem=None)
    assert statement(GAUSSIAN, spread)[-1] == "The a_j b_j are 1; 2."


@pytest.mark.parametrize(
    ("changed", "theorem"),
    [
        ({}, "the value of Theorem 4.1 of zheng2024"),
        ({"normalizer": "1"}, "generalizes"),
        ({"task": NextToken(10, {3: 1, 7: 5})}, "generalizes"),
        ({"mask": "off-diagonal"}, "generalizes"),
        ({"mask": "off-diagonal", "process": DiagonalUnitary(Constant(1), 2)}, "the value of Theorem 4.3 of"),
    ],
)
def test_theorems_are_named_in_their_own_setting_only(changed, theorem):
    assert theorem in replace(GAUSSIAN, **changed).theorem


def test_a_loss_without_weights_is_not_proved():
    zero = LinearAttention.diagonal(1, 0, 0)
    with pytest.raises(NotProvedError, match="the loss depends on no weight"):
        certify(zero, DiagonalUnitary(Constant(0), 1), NextToken(3))


def test_what_is_not_near_is_not_proved():
    centre = certify_near(GAUSSIAN, limit(GAUSSIAN), 30).centre
    moved = [centre[0] + Fraction(1, 10**20), *centre[1:]]
    with pytest.raises(NotProvedError, match="no critical point was proved within 1e-30"):
        prove_isolated(GAUSSIAN, moved, Fraction(1, 10**30))
    assert prove_isolated(GAUSSIAN, moved, Fraction(1, 10**18)).inertia == (23, 0, 1)
    with pytest.raises(NotProvedError):
        prove_isolated(GAUSSIAN, centre, Fraction(1))


def test_a_guess_that_is_near_nothing():
    guess = np.random.default_rng(0).normal(size=24)
    with pytest.raises(NotProvedError, match=r"not near a critical point|may be singular"):
        certify_near(GAUSSIAN, 10 * guess, 20)


def test_one_coordinate_learned_and_the_other_not_is_a_saddle():
    """A critical point with the limit of one dimension in one coordinate; flows leave it along the other."""
    point = [Fraction(0)] * 24
    a, b = diagonal_places(2)
    point[a[0]] = limit_product(DiagonalUnitary(Gaussian(1), 1), GAUSSIAN.task)
    point[b[0]] = Fraction(1)
    proved = prove_exactly(GAUSSIAN, point)
    assert proved.inertia.negative > 0
    assert proved.theorem is None
    whole, nothing = certify_near(GAUSSIAN, limit(GAUSSIAN), 20).proved.loss, Fraction(8)
    assert whole[1] < proved.loss[0] < nothing


@pytest.mark.parametrize(
    ("law", "told"),
    [
        (Gaussian(0.1), r'law\.scale: 0\.1 is a float.*such as "1/10"'),
        (Moments([1, 0, 1, 0, 3.3, 0, 15]), r"law\.moments\[4\]: 3\.3 is a float"),
        # E x⁴ < (E x²)²: no law has these moments, and with floats rounding may decide
        (Moments([1, 0, 1e8, 0, 9999999999999998.0, 0, 1e24]), r"law\.moments\[2\]: 100000000\.0 is a float"),
        (Gaussian(2**0.5), r"law\.scale: 1\.414.* give the moments of the law instead"),
        (Gaussian(1e23), r'such as "100000000000000000000000"'),
    ],
    ids=["gaussian", "moments", "whole moments", "root", "large"],
)
def test_floats_are_refused(law, told):
    with pytest.raises(ValueError, match=told):
        certify(LinearAttention.diagonal(2, 0.1, 0.1), DiagonalUnitary(law, 2), NextToken(5))


def test_float_weights_of_context_lengths_are_refused():
    task = NextToken(5, {2: 0.3, 3: 1})
    with pytest.raises(ValueError, match=r"weights: 2: 0\.3 is a float"):
        certify(LinearAttention.diagonal(2, 0.1, 0.1), GAUSSIAN.process, task)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"digits": 5}, "digits must be at least 10"),
        ({"digits": 10**6}, "digits: at most 1000"),
        ({"model": LinearAttention(1j * np.ones((4, 4)), np.ones((2, 4)))}, "real weights"),
        (
            {"model": LinearAttention(np.ones((4, 4)), np.ones((2, 4))), "mask": "off-diagonal"},
            "must be 0 at the start",
        ),
        ({"model": 3}, "must be a LinearAttention"),
    ],
)
def test_bad_input(change, told):
    start = LinearAttention.diagonal(2, 0.1, 0.1)
    arguments = {"model": start, "process": GAUSSIAN.process, "task": GAUSSIAN.task}
    with pytest.raises((TypeError, ValueError), match=told):
        certify(**arguments | change)


def test_inertia_of_rational_matrices_is_that_of_their_eigenvalues():
    rng = np.random.default_rng(0)
    for rank in (6, 5, 3):
        factor = rng.integers(-3, 4, (6, rank))
        signs = np.array([1, -1, 1, 1, -1, -1])[:rank]
        matrix = factor @ np.diag(signs) @ factor.T
        values = np.linalg.eigvalsh(matrix)
        small = 1e-9 * np.abs(values).max()  # integers of this size have eigenvalues that are 0 or above 1e-4
        expected = ((values > small).sum(), (values < -small).sum(), (np.abs(values) <= small).sum())
        assert exact_inertia([[fmpq(int(x)) for x in row] for row in matrix]) == expected


def test_a_sign_that_the_enclosure_does_not_decide_is_not_proved():
    wide = [[arb(1), arb(0)], [arb(0), arb(1e-6) + arb(0, 1e-5)]]
    with pytest.raises(NotProvedError, match=r"near 1e-06 .* is not decided"):
        certified_inertia(wide, [])
    decided = [[arb(1), arb(0)], [arb(0), arb(-1e-6) + arb(0, 1e-7)]]
    assert certified_inertia(decided, []) == (1, 1, 0)


def test_directions_that_do_not_complete_a_basis_are_not_taken_for_symmetries():
    hessian = [[arb(1), arb(0)], [arb(0), arb(0)]]
    assert certified_inertia(hessian, [[arb(0), arb(2)]]) == (1, 0, 1)
    with pytest.raises(NotProvedError, match="may not be those"):
        certified_inertia(hessian, [[arb(3), arb(0)]])
