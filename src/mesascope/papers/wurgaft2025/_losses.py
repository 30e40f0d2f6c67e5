"""The exact losses of both strategies."""

from __future__ import annotations

import numpy as np

from mesascope.core import named_key
from mesascope.processes import Urns
from mesascope.records import Figure
from mesascope.theory import wurgaft2025 as theory

from .._claim import Claim, Finding, Settings, presets, verdict_if, within
from .._figures import curve, one_panel
from .._intervals import between, mean_interval
from .._pools import off_bayes
from ._data import PAPER


def _bayes(settings: _Bayes) -> Finding:
    """How far both strategies are from Bayes' rule, and by how much each loses less than the other on its own urns."""
    off: dict[str, float] = {}
    gains: dict[str, float] = {}
    for symbols, length, tasks in settings.sets:
        name, urns = f"{symbols} symbols, K = {tasks}", _urns(symbols, tasks, settings.seed)
        for strategy, one in _from_bayes(urns, length - 1).items():
            off[f"{strategy}, {name}"] = one
        on_pool, on_new = theory.losses(urns, length), theory.losses_on_new(urns, length)
        gains[f"memorizing on the pool, {name}"] = float(
            (on_pool["generalizing"] - on_pool["memorizing"]).min()
        )
        gains[f"generalizing on new urns, {name}"] = float(
            (on_new["memorizing"] - on_new["generalizing"]).min()
        )
    parts = {f"Bayes' rule: {name}": within(one, settings.rounding) for name, one in off.items()}
    parts |= {f"less loss: {name}": verdict_if(one > settings.rounding) for name, one in gains.items()}
    return Finding.of_parts(
        {"largest difference": max(off.values()), "least gain": min(gains.values())},
        "differences 0, and gains above 0",
        settings.rounding,
        parts,
        {
            "differences": off,
            "gains": gains,
            "meaning": "gains: nats less than the other, at the worst context length",
        },
    )


def _from_bayes(urns: np.ndarray, longest: int) -> dict[str, float]:
    """The largest differences of both strategies from Bayes' rule."""
    symbols = urns.shape[1]

    def counts(sequences: np.ndarray) -> np.ndarray:
        return np.stack([(sequences == b).sum(1) for b in range(symbols)], 1)

    return {
        "memorizing": off_bayes(
            symbols,
            longest,
            lambda sequences: urns[:, sequences].prod(2).mean(0),
            lambda sequences: theory.memorizing(urns, counts(sequences)),
            shortest=0,
        ),
        "generalizing": off_bayes(
            symbols,
            longest,
            lambda sequences: np.asarray(Urns(symbols).probabilities_of(sequences)),
            lambda sequences: theory.generalizing(counts(sequences)),
            shortest=0,
        ),
    }


def _gap(settings: _Gap) -> Finding:
    """By which power of K the gap falls, on few urns and on many."""
    sizes = [2**k for k in range(settings.doublings + 1)]
    pools = [_urns(settings.symbols, sizes[-1], settings.seed + n) for n in range(settings.drawn)]
    gaps = np.array([[_mean_gap(urns[:tasks], settings.horizon) for tasks in sizes] for urns in pools])
    logs = np.log2(gaps)
    few, many = settings.few, settings.doublings - settings.many
    powers = {
        f"from 1 to {sizes[few]}": (logs[:, 0] - logs[:, few]) / few,
        f"from {sizes[many]} to {sizes[-1]}": (logs[:, many] - logs[:, -1]) / settings.many,
    }
    found = {name: mean_interval(one) for name, one in powers.items()}
    on_few, on_many = (interval for _, interval in found.values())
    low, high = 1 - settings.nearness, 1 + settings.nearness
    first, last = found
    return Finding.of_parts(
        {f"power, {name}": mean for name, (mean, _) in found.items()},
        f"below {low:g} on few urns, from {low:g} to {high:g} on many",
        settings.nearness,
        {first: between(on_few, 0.0, low), last: between(on_many, low, high)},
        {
            "intervals_95": {name: interval for name, (_, interval) in found.items()},
            "mean_gaps": {str(tasks): float(one) for tasks, one in zip(sizes, gaps.mean(0), strict=True)},
            "meaning": "the gap falls as K to minus this power; gaps: nats in one prediction, mean over pools",
        },
        {"gap": _picture(settings, np.array(sizes), gaps)},
    )


def _urns(symbols: int, tasks: int, seed: int) -> np.ndarray:
    return np.asarray(Urns(symbols).draw_tasks(named_key(seed, "urns"), tasks), float)


def _mean_gap(urns: np.ndarray, horizon: int) -> float:
    found = theory.losses(urns, horizon)
    return float((found["generalizing"] - found["memorizing"]).mean())


def _picture(settings: _Gap, sizes: np.ndarray, gaps: np.ndarray) -> Figure:
    return one_panel(
        "What generalizing loses more than memorizing on a pool",
        f"S = {settings.symbols}, T = {settings.horizon}, {settings.drawn} pools",
        *curve(sizes, gaps, "difference", 0),
        xlabel="tasks K of the pool",
        ylabel="nats in one prediction",
        xscale="log",
        yscale="log",
        caption="Line: median over pools, band: all pools. Losses are exact.",
    )


class _Bayes(Settings):
    sets: tuple[tuple[int, int, int], ...] = ((2, 10, 3), (3, 7, 5))
    rounding: float = 1e-12
    seed: int = 0


class _Gap(Settings):
    symbols: int = 3
    horizon: int = 24
    doublings: int = 8
    few: int = 2
    many: int = 3
    drawn: int = 20
    nearness: float = 0.2
    seed: int = 100


CLAIMS = (
    Claim(
        id=f"{PAPER}/bayes",
        title="Each strategy is Bayes' rule for its own urns",
        evidence="exact",
        origin="paper",
        statement="""The memorizing predictor is Bayes' rule for urns of the pool and the generalizing one for new urns; each
            loses less than the other there, after every number of draws.""",
        source="wurgaft2025, abstract; the predictors: `models.py:275-439` of the authors' program at 7fcd0a6",
        settings=presets(_Bayes(), sets=((2, 14, 3), (3, 9, 5), (4, 7, 16))),
        check=_bayes,
        criterion="""Sums over all sequences and counts. A strategy differs from the ratio of the probabilities of sequences
            by at most 10⁻¹² (rounding) everywhere, and loses less by more than that after every number of draws from 0 on.""",
    ),
    Claim(
        id=f"{PAPER}/loss-gap",
        title="On many urns the loss gap falls as one over K",
        evidence="measured, reduced",
        origin="ours",
        statement="""From many urns on, every doubling of the pool about halves what generalizing loses more than memorizing
            on it; on few urns it takes off less.""",
        source="""wurgaft2025, whose odds rest on this difference (`models.py:898-938` of the authors' program at 7fcd0a6),
            derived here""",
        settings=presets(_Gap(), symbols=4, doublings=10, drawn=40),
        check=_gap,
        criterion="""Losses are exact sums over counts. The 95 % interval over pools of the power of 1/K lies between 0.8 and
            1.2 from 32 to 256 urns (full: from 128 to 1024), and below 0.8 from 1 to 4 urns. A fifth allows for pools that
            are not yet large.""",
        history="""For ten other pools with 3 and 4 symbols the powers were 0.43 and 0.40 at first, 0.98 and 0.93 at last.""",
    ),
)
