"""The reasons of a verdict, in sentences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from mesascope.learners import Memorizing, PreconditionedGradientDescent
from mesascope.processes import Pool, TaskPool
from mesascope.records import Beyond, IdentificationVerdict, MixtureRecord, Separation

from ._identification import Ranked
from ._preconditioner_shape import shape_in_words


def reasons_of(
    verdict: IdentificationVerdict,
    groups: dict[str, list[str]],
    ranking: Sequence[Ranked],
    separated: Sequence[Separation],
    tolerance: float,
    search: bool,
) -> tuple[str, ...]:
    """Return the reasons of a verdict: distances, equivalent learners, forms of matrices, and additional data."""
    first = ranking[0]
    low, high = first.interval
    at = f"at distance {first.distance:.3g} [{low:.3g}, {high:.3g}]"
    if not groups:
        beyond = "beyond" if low > tolerance else "and may be within"
        line = f"the nearest learner, {first.learner}, is {at}, {beyond} the tolerance {tolerance:g}"
        return (line, *map(_separation_in_words, separated))
    lines = []
    if verdict == "identified":
        lines.append(f"{first.learner} is {at}, within the tolerance {tolerance:g}")
        inside = {first.learner, *first.contains}
        rest = [entry for entry in ranking if entry.learner not in inside]
        if rest:
            nearest = min(rest, key=lambda e: e.distance)
            lines.append(f"the nearest other, {nearest.learner}, is at distance {nearest.distance:.3g}")
    elif len(groups) == 1:
        lines.append(
            f"{first.learner} is {at}, on both sides of the tolerance {tolerance:g}: take more tasks"
        )
    else:
        lines.append(f"on these data {', '.join(groups)} cannot be distinguished; {first.learner} is {at}")
        if not search:
            lines.append("identify(…, search=True) asks the model where they differ")
    lines += [
        f"as fitted, {', '.join(same)} {'is' if len(same) == 1 else 'are'} the same as {name}"
        for name, same in groups.items()
        if same
    ]
    if isinstance(first.algorithm, PreconditionedGradientDescent):
        shape = shape_in_words(first.algorithm.preconditioner, first.algorithm.output_map)
        lines += [shape] if shape else []
    return (*lines, *map(_separation_in_words, separated))


def mixtures_in_words(found: Sequence[MixtureRecord], most: int, kinds: int) -> tuple[str, ...]:
    """Return what mixtures explain, and what their weights rest on; `kinds` learners may take part."""
    if most == 1:
        return (
            ("no mixture was tried: parts=3 tries those of two and of three learners",) if kinds > 1 else ()
        )
    if not found:
        return (
            f"of mixtures of up to {most} different learners none that was fitted is within the tolerance either",
        )
    lines = []
    for one in found:
        low, high = one.interval
        named = " and ".join(part.learner for part in one.parts)
        lines.append(
            f"a mixture of {named} is at distance {one.distance:.3g} [{low:.3g}, {high:.3g}], within the tolerance"
        )
        weights = ", ".join(
            f"{part.learner} {part.weight:.3g} [{part.interval[0]:.3g}, {part.interval[1]:.3g}]"
            for part in one.parts
        )
        which = (
            "its weights are"
            if not one.lengths
            else "its weights depend on the number of examples; their means are"
        )
        lines.append(f"{which} {weights}")
        if not one.different:
            lines.append(
                f"some change of its weights leaves the predictions nearly the same (condition number {one.condition:.2g})"
            )
        elif not one.determined:
            lines.append("the interval of a weight is nearly all of 0 … 1: take more tasks")
    return tuple(lines)


def of_a_large_pool(process: Any) -> tuple[str, ...]:
    """Return what was not compared, where the process is a pool of too many tasks."""
    if not isinstance(process, Pool) or process.size <= process.max_compared:
        return ()
    most = f"memorizing was not compared: the pool has {process.size} tasks, and at most {process.max_compared} are"
    return (f"{most}; a learner named here is not told apart from it",)


def of_a_pool_without_noise(process: Any, ranking: Sequence[Ranked]) -> tuple[str, ...]:
    """Return what stands for a posterior that is not defined, where labels have no noise."""
    if not isinstance(process, TaskPool) or getattr(process.process, "noise", None) != 0:
        return ()
    if not any(entry.learner == Memorizing.name for entry in ranking):
        return ()
    return (
        "the labels have no noise, so that the posterior over the pool is its nearest task: the noise variance that was fitted "
        "for memorizing says nothing",
    )


def beyond_in_words(first: Ranked, beyond: Sequence[Beyond], tolerance: float) -> tuple[str, ...]:
    """Return in sentences how far a learner is from the model out of distribution."""
    lines = []
    for one in beyond:
        where = f"out of distribution ({one.setting}, after {one.examples} examples)"
        if math.isnan(one.distance):
            lines.append(f"{where} the model does not answer")
        elif one.distance > tolerance:
            lines.append(
                f"{where} the model does something else than {first.learner}: distance {one.distance:.3g}"
            )
        else:
            lines.append(f"{where} {first.learner} is at distance {one.distance:.3g}")
    return tuple(lines)


def _separation_in_words(separation: Separation) -> str:
    where = f"{separation.setting}, after {separation.examples} examples"
    text = f"{', '.join(separation.candidates)} were compared on {where}: "
    if not separation.distances:
        return text + "the model does not answer there with finite numbers, so nothing is decided"
    nearest = min(separation.distances, key=lambda name: separation.distances[name])
    text += f"nearest there is {nearest}"
    text += f" at distance {separation.distances[nearest]:.3g}"
    if separation.decided:
        return text
    return text + "; no candidate explains those answers together with the others, so they decide nothing"
