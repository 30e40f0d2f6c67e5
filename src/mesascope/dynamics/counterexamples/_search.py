"""The search for a law that breaks a property."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import cast

import numpy as np

from mesascope.core import Progress, integer_at_least, shows_progress
from mesascope.processes import Law
from mesascope.specs import SpecError, show, unknown

from ._counterexample import Counterexample, Searched, require_feasible
from ._families import FAMILIES, Tokens, neighbour, simpler
from ._properties import PROPERTIES, Property
from ._setting import FLAT, LARGEST_DIM, Setting, is_zero

_STEPS = 20
_RHO = ("t-1", "t", "1")


@shows_progress
def counterexample(
    property: str,
    *,
    laws: Law | Sequence[str] | None = None,
    dims: Sequence[int] = (2, 3, 4),
    horizons: Sequence[int] = (3, 4, 5, 10),
    normalizers: Sequence[str] | None = None,
    starts: int = 20,
    seed: int = 0,
    progress: Callable[[Progress], None] | None = None,
) -> Searched:
    """Search for a law that breaks a stated property of one layer of linear attention on sequences x_{t+1} = W x_t.

    Each start draws a family, a dimension, a horizon, a normalizer and a law with integer atoms, and changes its atoms by one
    as long as a violation comes nearer. Whether the property is broken is decided in rational numbers. The first
    counterexample ends the search; its atoms are made smaller where that keeps it one.

    Args:
        property: a name in `dynamics.counterexamples.PROPERTIES`.
        laws: names of families in `dynamics.counterexamples.FAMILIES`, or one law, whose atoms are not changed.
        dims: dimensions d ≥ 1, at most 6.
        horizons: horizons T ≥ 3.
        normalizers: ρ_t, `"t-1"`, `"t"`, `"1"`; when left out, those of the property.
        starts: how many starts.
        seed: of the random numbers.
        progress: as in `gradient_flow`.

    Returns:
        What was searched; its `found` is the counterexample, with a certificate (`check`), or None, which proves nothing.

    Raises:
        TypeError: numbers of another type.
        ValueError: an unknown property, family or normalizer, a law whose moments are infeasible or not known, numbers out of
            range.
    """
    _require_known("property", [property], PROPERTIES)
    stated = PROPERTIES[property]
    given = laws if isinstance(laws, Law) else None
    families = stated.families if laws is None or given is not None else cast(Sequence[str], laws)
    _require_known("law", families, FAMILIES)
    rho = stated.normalizers if normalizers is None else normalizers
    _require_known("normalizer", rho, _RHO)
    sizes = _sizes(dims, horizons, given)
    search = Searched(
        property,
        None,
        tuple(families) if given is None else (given.describe(),),
        *sizes,
        tuple(rho),
        integer_at_least("starts", starts, 1),
        integer_at_least("seed", seed, 0),
        0,
        float("inf"),
    )
    for start in range(search.starts):
        search = _from(start, search, stated, given)
        if search.found is not None:
            return replace(search, starts=start + 1)
        if progress is not None:
            progress(Progress(start + 1, search.starts, "starts", values={"nearest": search.nearest}))
    return search


def _require_known(what: str, names: Sequence[str], known: Iterable[str]) -> None:
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise TypeError(f"{what}s: must be a list of names, got {show(names)}")
    if not names:
        raise ValueError(f"{what}s: must not be empty; leave them out to take those of the property")
    for name in names:
        if name not in known:
            raise ValueError(unknown(what, name, list(known)))


def _sizes(
    dims: Sequence[int], horizons: Sequence[int], law: Law | None
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if not (len(dims) and len(horizons)):
        raise ValueError("dims, horizons: must not be empty; give one number at least")
    found = tuple(integer_at_least("dims", one, 1) for one in dims)
    if max(found) > LARGEST_DIM:
        raise SpecError(f"must be at most {LARGEST_DIM}, got {max(found)}; take smaller ones", "dims")
    if law is not None:
        for one in found:
            law.check_dim(one)
            if is_zero(Setting(law, one, 3, "t-1")):
                raise ValueError(f"laws: tokens of {law.describe()} are always 0; take another law")
            require_feasible(Setting(law, one, 3, "t-1"))
    return found, tuple(integer_at_least("horizons", one, 3) for one in horizons)


def _from(start: int, search: Searched, stated: Property, law: Law | None) -> Searched:
    """Return the search after one start."""
    rng = np.random.default_rng((search.seed, start))
    dim, horizon = (one[int(rng.integers(len(one)))] for one in (search.dims, search.horizons))
    rho = search.normalizers[int(rng.integers(len(search.normalizers)))]
    tokens: Tokens = ()
    if law is None:
        family = FAMILIES[search.families[int(rng.integers(len(search.families)))]]
        tokens = family.draw(rng, dim)

    def setting_of(given: Tokens) -> Setting:
        return Setting(law if law is not None else family.law(given), dim, horizon, rho)

    def measured(setting: Setting) -> tuple[Counterexample | None, float]:
        witness, score = stated.propose(setting, rng)
        if score > -FLAT or (quantity := stated.decide(setting, witness)) >= 0:
            return None, score
        return Counterexample(search.property, setting, witness, quantity, search.seed, start), score

    best, tried = float("inf"), 0
    for step in range(_STEPS if law is None else 1):
        candidate = neighbour(rng, tokens) if step else tokens
        if is_zero(setting := setting_of(candidate)):
            continue
        tried += 1
        found, score = measured(setting)
        if found is not None:
            if law is None:
                found = _simplified(
                    found, candidate, lambda given: measured(setting_of(given))[0], setting_of
                )
            return replace(
                search, found=found, tried=search.tried + tried, nearest=min(search.nearest, score)
            )
        if score <= best:
            tokens, best = candidate, score
    return replace(search, tried=search.tried + tried, nearest=min(search.nearest, best))


def _simplified(
    found: Counterexample,
    tokens: Tokens,
    broken: Callable[[Tokens], Counterexample | None],
    setting_of: Callable[[Tokens], Setting],
) -> Counterexample:
    """Return a counterexample with fewer or smaller atoms, if there is one on the way down."""
    smaller = True
    while smaller:
        smaller = False
        for candidate in simpler(tokens):
            if not is_zero(setting_of(candidate)) and (less := broken(candidate)):
                found, tokens, smaller = less, candidate, True
                break
    return found
