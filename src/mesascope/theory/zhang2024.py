r"""One linear attention layer trained by gradient flow on noiseless linear regression (zhang2024, arXiv 2306.09927).

Setting: prompts $(x_i, y_i)$, $i \le N$, and $(x_q, 0)$ with $x \sim N(0, \Lambda)$, $y = w^\top x$, $w \sim N(0, I)$ are the
columns of $E$; the layer adds $\frac1N W^{PV} E E^\top W^{KQ} E$ over all $N + 1$ tokens, and $\hat y$ is the last entry of
the query token. If initially $W^{KQ} = \mathrm{diag}(U, 0)$, $W^{PV} = \mathrm{diag}(0, u)$, all other entries remain 0, and

$$\hat y = u\, x_q^\top U^\top \tfrac1N \sum_i x_i y_i, \qquad
\Gamma = \left(1 + \tfrac1N\right) \Lambda + \tfrac{\mathrm{tr} \Lambda}N I .$$
"""

from typing import Any

import numpy as np

from ..core import (
    covariance_matrix,
    finite_number,
    finite_positive,
    finite_reals,
    integer_at_least,
    square_matrix,
)
from ..specs import Number
from ._construction import Construction


def layer(matrix: Any, scalar: Number) -> Construction:
    r"""Return the layer $W^{KQ} = \mathrm{diag}(U, 0)$, $W^{PV} = \mathrm{diag}(0, u)$.

    Args:
        matrix: $U$, shape `(d, d)`.
        scalar: $u$.

    Returns:
        Weights of shape `(1, d + 1, d + 1)`; the sum runs over all tokens, $\rho = N$, and $\hat y$ is read with sign +.

    Raises:
        TypeError, ValueError: `matrix` is not a square matrix of finite real numbers, `scalar` is not a finite number.
    """
    u_matrix = square_matrix("matrix", matrix)
    dim = len(u_matrix)
    w_kq, w_pv = np.zeros((2, 1, dim + 1, dim + 1))
    w_kq[0, :dim, :dim], w_pv[0, dim, dim] = u_matrix, float(finite_number("scalar", scalar))
    return Construction(w_kq, w_pv)


def gamma(covariance: Any, examples: int) -> np.ndarray:
    r"""Return $\Gamma = (1 + \frac1N) \Lambda + \frac{\mathrm{tr} \Lambda}N I$.

    The second moments $S = \frac1N \sum_i x_i x_i^\top$ of the examples have $E S = \Lambda$ and $E S^2 = \Gamma \Lambda$.

    Args:
        covariance: $\Lambda$, symmetric positive definite, shape `(d, d)`.
        examples: $N \ge 1$.

    Raises:
        TypeError, ValueError: `covariance` is not such a matrix, or `examples` is not an integer ≥ 1.

    Source: zhang2024, Theorem 4.1.
    """
    lam, n = covariance_matrix("covariance", covariance), integer_at_least("examples", examples, 1)
    return (1 + 1 / n) * lam + np.trace(lam) / n * np.eye(len(lam))


def reduced_flow(matrix: Any, scalar: Number, covariance: Any, examples: int) -> tuple[np.ndarray, float]:
    r"""Return the velocity of gradient flow in $(U, u)$.

    $$U' = -u^2 \Gamma \Lambda U \Lambda + u \Lambda^2, \qquad
    u' = -\mathrm{tr}\left( u \Gamma \Lambda U \Lambda U^\top - \Lambda^2 U^\top \right),$$

    minus the gradient of $\frac12 E (\hat y - y)^2 = \frac12 \mathrm{tr} \left( u^2 \Gamma \Lambda U \Lambda U^\top - 2 u
    \Lambda^2 U^\top + \Lambda \right)$. It conserves $u^2 - \|U\|_F^2$.

    Args:
        matrix: $U$, shape `(d, d)`.
        scalar: $u$.
        covariance: $\Lambda$, as for `gamma`.
        examples: $N \ge 1$.

    Returns:
        $U'$, shape `(d, d)`, and $u'$.

    Raises:
        TypeError, ValueError: as for `layer` and `gamma`, or shapes that differ.

    Source: zhang2024, Lemma 5.2, eq. (5.4); derived here.
    """
    u_matrix, u = square_matrix("matrix", matrix), float(finite_number("scalar", scalar))
    lam, g = covariance_matrix("covariance", covariance), gamma(covariance, examples)
    if u_matrix.shape != lam.shape:
        raise ValueError(f"matrix must have the shape {lam.shape} of the covariance, got {u_matrix.shape}")
    squared = lam @ lam
    product = g @ lam @ u_matrix @ lam
    return u * squared - u**2 * product, float(np.sum((squared - u * product) * u_matrix))


