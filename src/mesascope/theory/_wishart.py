"""Exact means of spectral statistics of Gaussian Gram matrices of any finite size."""

from collections.abc import Callable

import numpy as np

from ..core import integer_at_least

_PANELS, _NODES = 160, 8
_MARGIN = 9.0  # the largest singular value exceeds √n + √d by this much with a probability below 1e-17


def wishart_mean(statistic: Callable[[np.ndarray], np.ndarray], dim: int, examples: int) -> float:
    r"""Return $E \sum_{k=1}^d f(s_k)$ for the eigenvalues $s_k$ of $\sum_{i=1}^n x_i x_i^\top$, $x_i \sim N(0, I_d)$.

    The singular values $u_k = \sqrt{s_k}$ have the density $\propto \prod_k \rho(u_k) \prod_{j<k} |s_j - s_k|$ with $\rho(u) =
    u^{n-d} e^{-u^2/2}$ for $d \le n$. With $\rho (1 + \epsilon f)$ for $\rho$ its normalisation is a Pfaffian (de Bruijn),
    whose logarithmic derivative at $\epsilon = 0$ is the mean:

    $$E \sum_k f(s_k) = \tfrac12 \mathrm{tr}\, A^{-1} A_f, \qquad
    A_{jk} = \iint \mathrm{sgn}(u - v)\, \phi_j(u) \phi_k(v)\, du\, dv,$$

    $\phi_j = \rho$ times polynomials in $s$ of degree $< d$, and $A_f$ has the factor $f(u^2) + f(v^2)$ in the integral; for
    odd $d$ both have a last row and column with $\int \phi_j$ and $\int f \phi_j$. For $n < d$ the two are exchanged and
    $d - n$ eigenvalues are 0. Integrals are Gauss–Legendre sums over panels, accurate to about 1e-12 for functions that are
    smooth on the scale of a panel, $(\sqrt n + \sqrt d + 9)/160$.

    Args:
        statistic: $f$, vectorized, finite for $s \ge 0$ ($s > 0$ suffices if $n \ge d$).
        dim: $d \ge 1$, up to about 30.
        examples: $n \ge 1$.

    Raises:
        TypeError, ValueError: a size that is not an integer ≥ 1.

    Source: de Bruijn (1955), for the eigenvalues of a real Wishart matrix.
    """
    d, n = integer_at_least("dim", dim, 1), integer_at_least("examples", examples, 1)
    small, large = min(d, n), max(d, n)
    nodes, weights, primitive = _panels(large**0.5 + small**0.5 + _MARGIN)
    value = np.asarray(statistic(nodes**2), float)
    functions = _functions(nodes, weights, small, large - small)
    first = _pairing(functions, functions, weights, primitive)
    change = _pairing(value[:, None] * functions, functions, weights, primitive)
    plain = _bordered(first, weights @ functions)
    moved = _bordered(change - change.T, weights @ (value[:, None] * functions))
    zeros = (d - n) * float(statistic(np.zeros(1))[0]) if d > n else 0.0
    return float(np.trace(np.linalg.solve(plain, moved)) / 2) + zeros


def _panels(end: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return nodes and weights on [0, end], and for every node the weights of ∫_0^u − ∫_u^end, shape (m, m)."""
    one, weight = np.polynomial.legendre.leggauss(_NODES)
    half = end / _PANELS / 2
    nodes = (half * (2 * np.arange(_PANELS)[:, None] + 1 + one)).ravel()
    weights = np.tile(half * weight, _PANELS)
    # ∫_{−1}^{x_i} of the polynomials through the values at the nodes
    basis = np.polynomial.legendre.legvander(one, _NODES - 1)
    inner = np.stack(
        [
            np.polynomial.legendre.legval(one, np.polynomial.legendre.legint(row, lbnd=-1))
            for row in np.eye(_NODES)
        ],
        1,
    ) @ np.linalg.inv(basis)
    before = np.kron(np.tri(_PANELS, k=-1), np.ones((_NODES, 1)) * half * weight)
    below = before + np.kron(np.eye(_PANELS), half * inner)
    return nodes, weights, 2 * below - weights


def _functions(nodes: np.ndarray, weights: np.ndarray, count: int, power: int) -> np.ndarray:
    """Return orthonormal products of ρ(u) and polynomials in u², computed recursively, shape (m, count)."""
    log_density = power * np.log(nodes) - nodes**2 / 2
    functions = np.zeros((len(nodes), count))
    new = np.exp(log_density - log_density.max())
    for k in range(count):
        for _ in range(2):  # twice because of rounding
            new = new - functions @ ((functions * weights[:, None]).T @ new)
        functions[:, k] = new / np.sqrt(weights @ new**2)
        new = nodes**2 * functions[:, k]
    return functions


def _pairing(left: np.ndarray, right: np.ndarray, weights: np.ndarray, primitive: np.ndarray) -> np.ndarray:
    """Return ∬ sgn(u − v) f_j(u) g_k(v) for all pairs of functions."""
    return (left * weights[:, None]).T @ (primitive @ right)


def _bordered(matrix: np.ndarray, border: np.ndarray) -> np.ndarray:
    """Return the matrix if its size is even, else with one more row and column."""
    if len(border) % 2 == 0:
        return matrix
    return np.block([[matrix, border[:, None]], [-border, np.zeros((1, 1))]])
