"""How near attention that looks the graph up comes to the Bayes predictor."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from mesascope.processes import MarkovTree
from mesascope.records import Band, Figure, Line, Panel, Rule
from mesascope.theory import nichani2024 as theory

from .._claim import Claim, Finding, Settings, both, decide
from .._intervals import mean_interval
from ._model import PAPER, cross_entropies, drawn, graph, model_probabilities, trained, with_floor


def _trained_loss(settings: Settings) -> Finding:
    """Trained models beside the construction and the posterior mean, on the same sequences."""
    process = graph(settings)
    counted: list[float] = []
    bayes: list[float] = []
    levels: list[float] = []
    for number, model in enumerate(trained(process, settings)):
        sample = drawn(process, settings["sequences"], "trained loss", str(number), seed=settings["seed"])
        symbols, targets = sample[:, :-1], sample[:, -1]
        found = cross_entropies(model_probabilities(model, symbols), targets)
        posterior = _posterior(process, symbols, targets)
        wanted = _counted(process, symbols, targets, settings["sharpness"], settings["floor"])
        counted.append(float(np.mean(found - wanted)))
        bayes.append(float(np.mean(found - posterior)))
        levels.append(float(np.mean(posterior)))
    (center, interval), (gap, gap_interval) = mean_interval(counted), mean_interval(bayes)
    farthest = max(abs(end) for end in interval)
    return Finding(
        {"above_the_construction": center, "above_bayes": gap},
        {"above_the_construction": 0.0, "above_bayes": "positive"},
        settings["tolerance"],
        decide(farthest <= settings["tolerance"] and gap_interval[0] > 0),
        {
            "intervals_95": {"above_the_construction": interval, "above_bayes": gap_interval},
            "bayes_loss": levels,
            "guessing": float(np.log(settings["states"])),
            "left_of_the_gain_over_guessing": gap
            / (float(np.log(settings["states"])) - float(np.mean(levels))),
            "meaning": "nats, differences on the same sequences, one entry per seed",
        },
    )


def _posterior(process: MarkovTree, symbols: np.ndarray, targets: np.ndarray) -> np.ndarray:
    mean = theory.posterior_mean(process.parents, symbols, process.states, process.alpha)
    return cross_entropies(mean, targets)


def _counted(
    process: MarkovTree, symbols: np.ndarray, targets: np.ndarray, sharpness: float, floor: float
) -> np.ndarray:
    frequencies = theory.matched_frequencies(process.parents, symbols, process.states, sharpness)
    return cross_entropies(with_floor(frequencies, floor), targets)


def _lengths(settings: Settings) -> Finding:
    """The share of the gain over guessing that the construction leaves, by length."""
    guessing = float(np.log(settings["states"]))
    rows = []
    for size in settings["lengths"]:
        process = MarkovTree.random(size, settings["states"], settings["alpha"], settings["graph"])
        sample = drawn(process, 2 * settings["sequences"], "lengths", str(size), seed=settings["seed"])
        chosen, judged = np.split(sample, 2)
        best = min(
            (float(np.mean(_counted(process, chosen[:, :-1], chosen[:, -1], beta, floor))), beta, floor)
            for beta in settings["sharpness"]
            for floor in settings["floors"]
        )
        posterior = _posterior(process, judged[:, :-1], judged[:, -1])
        above = _counted(process, judged[:, :-1], judged[:, -1], best[1], best[2]) - posterior
        gap, interval = mean_interval(above)
        gain = guessing - float(posterior.mean())
        rows.append(
            {
                "length": size,
                "bayes": float(posterior.mean()),
                "above_bayes": gap,
                "share": gap / gain,
                "share_interval": [end / gain for end in interval],
                "sharpness": best[1],
                "floor": best[2],
            }
        )
    shares = [row["share"] for row in rows]
    ends = [row["share_interval"] for row in rows]
    falling = all(after[1] < before[0] for before, after in pairwise(ends))
    return Finding(
        {"left_of_the_gain": shares, "above_bayes": [row["above_bayes"] for row in rows]},
        f"each interval of the share below the one before, the last below {settings['last']}",
        None,
        decide(falling and ends[-1][1] < settings["last"]),
        {
            "rows": rows,
            "entropy_of_the_transitions": theory.entropy_of_rows(settings["states"], settings["alpha"]),
            "guessing": guessing,
            "meaning": "nats; share: of guessing minus Bayes; sharpness and floor chosen on other sequences",
        },
        {"lengths": _figure(rows, settings, guessing)},
    )


def _figure(rows: list[dict[str, Any]], settings: Settings, guessing: float) -> Figure:
    sizes = [row["length"] for row in rows]
    low, high = ([row["share_interval"][end] for row in rows] for end in (0, 1))
    return Figure(
        title="Attention along the graph approaches the Bayes predictor",
        panels=(
            Panel(
                title=f"Loss, S = {settings['states']}, α = {settings['alpha']}",
                xlabel="positions $T$",
                ylabel="loss (nats)",
                xscale="log",
                traces=(
                    Line(x=sizes, y=[row["bayes"] + row["above_bayes"] for row in rows], label="attention"),
                    Line(x=sizes, y=[row["bayes"] for row in rows], label="Bayes, graph known"),
                    Rule(
                        value=theory.entropy_of_rows(settings["states"], settings["alpha"]),
                        label="transitions known",
                    ),
                ),
            ),
            Panel(
                title="What attention leaves",
                xlabel="positions $T$",
                ylabel="share of the gain over guessing",
                xscale="log",
                traces=(
                    Band(x=sizes, low=low, high=high, label="95 % interval", series=0),
                    Line(x=sizes, y=[row["share"] for row in rows], label="attention", series=0),
                ),
            ),
        ),
        caption=f"Guessing costs {guessing:.3g} nats.",
    )


CLAIMS = (
    Claim(
        id=f"{PAPER}/trained-loss",
        statement=(
            "The trained transformer has the loss of the construction that knows the graph (β = 8, same ε = 0.1) to 0.01 nats, "
            "and a higher one than the posterior mean under the Dirichlet prior (random graph, T = 20, S = 10, α = 0.1; Adam; "
            "quick: 250 steps of 128 sequences, three seeds; paper: 2000 steps of 1024, ten seeds)."
        ),
        source="nichani2024, main theorem and experiments (loss); the comparison is ours",
        settings=both(
            {
                "graph": 1,
                "positions": 20,
                "states": 10,
                "alpha": 0.1,
                "floor": 0.1,
                "sharpness": 8,
                "rate": 0.1,
                "steps": 250,
                "batch": 128,
                "seed": 0,
                "seeds": 3,
                "sequences": 20_000,
                "tolerance": 0.01,
            },
            rate=0.05,
            steps=2000,
            batch=1024,
            seeds=10,
            sequences=100_000,
        ),
        check=_trained_loss,
        tolerance_reason=(
            "ends of the 95 % interval over seeds of differences on the same sequences; a fiftieth of the half nat that Bayes "
            "gains over guessing"
        ),
    ),
    Claim(
        id=f"{PAPER}/bayes-loss",
        statement=(
            "With growing T attention along the graph approaches the Bayes predictor: what it leaves of that one's gain over "
            "guessing falls from T to 8T each time and ends below 0.15 (S = 10, Dirichlet α = 0.1, random graphs, β and ε best "
            "for each T; quick: T = 10, 80, 640, paper: up to 5120)."
        ),
        source="nichani2024, main theorem (loss for T → ∞)",
        settings=both(
            {
                "lengths": [10, 80, 640],
                "graph": 1,
                "states": 10,
                "alpha": 0.1,
                "sharpness": [4, 5, 6, 7, 8, 10],
                "floors": [0.2, 0.1, 0.05, 0.03, 0.01, 0.003],
                "seed": 0,
                "sequences": 2000,
                "last": 0.15,
            },
            lengths=[10, 80, 640, 5120],
            sequences=10_000,
        ),
        check=_lengths,
        tolerance_reason="no distance: 95 % intervals over sequences must not overlap",
    ),
)