def flow_limit(covariance: Any, examples: int) -> tuple[np.ndarray, float]:
    r"""Return the limit of the flow from balanced initial weights, $u^2 = \|U\|_F^2$.

    $$U = \mathrm{tr}(\Gamma^{-2})^{-1/4}\, \Gamma^{-1}, \qquad u = \mathrm{tr}(\Gamma^{-2})^{1/4}$$

    Arguments and errors as in `gamma`.

    Returns:
        $U$, shape `(d, d)`, and $u$.

    Source: zhang2024, Theorem 4.1 (from $U = \sigma \Theta \Theta^\top$, $u = \sigma$, $\|\Theta \Theta^\top\|_F = 1$, if
        $\sigma^2 \|\Gamma\| \sqrt d < 2$).
    """
    return balanced(np.linalg.inv(gamma(covariance, examples)))


def balanced(preconditioner: Any) -> tuple[np.ndarray, float]:
    r"""Return $(U, u)$ with $u U = A$ and $u^2 = \|U\|_F^2$, $u > 0$.

    Args:
        preconditioner: $A \ne 0$, shape `(d, d)`.

    Raises:
        TypeError, ValueError: `preconditioner` is not a square matrix of finite real numbers, or zero.
    """
    a = square_matrix("preconditioner", preconditioner)
    scalar = float(np.linalg.norm(a)) ** 0.5
    if scalar == 0:
        raise ValueError("preconditioner must not be zero: u and U would both be 0")
    return a / scalar, scalar


def risk(preconditioner: Any, covariance: Any, examples: int) -> float:
    r"""Return $E (\hat y - y)^2$ of $\hat y = x_q^\top A \frac1M \sum_{i \le M} x_i y_i$ on prompts of $M$ examples.

    $$\mathrm{tr} \left( \Lambda A \Gamma_M \Lambda A^\top - 2 \Lambda A \Lambda + \Lambda \right)$$

    with $\Gamma_M$ of the covariance and length of the *test* prompts. At $A = \Gamma^{-1}$ with the same covariance and $M =
    N$ it is $\mathrm{tr}(\Lambda - \Lambda^2 \Gamma^{-1})$.

    Args:
        preconditioner: $A = u U^\top$, shape `(d, d)`.
        covariance: $\Lambda$ of the test prompts.
        examples: $M \ge 1$.

    Raises:
        TypeError, ValueError: as for `gamma`, or shapes that differ.

    Source: derived here; at $A = \Gamma^{-1}$ it is `prediction_error`.
    """
    a, lam = _preconditioner(preconditioner, covariance)
    second = gamma(lam, examples) @ lam
    return float(np.trace(lam @ a @ second @ a.T - 2 * lam @ a @ lam + lam))


def pointwise_error(preconditioner: Any, covariance: Any, examples: int, task: Any, query: Any) -> float:
    r"""Return $E (\hat y - w^\top x)^2$ of $\hat y = x^\top A \frac1M \sum_{i \le M} x_i y_i$ for a task $w$ and a query $x$.

    $$\left( x^\top (A \Lambda - I) w \right)^2
    + \frac1M \left[ x^\top A \Lambda A^\top x\; w^\top \Lambda w + (x^\top A \Lambda w)^2 \right]$$

    The examples $x_i \sim N(0, \Lambda)$, $y_i = w^\top x_i$ do not depend on the query.

    Args:
        preconditioner: $A = u U^\top$, shape `(d, d)`.
        covariance: $\Lambda$ of the test prompts.
        examples: $M \ge 1$.
        task: $w$, shape `(d,)`.
        query: $x$, shape `(d,)`.

    Raises:
        TypeError, ValueError: as for `risk`, or vectors of another length.

    Source: derived here.
    """
    a, lam = _preconditioner(preconditioner, covariance)
    m = integer_at_least("examples", examples, 1)
    w, x = finite_reals("task", task), finite_reals("query", query)
    if w.shape != (len(lam),) or x.shape != (len(lam),):
        raise ValueError(f"task and query must have the shape ({len(lam)},), got {w.shape} and {x.shape}")
    answer = x @ a @ lam
    return float((answer @ w - x @ w) ** 2 + (answer @ a.T @ x * (w @ lam @ w) + (answer @ w) ** 2) / m)


