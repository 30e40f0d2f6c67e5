"""Losses of trained models, beside those of the construction and of the Bayes predictor."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from .._claim import Claim, Finding, Settings, all_of, both
from .._intervals import above, below, between, mean_interval
from ._model import (
    PAPER,
    counted_losses,
    cross_entropies,
    drawn,
    model_probabilities,
    posterior_losses,
    random_graphs,
    trained,
)


class _Losses(NamedTuple):
    """Mean losses on the same fresh sequences, nats, one entry a graph; and the β of the construction."""

    model: np.ndarray
    construction: np.ndarray
    bayes: np.ndarray
    sharpness: list[float]


def _losses(settings: Settings) -> _Losses:
    """Losses of trained models; the construction has their ε, and the β that is best on other sequences."""
    processes, seed, floors = random_graphs(settings), settings["seed"], [settings["floor"]]
    rows = []
    for number, (process, model) in enumerate(zip(processes, trained(processes, settings), strict=True)):
        names = ("loss", str(settings["positions"]), str(number))
        sample = drawn(process, settings["chosen_on"] + settings["sequences"], *names, seed=seed)
        chosen, judged = np.split(sample, [settings["chosen_on"]])
        tried = [counted_losses(process, chosen, beta, floors).mean() for beta in settings["sharpness"]]
        beta = settings["sharpness"][int(np.argmin(tried))]
        found = cross_entropies(model_probabilities(model, judged[:, :-1]), judged[:, -1])
        counted = counted_losses(process, judged, beta, floors)
        rows.append((found.mean(), counted.mean(), posterior_losses(process, judged).mean(), beta))
    model_losses, construction, bayes, sharpness = zip(*rows, strict=True)
    return _Losses(np.array(model_losses), np.array(construction), np.array(bayes), list(sharpness))


def _trained_loss(settings: Settings) -> Finding:
    """Trained models beside the construction and the posterior mean."""
    losses = _losses(settings)
    center, interval = mean_interval(losses.model - losses.construction)
    gap, gap_interval = mean_interval(losses.model - losses.bayes)
    return Finding(
        {"above_the_construction": center, "above_bayes": gap},
        {"above_the_construction": 0.0, "above_bayes": "positive"},
        settings["tolerance"],
        all_of(
            between(interval, -settings["tolerance"], settings["tolerance"]),
            above(gap_interval, 0.0),
        ),
        {
            "intervals_95": {"above_the_construction": interval, "above_bayes": gap_interval},
            "bayes_loss": losses.bayes.tolist(),
            "sharpness": losses.sharpness,
            "guessing": float(np.log(settings["states"])),
            "left_of_the_gain_over_guessing": _shares(losses, settings).tolist(),
            "meaning": "nats, differences on the same sequences, one entry per graph",
        },
    )


def _shares(losses: _Losses, settings: Settings) -> np.ndarray:
    """What the trained models leave of the Bayes predictor's gain over guessing."""
    return (losses.model - losses.bayes) / (np.log(settings["states"]) - losses.bayes)


def _trained_lengths(settings: Settings) -> Finding:
    """What trained models leave of the gain, by length."""
    shares = np.array(
        [
            _shares(_losses({**settings, "positions": size}), settings)  # (graphs,)
            for size in settings["lengths"]
        ]
    )
    found = [mean_interval(row) for row in shares]
    falls = [mean_interval(later - earlier) for earlier, later in pairwise(shares)]
    return Finding(
        {"left_of_the_gain": [share for share, _ in found], "from_length_to_length": [d for d, _ in falls]},
        {"left_of_the_gain": "falls with every length", "from_length_to_length": "below 0"},
        None,
        all_of(*(below(interval, 0.0) for _, interval in falls)),
        {
            "lengths": settings["lengths"],
            "each_graph": shares.tolist(),
            "intervals_95": {"share": [i for _, i in found], "from_length_to_length": [i for _, i in falls]},
            "meaning": "share of guessing minus Bayes that the trained model does not gain; graphs differ between lengths",
        },
    )


_TRAINING: dict[str, Any] = {
    "states": 10,
    "alpha": 0.1,
    "floor": 0.1,
    "sharpness": [4, 5, 6, 7, 8, 10, 12],
    "rate": 0.1,
    "steps": 250,
    "batch": 128,
    "seed": 0,
    "seeds": 4,
    "sequences": 10_000,
    "chosen_on": 3000,
}
_PAPER: dict[str, Any] = {"rate": 0.05, "steps": 2000, "batch": 1024, "seeds": 10, "sequences": 100_000}

CLAIMS = (
    Claim(
        id=f"{PAPER}/trained-loss",
        statement=(
            "The trained transformer has the loss of the construction that knows the graph (same ε = 0.1, best β) to 0.01 "
            "nats, and a higher one than the posterior mean under the Dirichlet prior (random graphs, T = 20, S = 10, α = 0.1; "
            "Adam; quick: 250 steps of 128 sequences, four graphs; paper: 2000 steps of 1024, ten graphs)."
        ),
        source="nichani2024, main theorem and experiments (loss); the comparison is ours",
        origin="ours",
        settings=both({**_TRAINING, "positions": 20, "tolerance": 0.01}, **_PAPER),
        check=_trained_loss,
        tolerance_reason=(
            "ends of the 95 % interval over graphs of differences on the same sequences; a fiftieth of the half nat that Bayes "
            "gains over guessing"
        ),
    ),
    Claim(
        id=f"{PAPER}/trained-approaches-bayes",
        statement=(
            "The longer the sequences, the nearer the trained transformer comes to the Bayes predictor: what it leaves of that "
            "one's gain over guessing falls with every doubling of T (random graphs, S = 10, α = 0.1, ε = 0.1; Adam; quick: "
            "T = 10 and 20, 250 steps of 128 sequences, four graphs each; paper: also 40 and 80, 2000 steps of 1024, ten)."
        ),
        source="nichani2024, main theorem and experiments (the loss approaches that of the Bayes predictor)",
        settings=both({**_TRAINING, "lengths": [10, 20]}, **{**_PAPER, "lengths": [10, 20, 40, 80]}),
        check=_trained_lengths,
        tolerance_reason="no distance: 95 % intervals over graphs of the differences between lengths must lie below 0",
    ),
)
