"""How much a memory recalls of random keys, exactly, by their number."""

from __future__ import annotations

import numpy as np

from mesascope.records import Figure, Line
from mesascope.theory import yang2024 as theory

from .._claim import Claim, Finding, Settings, presets, verdict_if
from .._figures import one_panel
from ._delta_rule import PAPER

Curves = dict[str, np.ndarray]


def _curves(settings: _Recall) -> Curves:
    """Errors of recall by number of pairs."""
    counts = range(2, settings.longest + 1)
    rates = np.arange(1, settings.tried + 1) / settings.tried
    kept = [[theory.recall_moments(settings.dim, count, rate) for rate in rates] for count in counts]
    sums = [theory.sum_recall_moments(settings.dim, count) for count in counts]
    return {
        "delta rule, best rate and gain": np.array([min(map(theory.recall_error, row)) for row in kept]),
        "delta rule, β = 1": np.array([theory.recall_error(row[-1], 1) for row in kept]),
        "linear attention, best gain": np.array([theory.recall_error(one) for one in sums]),
        "linear attention": np.array([theory.recall_error(one, 1) for one in sums]),
        "least squares": np.array([theory.least_recall_error(settings.dim, count) for count in counts]),
    }


def _random_keys(settings: _Recall) -> Finding:
    """Signs of differences of exact errors."""
    found = _curves(settings)
    counts = np.arange(2, settings.longest + 1)
    best, full, scaled, plain, least = found.values()
    share = best / scaled
    parts = {
        "best rates and gains: less": verdict_if(bool((share < 1 - settings.rounding).all())),
        "as layers are written: less": verdict_if(bool((full < plain * (1 - settings.rounding)).all())),
        "least squares: least": verdict_if(bool((least < best).all())),
    }
    after = counts[full > scaled]
    return Finding.of_parts(
        {
            "largest share": float(share.max()),
            "least share": float(share.min()),
            "pairs with the least share": int(counts[share.argmin()]),
            "pairs from which β = 1 is worse than scaled sums": int(after[0]) if len(after) else None,
        },
        {"largest share": "below 1"},
        None,
        parts,
        {"pairs": counts.tolist(), "errors": {name: one.tolist() for name, one in found.items()}},
        {"recall": _figure(settings, counts, found)},
    )


def _figure(settings: _Recall, counts: np.ndarray, found: Curves) -> Figure:
    shown = {name: np.minimum(one, settings.highest_drawn) for name, one in found.items()}
    return one_panel(
        "Recall of random keys",
        f"keys of {settings.dim} entries",
        *(
            Line(x=counts, y=one, label=name, series="theory" if name == "least squares" else number)
            for number, (name, one) in enumerate(shown.items())
        ),
        xlabel="pairs in the memory",
        ylabel="squared error of a value of length 1",
        caption=f"Exact, for keys that are uniform on the unit sphere; errors above {settings.highest_drawn} are cut.",
    )


class _Recall(Settings):
    dim: int = 16
    longest: int = 64
    tried: int = 50
    highest_drawn: int = 2
    rounding: float = 1e-12


CLAIMS = (
    Claim(
        id=f"{PAPER}/random-keys",
        title="The delta rule recalls more of random keys than linear attention",
        evidence="exact",
        origin="ours",
        statement="""For 2 to 64 random unit keys of 16 entries the delta rule recalls with less error than linear attention:
            with β = 1, and with best rate and gain against best gain.""",
        source="""yang2024, abstract (arXiv v2 and v5: the delta rule is more effective at associative recall, of trained
            models); the exact errors of random keys are derived here""",
        settings=presets(_Recall()),
        check=_random_keys,
        criterion="""For every number of pairs the error of the delta rule is less by more than rounding, 10⁻¹², and not less
            than that of least squares, below which no matrix gets. The best of 50 rates is taken: a better one would
            only lower the error of the delta rule. One pair is recalled exactly by both.""",
    ),
)