def pointwise_bound(preconditioner: Any, covariance: Any, examples: int) -> float:
    r"""Return a bound on `pointwise_error` over $w^\top \Lambda w\; x^\top \Lambda^{-1} x$, for all tasks and queries.

    $$\|B - I\|^2 + \frac2M \|B\|^2, \qquad B = \Lambda^{1/2} A \Lambda^{1/2},$$

    with spectral norms; the first term is the supremum for $M \to \infty$. At $A = \Gamma^{-1}$ of training prompts of $N$
    examples the first term is $\bigl( c / (N + c) \bigr)^2$ with $c = 1 + \mathrm{tr} \Lambda / \lambda_{\min}$, and
    $\|B\| < 1$. Since $(w^\top x)^2 \le w^\top \Lambda w\; x^\top
    \Lambda^{-1} x$, it is in units of the largest possible $y^2$.

    Arguments and errors as in `risk`.

    Source: derived here: with $a = \Lambda^{-1/2} x$ and $b = \Lambda^{1/2} w$, `pointwise_error` is $(a^\top (B - I) b)^2 +
    \frac1M [\|B^\top a\|^2 \|b\|^2 + (a^\top B b)^2]$.
    """
    a, lam = _preconditioner(preconditioner, covariance)
    m = integer_at_least("examples", examples, 1)
    values, vectors = np.linalg.eigh(lam)
    root = (vectors * np.sqrt(values)) @ vectors.T
    b = root @ a @ root
    return float(np.linalg.norm(b - np.eye(len(b)), 2) ** 2 + 2 / m * np.linalg.norm(b, 2) ** 2)


def _preconditioner(preconditioner: Any, covariance: Any) -> tuple[np.ndarray, np.ndarray]:
    a, lam = square_matrix("preconditioner", preconditioner), covariance_matrix("covariance", covariance)
    if a.shape != lam.shape:
        raise ValueError(f"preconditioner must have the shape {lam.shape} of the covariance, got {a.shape}")
    return a, lam


def prediction_error(covariance: Any, examples: int, test_examples: int) -> float:
    r"""Return the risk of the trained layer on prompts of $M$ examples, from Theorem 4.2, averaged over $w \sim N(0, I)$.

    $$\frac1M \mathrm{tr}(\Sigma \Gamma^{-2} \Lambda) + \frac1{N^2} \left[ \mathrm{tr}(\Gamma^{-2} \Lambda^3)
    + 2\, \mathrm{tr} \Lambda\, \mathrm{tr}(\Gamma^{-2} \Lambda^2) + (\mathrm{tr} \Lambda)^2\, \mathrm{tr}(\Gamma^{-2} \Lambda)
    \right], \qquad \Sigma = \mathrm{tr} \Lambda\, \Lambda + \Lambda^2$$

    The theorem has $\Sigma = \|w\|_\Lambda^2 \Lambda + \Lambda w w^\top \Lambda$ and norms of $w$ in place of the other traces.

    Args:
        covariance: $\Lambda$ of training and test prompts.
        examples: $N \ge 1$ of the training prompts.
        test_examples: $M \ge 1$.

    Raises:
        TypeError, ValueError: as for `gamma`.

    Source: zhang2024, Theorem 4.2, eq. (4.6).
    """
    lam, n = covariance_matrix("covariance", covariance), integer_at_least("examples", examples, 1)
    m, total = integer_at_least("test_examples", test_examples, 1), np.trace(lam)
    inverse = np.linalg.inv(gamma(lam, n))
    product = inverse @ inverse @ lam
    variance = np.trace((total * lam + lam @ lam) @ product) / m
    bias = np.trace(product @ lam @ lam) + 2 * total * np.trace(product @ lam) + total**2 * np.trace(product)
    return float(variance + bias / n**2)


def risk_floor(covariance: Any, examples: int) -> float:
    r"""Return the limit of `risk` for long test prompts, $\mathrm{tr}\, \Lambda (\Gamma^{-1} \Lambda - I)^2 = O(1/N^2)$.

    Args:
        covariance: $\Lambda$ of training and test prompts.
        examples: $N \ge 1$ of the training prompts.

    Raises:
        TypeError, ValueError: as for `gamma`.

    Source: zhang2024, Theorem 4.2, eq. (4.6), the term that does not vanish as $M \to \infty$, averaged over $w$.
    """
    lam = covariance_matrix("covariance", covariance)
    off = np.linalg.solve(gamma(lam, examples), lam) - np.eye(len(lam))
    return float(np.trace(lam @ off @ off.T))


