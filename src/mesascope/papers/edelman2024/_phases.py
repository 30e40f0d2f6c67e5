"""The phases of transformers that are trained on Markov chains, and what they end as."""

from __future__ import annotations

from typing import Any

import numpy as np

from mesascope.probes import AlongTraining
from mesascope.processes import NextToken
from mesascope.records import Decision, Figure

from .._claim import Claim, Finding, presets
from .._figures import curve, one_panel
from .._intervals import mean_interval
from .._names import IdentifySettings, answer_of, identified_as, identify_all, name_of
from .._runs import seeds_of
from ._data import PAPER, STRATEGIES, Followed, Training, chains, followed, trained

UNIFORM, UNIGRAM, BIGRAM = STRATEGIES
_ROUNDING = 1e-9  # of a share of seeds
_NEAREST = 1e-8  # of the distances that are drawn
_FULL: dict[str, Any] = {"horizon": 101, "steps": 6000}


def _phases(settings: _Phases) -> Finding:
    """How many seeds pass the strategies in the paper's order, and when the nearest changes."""
    found = followed(settings)
    orders = [_order(one) for one in found]
    whole = [order for order in orders if order == list(STRATEGIES)]
    begun = [order for order in orders if order == list(STRATEGIES)[: len(order)] and order not in whole]
    needed = settings.share * len(found) - _ROUNDING
    times = {
        name: [_time(one, name) for one, order in zip(found, orders, strict=True) if order in whole]
        for name in (UNIGRAM, BIGRAM)
    }
    details = {
        "orders": orders,
        "changes": [[change.model_dump() for change in one.changes] for one in found],
        "meaning": "steps: geometric mean over the seeds with this order",
    }
    measured: dict[str, Any] = {"seeds in this order": len(whole), "of": len(found)}
    for name, steps in times.items():
        if len(steps) > 1:
            logs = np.log(steps)
            measured[f"step of {name}"] = float(np.exp(logs.mean()))
            details[f"interval_95_of_{name}"] = (
                np.exp(mean_interval(logs)[1]).tolist() if len(steps) >= 5 else None
            )
    decision = _decided(len(whole), len(begun), needed)
    return Finding(
        measured,
        f"at least {settings.share:g} of the seeds: uniform, unigrams, bigrams",
        None,
        decision,
        details,
        {"phases": _picture(settings, found)},
    )


def _decided(whole: int, begun: int, needed: float) -> Decision:
    """Whether enough seeds have the order; those that have begun it may still have it after more steps."""
    if whole >= needed:
        return "met"
    return "not met" if whole + begun < needed else "undecided"


def _order(found: AlongTraining) -> list[str]:
    """The nearest strategies in their order, from the first time that it is uniform."""
    names = [type(one.learner).name for one in found.strategies]
    first = names[int(np.argmin(found.followed.distances.value[0]))]
    order = [first, *(change.after for change in found.changes)]
    return order[order.index(UNIFORM) :] if UNIFORM in order else order


def _time(found: AlongTraining, name: str) -> float:
    """The step from which on this strategy is the nearest."""
    return max(next(change.step for change in reversed(found.changes) if change.after == name), 1.0)


def _picture(settings: _Phases, found: list[AlongTraining]) -> Figure:
    names = [type(one.learner).name for one in found[0].strategies]
    steps = np.array(found[0].steps) + 1
    distances = np.maximum([one.followed.distances.value for one in found], _NEAREST)
    return one_panel(
        "Transformers on Markov chains",
        f"{settings.symbols} symbols, T = {settings.horizon}, {len(found)} seeds",
        *(trace for k, name in enumerate(names) for trace in curve(steps, distances[:, :, k], name, k)),
        xlabel="training steps + 1",
        ylabel=r"distance $E\|f - g\|^2 / E\|f\|^2$",
        xscale="log",
        yscale="log",
        caption="Distances of the model from the paper's strategies. Lines: median over the seeds, bands: all seeds.",
    )


def _named(settings: _Named) -> Finding:
    """`identify` on the transformers of all seeds at the end."""
    found = identify_all(
        trained(settings)[settings.steps], chains(settings), NextToken(settings.horizon), settings
    )
    parts = {
        f"seed {seed}": identified_as(BIGRAM, one)
        for seed, one in zip(seeds_of(settings), found, strict=True)
    }
    return Finding.of_parts(
        [name_of(one) for one in found],
        BIGRAM,
        None,
        parts,
        {"answers": [answer_of(one, BIGRAM) for one in found]},
    )


class _Phases(Followed):
    share: float = 0.9


class _Named(Training, IdentifySettings):
    tasks: int = 400
    learners: tuple[str, ...] = (
        *("uniform", "unigram-posterior", "retrieval"),
        *("dirichlet-posterior", "trigram-posterior"),
    )


_CHOICE = """Width, rate and batch were chosen with the seed 0, until the losses had come to rest within 2500 steps."""

CLAIMS = (
    Claim(
        id=f"{PAPER}/phases",
        title="Transformers predict uniformly, then by unigrams, then by bigrams",
        evidence="measured, another model",
        origin="paper",
        statement="""While a transformer is trained on Markov chains, the nearest of the three strategies is first uniform,
            then unigram counts, then bigram counts.""",
        source="edelman2024, abstract; the strategies: `utils.py:40-53` of the authors' program at 3ab0b29",
        settings=presets(_Phases(), **_FULL),
        check=_phases,
        criterion="""For at least nine of ten seeds. A strategy gives way to another one that is nearer if it is, with
            confidence over chains, more than twice as far from the model. The order begins with the first checkpoint that is
            nearest to uniform, which may be the model as it was drawn; what stands before does not count. Seeds that end before
            the last strategy decide nothing.""",
        history=f"""{_CHOICE} That a model as drawn counts where it is nearest to uniform was first said unclearly: in several
            seeds of the record unigrams are nearest after one or two steps.""",
        cost="about 40 min",
        papers_setting="about 2 min, with relative positions, which are not built here",
    ),
    Claim(
        id=f"{PAPER}/named",
        title="`identify` names bigram counts at the end",
        evidence="measured, another model",
        origin="ours",
        statement="""Asked about transformers at the end of their training on Markov chains, `identify` names bigram counts, and
            not unigram or trigram counts, retrieval or the uniform prediction.""",
        source="edelman2024, abstract (what the trained transformer computes), asked of `identify`",
        settings=presets(_Named(), **_FULL),
        check=_named,
        criterion="""The name for every seed, with the tolerance of `identify`, a hundredth of the mean square of the
            predictions.""",
        history=_CHOICE,
        cost="about 40 min",
    ),
)
