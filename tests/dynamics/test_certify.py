"""Certificates: what is proved is true, and what is false is not proved."""

from fractions import Fraction

import numpy as np
import pytest
from flint import arb

from mesascope.dynamics.certificates import (
    NotProvedError,
    Question,
    certify,
    certify_near,
    diagonal_places,
    exact_gradient,
    prove,
)
from mesascope.dynamics.certificates._exact_point import exact_inertia
from mesascope.dynamics.certificates._inertia import certified_inertia
from mesascope.models import LinearAttention
from mesascope.processes import Constant, DiagonalUnitary, Gaussian, Moments, NextToken, Sparse
from mesascope.theory.zheng2024 import limit_product

GAUSSIAN = Question(DiagonalUnitary(Gaussian(1), 2), NextToken(10), "t-1")


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


def test_the_end_of_a_flow_that_no_theorem_names():
    """Full-one tokens without the mask: the limit is irrational."""
    process, task = DiagonalUnitary(Constant(1), 2), NextToken(10)
    certificate = certify(LinearAttention.diagonal(2, 0.1, 0.1), process, task)
    assert certificate.isolated
    assert certificate.proved.theorem is None
    assert certificate.proved.inertia == (23, 0, 1)


def test_the_masked_limit_is_proved_with_the_mask_and_no_critical_point_without():
    masked = Question(DiagonalUnitary(Constant(1), 2), NextToken(10), "t-1", "off-diagonal")
    certificate = certify_near(masked, limit(masked), 30)
    assert certificate.proved.inertia == (11, 0, 1)
    assert certificate.proved.theorem == limit_product(masked.process, masked.task, mask="off-diagonal")
    free = Question(masked.process, masked.task, "t-1")
    point = [Fraction(0)] * 24
    for n, m in zip(*diagonal_places(2), strict=True):
        point[n], point[m] = certificate.proved.theorem, Fraction(1)
    assert not any(exact_gradient(masked, point))
    assert max(map(abs, exact_gradient(free, point))) > Fraction(1, 10)
    with pytest.raises(NotProvedError, match="the gradient is not 0 at these weights"):
        prove(free, point, Fraction(0))


def test_one_hot_tokens_are_not_isolated_but_exact():
    process, task = DiagonalUnitary(Sparse(2), 2), NextToken(8)
    certificate = certify(LinearAttention.diagonal(2, 0.1, 0.1), process, task)
    assert not certificate.isolated
    assert certificate.proved.loss == (0, 0)
    assert certificate.proved.theorem == Fraction(1, 4)
    assert certificate.proved.inertia.negative == 0
    # the scalings of both coordinates, and a second family each: one block reads what the other attends to
    assert certificate.proved.inertia.zero == 4


def test_the_origin_is_a_saddle():
    proved = prove(GAUSSIAN, [Fraction(0)] * 24, Fraction(0))
    assert proved.inertia.negative == proved.inertia.positive > 0
    assert proved.loss == (8, 8)  # ½ d E x² for every one of 8 contexts


def test_what_is_not_near_is_not_proved():
    centre = certify_near(GAUSSIAN, limit(GAUSSIAN), 30).centre
    moved = [centre[0] + Fraction(1, 10**20), *centre[1:]]
    with pytest.raises(NotProvedError, match="no critical point was proved within 1e-30"):
        prove(GAUSSIAN, moved, Fraction(1, 10**30))
    assert prove(GAUSSIAN, moved, Fraction(1, 10**18)).inertia == (23, 0, 1)
    with pytest.raises(NotProvedError):
        prove(GAUSSIAN, centre, Fraction(1))


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
    proved = prove(GAUSSIAN, point, Fraction(0))
    assert proved.inertia.negative > 0
    assert proved.theorem is None
    whole, nothing = certify_near(GAUSSIAN, limit(GAUSSIAN), 20).proved.loss, Fraction(8)
    assert whole[1] < proved.loss[0] < nothing


@pytest.mark.parametrize(
    ("law", "told"),
    [
        (Gaussian(0.1), r'law\.scale: 0\.1 is a float.*such as "1/10"'),
        (Moments([1, 0, 1, 0, 3.3, 0, 15]), r"law\.moments\[4\]: 3\.3 is a float"),
    ],
    ids=["gaussian", "moments"],
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
    arguments = {
        "model": LinearAttention.diagonal(2, 0.1, 0.1),
        "process": GAUSSIAN.process,
        "task": GAUSSIAN.task,
    }
    with pytest.raises((TypeError, ValueError), match=told):
        certify(**arguments | change)


def test_inertia_of_rational_matrices_is_that_of_their_eigenvalues():
    from flint import fmpq

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
