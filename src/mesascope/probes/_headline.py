"""The one line that says what a model is close to."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from mesascope.learners import FAMILIES
from mesascope.records import IdentificationVerdict, MixtureRecord, is_short

from ._identification import Ranked

_NOTHING = 0.5  # a learner that leaves more unexplained says nothing about a model
_NAMED = 4  # of learners that cannot be told apart; the table has all of them


def headline(verdict: IdentificationVerdict, ranking: Sequence[Ranked], near: Collection[str]) -> str:
    """Return the algorithm or the family of algorithms of a model, and how much they leave unexplained.

    Args:
        verdict: the verdict.
        ranking: the learners, the nearest candidate first.
        near: ids of the learners that these data do not distinguish from the nearest.
    """
    inside = {first.learner for first in ranking[:1]} | set(near)
    alike = [entry for entry in ranking if entry.learner in inside]
    nearest = min(alike, key=lambda entry: entry.distance)
    rest = f"{share(nearest.distance)} of its mean square unexplained"
    if verdict == "none" and nearest.distance > _NOTHING:
        return f"like none of these learners: the nearest, {nearest.learner}, leaves {rest}"
    if verdict == "identified" or len(alike) == 1:
        named = _described(ranking[0])
        return f"{named}: {rest}" if verdict != "none" else f"closest to {named}: {rest}"
    names = _listed([*map(_described, _simplest(alike)), *_more(alike)])
    like = f"{_family(alike, nearest)}: "
    if verdict == "none" and "fixed" in map(_family_of, alike):  # as near to what does not learn
        like = f"like none of these learners: the nearest, {nearest.learner}, leaves "
    line = f"{like}{rest}; {names} cannot be told apart here"
    further = [entry for entry in ranking if entry.learner not in inside and not _is_inside(entry, alike)]
    if further:
        rival = min(further, key=lambda entry: entry.distance)
        line += f"; the nearest of the others, {rival.learner}, leaves {share(rival.distance)}"
    return line


def headline_of_mixtures(mixtures: Sequence[MixtureRecord]) -> str:
    """Return the mixtures that explain a model, and how much the nearest leaves unexplained."""
    rest = f"{share(min(one.distance for one in mixtures))} of its mean square unexplained"
    line = f"a mixture of {' or of '.join(map(described_mixture, mixtures))}: {rest}"
    if len(mixtures) > 1:
        return f"{line}; these data do not tell which"
    return line if mixtures[0].determined else f"{line}; these data do not tell the weights"


def described_mixture(mixture: MixtureRecord) -> str:
    """Return e.g. `0.6 ridge (penalty 0.3) and 0.4 average`, with a range of weights that depend on the examples."""
    parts = []
    for place, part in enumerate(mixture.parts):
        values = mixture.weights[place].value if mixture.weights else (part.weight,)
        weight = "–".join(dict.fromkeys(f"{one:.2g}" for one in (min(values), max(values))))
        parts.append(f"{weight} {_with_numbers(part.learner, part.hyperparameters, {})}")
    return _listed(parts)


def share(distance: float) -> str:
    """Return a relative distance in percent, or as a power of ten if it is small or large."""
    if distance == 0:
        return "0 %"
    if not 1e-4 <= distance < 1e3:
        return f"{distance:.1e}"
    return f"{100 * distance:.2g} %" if distance < 0.99 else f"{100 * distance:.0f} %"


def _family(alike: Sequence[Ranked], nearest: Ranked) -> str:
    """Return the words for learners of one family; methods of descent with enough steps solve least squares."""
    solves = "least-squares"
    return FAMILIES[solves if solves in map(_family_of, alike) else _family_of(nearest)]


def _family_of(entry: Ranked) -> str:
    return type(entry.algorithm).fitting.family


def _simplest(alike: Sequence[Ranked]) -> list[Ranked]:
    """Return the learners that are named, the simplest first."""
    return sorted(alike, key=lambda entry: type(entry.algorithm).fitting.flexibility)[:_NAMED]


def _more(alike: Sequence[Ranked]) -> list[str]:
    """Return e.g. `["3 others"]` if there are more learners than are named."""
    others = len(alike) - _NAMED
    return [f"{others} other{'s' if others > 1 else ''}"] if others > 0 else []


def _is_inside(entry: Ranked, alike: Sequence[Ranked]) -> bool:
    return any(entry.learner in one.contains for one in alike)


def _described(entry: Ranked) -> str:
    """Return the id with the numbers that were fitted, such as `gradient-descent (step_size 0.186, steps ≥ 12)`."""
    integer = type(entry.algorithm).fitting.integer
    signs = {integer: "≥ "} if integer and entry.or_more else {}
    return _with_numbers(entry.learner, entry.hyperparameters, signs)


def _with_numbers(learner: str, hyperparameters: Mapping[str, Any], signs: Mapping[str, str]) -> str:
    parts = [
        f"{name} {signs.get(name, '')}{_short(value)}"
        for name, value in hyperparameters.items()
        if not isinstance(value, list) or is_short(value)
    ]
    return f"{learner} ({', '.join(parts)})" if parts else learner


def _short(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_short, value))}]"
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"
