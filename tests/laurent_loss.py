r"""An oracle of the loss of one layer of linear attention, which shares no code with the package.

Given the initial token, every entry of every token is a number times a power of λ_j, so that a prediction is a Laurent
polynomial of λ_1 … λ_d. Its mean square over the unit circles is the sum of the squares of its coefficients (Parseval).
Tokens of a law with few atoms are listed. Weights are numbers or symbols of sympy, and nothing is rounded.
"""

from collections import defaultdict
from fractions import Fraction
from itertools import product


def independent(values, dim):
    """Pairs (probability, token) of independent coordinates that are uniform on a list of values."""
    tokens = list(product(values, repeat=dim))
    return [(Fraction(1, len(tokens)), token) for token in tokens]


def with_signs(tokens):
    """Pairs (probability, token) of tokens that are uniform on a list, with random signs."""
    signed = [
        tuple(s * x for s, x in zip(signs, token, strict=True))
        for token in tokens
        for signs in product((1, -1), repeat=len(token))
    ]
    return [(Fraction(1, len(signed)), token) for token in signed]


def laurent_loss(atoms, horizon, w_kq, w_pv, rho):
    """Σ_{t = 2}^{T − 1} ½ E‖ŷ_t − x_{t+1}‖² with ŷ_t = P Σ_{i ≤ t} e_i e_i* K e_t / ρ_t, e_i = (x_i, x_{i−1}), x_0 = 0."""
    total = 0
    for probability, first in atoms:
        dim = len(first)
        for t in range(2, horizon):
            tokens = [_embedded(first, i) for i in range(1, t + 1)]
            query = _apply(w_kq, tokens[-1])
            learned = [defaultdict(lambda: 0) for _ in range(2 * dim)]
            for token in tokens:
                overlap = defaultdict(lambda: 0)
                for entry, other in zip(token, query, strict=True):
                    _add_product(overlap, _conjugate(entry), other, 1)
                for place, entry in zip(learned, token, strict=True):
                    _add_product(place, entry, overlap, Fraction(1, rho(t)))
            for prediction, target in zip(_apply(w_pv, learned), _embedded(first, t + 1)[:dim], strict=True):
                for power, c in target.items():
                    prediction[power] -= c
                total += probability * sum(c**2 for c in prediction.values()) / 2
    return total


def _embedded(first, i):
    """The entries of e_i: {powers of λ: coefficient}."""
    dim = len(first)
    entries = []
    for power in (i - 1, i - 2):
        for j, x in enumerate(first):
            powers = tuple(power if n == j else 0 for n in range(dim))
            entries.append({powers: Fraction(x)} if power >= 0 else {})
    return entries


def _conjugate(entry):
    return {tuple(-n for n in powers): c for powers, c in entry.items()}


def _apply(matrix, entries):
    rows = []
    for weights in matrix:
        row = defaultdict(lambda: 0)
        for weight, entry in zip(weights, entries, strict=True):
            if weight != 0:
                for powers, c in entry.items():
                    row[powers] += weight * c
        rows.append(row)
    return rows


def _add_product(into, one, other, factor):
    for left, c in one.items():
        for right, e in other.items():
            into[tuple(n + m for n, m in zip(left, right, strict=True))] += factor * c * e
