"""Families of laws with few atoms, which are integers, and rational probabilities: all of their moments are rational.

Moments of atoms are feasible: there is no Hankel matrix to keep positive semidefinite along a search.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import permutations
from math import gcd

import numpy as np

from mesascope.processes import Empirical, Law, Symmetrized

Token = tuple[int, ...]
Tokens = tuple[Token, ...]
"""What a law is made of; a token that is listed twice is twice as probable. Independent coordinates: single values."""

_LARGEST = 9
_MAX_TOKENS = 2
_MAX_VALUES = 5


@dataclass(frozen=True)
class Family:
    """Laws that satisfy Assumption 4.1 of zheng2024, as it is reported, by construction.

    Attributes:
        description: in a few words.
        draw: random tokens for a dimension.
        law: the law that is made of tokens.
    """

    description: str
    draw: Callable[[np.random.Generator, int], Tokens]
    law: Callable[[Tokens], Law]


def _draw_pool(rng: np.random.Generator, dim: int) -> Tokens:
    return tuple(_draw_token(rng, 1) for _ in range(rng.integers(2, _MAX_VALUES + 1)))


def _draw_tokens(rng: np.random.Generator, dim: int) -> Tokens:
    return tuple(_draw_token(rng, dim) for _ in range(rng.integers(1, _MAX_TOKENS + 1)))


def _draw_token(rng: np.random.Generator, size: int) -> Token:
    return tuple(map(int, rng.integers(0, _LARGEST + 1, size)))


def _centred_pool(tokens: Tokens) -> Law:
    """Integers with mean 0, n x − Σ x for n values x."""
    pool = [value for (value,) in tokens]
    return Empirical([len(pool) * value - sum(pool) for value in pool])


def _with_signs(orbit: Callable[[Token], list[Token]]) -> Callable[[Tokens], Law]:
    def law(tokens: Tokens) -> Law:
        rows = [list(map(float, row)) for token in tokens for row in orbit(token)]
        return Symmetrized(Empirical(rows, joint=True))

    return law


def _shifts(token: Token) -> list[Token]:
    return [token[n:] + token[:n] for n in range(len(token))]


FAMILIES: dict[str, Family] = {
    "independent": Family("independent coordinates of mean 0", _draw_pool, _centred_pool),
    "exchangeable": Family(
        "tokens in every order of their coordinates, with random signs",
        _draw_tokens,
        _with_signs(lambda token: list(permutations(token))),
    ),
    "cyclic": Family(
        "tokens with cyclically shifted coordinates and random signs", _draw_tokens, _with_signs(_shifts)
    ),
}
"""All families by name."""


def neighbour(rng: np.random.Generator, tokens: Tokens) -> Tokens:
    """Return the tokens with one number changed by one."""
    n = int(rng.integers(len(tokens)))
    j = int(rng.integers(len(tokens[n])))
    return _changed(tokens, n, j, abs(tokens[n][j] + (1 if rng.random() < 0.5 else -1)))


def simpler(tokens: Tokens) -> list[Tokens]:
    """Return simpler tokens: one less, without a common factor, or with a number made smaller everywhere or in one place."""
    found = [tokens[:n] + tokens[n + 1 :] for n in range(len(tokens)) if len(tokens) > 1]
    numbers = {number for token in tokens for number in token} - {0}
    if (common := gcd(*numbers)) > 1:
        found.append(_replaced(tokens, lambda number: number // common))
    for number in sorted(numbers, reverse=True):
        for less in sorted({0, number // 2, number - 1}):
            found.append(_replaced(tokens, partial(_one_for_another, number, less)))
    for n, token in enumerate(tokens):
        for j, number in enumerate(token):
            found += [_changed(tokens, n, j, less) for less in (0, number - 1) if 0 <= less < number]
    return found


def _one_for_another(old: int, new: int, number: int) -> int:
    return new if number == old else number


def _replaced(tokens: Tokens, new: Callable[[int], int]) -> Tokens:
    return tuple(tuple(map(new, token)) for token in tokens)


def _changed(tokens: Tokens, n: int, j: int, number: int) -> Tokens:
    token = (*tokens[n][:j], number, *tokens[n][j + 1 :])
    return (*tokens[:n], token, *tokens[n + 1 :])
