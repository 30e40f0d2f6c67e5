"""The exact losses of the four strategies."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mesascope.core import named_key
from mesascope.processes import MarkovChains
from mesascope.records import Figure, Line, Panel
from mesascope.theory import edelman2024, park2024

from .._claim import Claim, Finding, Settings, presets, verdict_if, within
from .._intervals import above, below, mean_interval
from .._pools import off_bayes
from ._data import PAPER


def _bayes(settings: _Bayes) -> Finding:
    """How far Bi-Ret and Bi-Inf are from Bayes' rule, and by how much each loses less than all others on its own chains."""
    off: dict[str, float] = {}
    gains: dict[str, float] = {}
    for symbols, length, tasks in settings.sets:
        name, chains = f"{symbols} symbols, K = {tasks}", _chains(symbols, tasks, settings.seed)
        for strategy, one in _from_bayes(chains, length).items():
            off[f"{strategy}, {name}"] = one
        for strategy, found in (
            ("bi-ret", park2024.losses(chains, length)),
            ("bi-inf", park2024.losses_on_new(chains, length)),
        ):
            others = np.min([one for other, one in found.items() if other != strategy], 0)
            gains[f"{strategy}, {name}"] = float((others - found[strategy])[1:].min())
    parts = {f"Bayes' rule: {name}": within(one, settings.rounding) for name, one in off.items()}
    parts |= {f"least loss: {name}": verdict_if(one > settings.rounding) for name, one in gains.items()}
    return Finding.of_parts(
        {"largest difference": max(off.values()), "least gain": min(gains.values())},
        "differences 0, and gains above 0",
        settings.rounding,
        parts,
        {
            "differences": off,
            "gains": gains,
            "meaning": "gains: nats less than the best other, from two symbols on",
        },
    )


def _from_bayes(chains: np.ndarray, longest: int) -> dict[str, float]:
    """The largest differences of both bigram strategies from Bayes' rule."""
    symbols = chains.shape[-1]

    def of_pool(sequences: np.ndarray) -> np.ndarray:
        return np.asarray(chains[:, sequences[:, :-1], sequences[:, 1:]].prod(-1).mean(0) / symbols)

    def of_new(sequences: np.ndarray) -> np.ndarray:
        return edelman2024.likelihoods(sequences, symbols, 1.0)

    def answer(name: str) -> Callable[[np.ndarray], np.ndarray]:
        return lambda sequences: park2024.probabilities(name, sequences, chains)[:, -1]

    return {
        name: off_bayes(symbols, longest - 1, chance, answer(name))
        for name, chance in (("bi-ret", of_pool), ("bi-inf", of_new))
    }


def _short(settings: _Short) -> Finding:
    """What Bi-Inf loses more than Uni-Ret, on few chains in short contexts and on many chains in longer ones."""
    found = {
        tasks: [
            park2024.losses(_chains(settings.symbols, tasks, settings.seed + n), settings.longest)
            for n in range(settings.drawn)
        ]
        for tasks in (settings.few, settings.many)
    }
    more = {
        tasks: np.array([one["bi-inf"] - one["uni-ret"] for one in several])
        for tasks, several in found.items()
    }
    last, first = settings.lengths
    intervals = {
        tasks: [mean_interval(one)[1] for one in rows.T] for tasks, rows in more.items()
    }  # by context length, from 1 on
    least = settings.least
    parts = {
        f"K = {settings.few}, t = {t}": above(intervals[settings.few][t - 1], least)
        for t in range(1, last + 1)
    } | {
        f"K = {settings.many}, t = {t}": below(intervals[settings.many][t - 1], least)
        for t in range(first, settings.longest)
    }
    return Finding.of_parts(
        {
            f"K = {settings.few}, t = {last}": float(more[settings.few][:, last - 1].mean()),
            f"K = {settings.many}, t = {first}": float(more[settings.many][:, first - 1].mean()),
        },
        f"above 0 for K = {settings.few} up to t = {last}, below 0 for K = {settings.many} from t = {first} on",
        None,
        parts,
        {
            "intervals_95": {str(tasks): one for tasks, one in intervals.items()},
            "mean_losses": {
                str(tasks): {name: np.mean([one[name] for one in several], 0) for name in park2024.STRATEGIES}
                for tasks, several in found.items()
            },
            "meaning": "nats that Bi-Inf loses more than Uni-Ret, mean over pools, by context length",
        },
        {"losses": _picture(settings, found)},
    )


def _chains(symbols: int, tasks: int, seed: int) -> np.ndarray:
    return np.asarray(MarkovChains(symbols).draw_tasks(named_key(seed, "chains"), tasks), float)


def _picture(settings: _Short, found: dict[int, list[dict[str, np.ndarray]]]) -> Figure:
    lengths = np.arange(1, settings.longest)
    return Figure(
        title="What each strategy loses on chains of a pool",
        panels=tuple(
            Panel(
                title=f"{settings.symbols} symbols, K = {tasks}",
                xlabel="context length $t$",
                ylabel="expected cross-entropy [nats]",
                traces=tuple(
                    Line(x=lengths, y=np.mean([one[name] for one in several], 0), label=name, series=series)
                    for series, name in enumerate(park2024.STRATEGIES)
                ),
            )
            for tasks, several in found.items()
        ),
        caption="Exact sums over all sequences, means over pools.",
    )


class _Bayes(Settings):
    sets: tuple[tuple[int, int, int], ...] = ((2, 10, 3), (3, 7, 5))
    rounding: float = 1e-12
    seed: int = 0


class _Short(Settings):
    symbols: int = 3
    longest: int = 9
    few: int = 2
    many: int = 32
    lengths: tuple[int, int] = (3, 3)
    drawn: int = 20
    least: float = 0.0
    seed: int = 100


CLAIMS = (
    Claim(
        id=f"{PAPER}/bayes",
        title="Bi-Ret is Bayes' rule on the pool, Bi-Inf on new chains",
        evidence="exact",
        origin="ours",
        statement="""With uniform first symbols Bi-Ret is Bayes' rule for chains of the pool and Bi-Inf for new ones; from
            two symbols on each loses less there than the three other strategies.""",
        source="""park2024, whose strategies they are: `analysis_markov_mixture.py:175-204` and `utils.py:902-930` of the
            authors' program at e36d2d3""",
        settings=presets(_Bayes(), sets=((2, 14, 3), (3, 9, 5), (4, 7, 16))),
        check=_bayes,
        criterion="""Sums over all sequences. A strategy differs from the ratio of the probabilities of sequences by at most
            10⁻¹² (rounding) everywhere, and loses less by more than that at every context length from two on.""",
    ),
    Claim(
        id=f"{PAPER}/short-contexts",
        title="On few chains Uni-Ret beats Bi-Inf in short contexts",
        evidence="measured, reduced",
        origin="ours",
        statement="""On pools of two chains of three symbols Uni-Ret loses less than Bi-Inf in contexts of up to three
            symbols; on pools of 32 it loses more in contexts of three to eight.""",
        source="park2024, whose strategies they are; `assets/phases.png` of the authors' program at e36d2d3 shows models",
        settings=presets(_Short(), drawn=40, longest=10),
        check=_short,
        criterion="""Losses are exact sums over sequences. 95 % intervals over 20 pools (full: 40) of the difference lie
            above 0 for two chains and below 0 for 32, at every of these lengths up to 8 (full: 9).""",
        history="The lengths were read off ten other pools of each size.",
    ),
)
