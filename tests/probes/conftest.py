"""Data and models of the tests of probes."""

import numpy as np
import pytest

import mesascope as ms
from mesascope.core import named_key
from mesascope.learners import GradientDescent, predictions
from mesascope.probes._problems import draw_problems


@pytest.fixture
def sequences():
    """Real sequences with noise, on which all learners differ."""
    process = ms.LinearAR.contracting(ms.Gaussian(1.0), 3, 0.3, 0.9, noise=0.3)
    return draw_problems(process, ms.NextToken(10), 200, named_key(0, "tests", "sequences"))


@pytest.fixture
def complex_sequences():
    process = ms.DiagonalUnitary(ms.Gaussian(1.0), 3)
    return draw_problems(process, ms.NextToken(8), 100, named_key(0, "tests", "complex"))


@pytest.fixture
def prompts():
    process = ms.LinearRegression(3, noise=0.1)
    return draw_problems(process, ms.FewShot.every(8), 200, named_key(0, "tests", "prompts"))


@pytest.fixture
def one_step():
    """One step of gradient descent as a function of contexts, by sums in NumPy."""

    def predict(contexts):
        x, y, query = contexts[:, :-1], contexts[:, 1:], contexts[:, -1]
        scores = np.einsum("bip,bp->bi", x.conj(), query)
        return 0.3 / x.shape[1] * np.einsum("bim,bi->bm", y, scores)

    return predict


@pytest.fixture
def answers_of_a_step():
    return lambda problems: np.asarray(
        predictions(GradientDescent(0.3), problems.x, problems.y, problems.queries)
    )