def random_covariance_step(first: Number, second: Number, third: Number, dim: int, examples: int) -> float:
    r"""Return $a$ for which $A = a I$ is optimal if $\Lambda = \mathrm{diag}(s)$ is drawn for every prompt.

    $$a = \frac{E s^2}{(1 + \frac2N) E s^3 + \frac{d-1}N E s\, E s^2} \longrightarrow \frac{E s^2}{E s^3} \quad (N \to \infty)$$

    for independent, identically distributed $s_1, \dots, s_d$: the loss $\frac12 E\, \mathrm{tr}\, \Lambda (A S - I)(A S -
    I)^\top$ is minimal where $E \Lambda A S^2 = E \Lambda S$ with $E(S^2 | \Lambda) = \Gamma \Lambda$. On infinitely long
    prompts the prediction is $x_q^\top a \Lambda w$ (on average: `random_covariance_factors`), with the risk
    `random_covariance_risk`: one layer does not learn a random covariance in context.

    Args:
        first: $E s > 0$.
        second: $E s^2$.
        third: $E s^3$.
        dim: $d \ge 1$.
        examples: $N \ge 1$.

    Raises:
        TypeError, ValueError: a moment that is not a positive number, or an integer out of range.

    Source: zhang2024, Theorem 4.5, eq. (4.12): $[E\, \Gamma \Lambda^2]^{-1} E \Lambda^2$ for identically distributed entries;
    derived here.
    """
    m1, m2, m3 = _moments(first, second, third)
    d, n = integer_at_least("dim", dim, 1), integer_at_least("examples", examples, 1)
    return m2 / ((1 + 2 / n) * m3 + (d - 1) / n * m1 * m2)


def random_covariance_risk(first: Number, second: Number, third: Number, dim: int) -> float:
    r"""Return $d (E s - (E s^2)^2 / E s^3)$, the risk on infinitely long prompts if $\Lambda$ is drawn for every prompt.

    Arguments and errors as in `random_covariance_step`; predicting 0 has the risk $d\, E s$.

    Source: derived here.
    """
    m1, m2, m3 = _moments(first, second, third)
    return integer_at_least("dim", dim, 1) * (m1 - m2**2 / m3)


def variance_given_query(query: Any) -> np.ndarray:
    r"""Return $E(s \,|\, x) = \frac12 + \frac{|x|}{\sqrt 2}$ for $s \sim$ Exponential(1) and $x \sim N(0, s)$ given $s$.

    With $K$ the Bessel functions, $\int s^{\nu - 1} e^{-s - x^2 / 2 s} ds = 2\, (|x| / \sqrt2)^\nu K_\nu(\sqrt2 |x|)$: it is
    the ratio of those of $\nu = \frac32$ and $\nu = \frac12$, and $K_{3/2}(z) / K_{1/2}(z) = 1 + 1/z$. A large coordinate of
    a query is evidence of a large variance.

    Args:
        query: coordinates $x$, of any shape.

    Raises:
        TypeError, ValueError: entries that are not real and finite.

    Source: derived here, for the law of zhang2024, section 4.3.
    """
    return 0.5 + np.abs(finite_reals("query", query)) / 2**0.5


def random_covariance_factors(first: Number, second: Number, third: Number) -> tuple[float, float]:
    r"""Return the best multiples of $y = w^\top x_q$ as approximations of the prediction $x_q^\top a \Lambda w$.

    $$\frac{E s^2\, E s}{E s^3} \quad \text{and} \quad \frac{(E s^2)^2}{E s^3\, E s}$$

    With $a = E s^2 / E s^3$, they are $E \hat y y / E y^2$ for a query of any law that is independent of $\Lambda$, where
    $E (\hat y | x_q, w)$ is the first times $y$; and for a query $x_q \sim N(0, \Lambda)$, as in training, where $E \hat y
    y = a\, d\, E s^2$ and $E y^2 = d\, E s$.

    Arguments and errors as in `random_covariance_step`.

    Returns:
        The first and the second, which is at least the first.

    Source: the first is zhang2024, section 4.3, after eq. (4.13) ($(E \Lambda^2)(E \Lambda^3)^{-1}(E \Lambda)$); the second is
    derived here.
    """
    m1, m2, m3 = _moments(first, second, third)
    return m2 * m1 / m3, m2**2 / (m3 * m1)


def _moments(first: Number, second: Number, third: Number) -> list[float]:
    given = (("first", first), ("second", second), ("third", third))
    return [float(finite_positive(name, value)) for name, value in given]
