"""What pairs of positions tell of each other: with one parent the parent tells most, with two it need not."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import scipy  # its parts are imported where they are first used

from mesascope.processes import MarkovGraph
from mesascope.records import Figure
from mesascope.specs import show_number
from mesascope.theory import nichani2024 as theory

from .._claim import Claim, Finding, Settings, presets, verdict_if
from .._figures import matrix_panels
from ._model import PAPER

_ROUNDING = 1e-12  # of an information in nats
_MARGIN = 10  # the rule converges by a power of its nodes: what fewer change is not a bound
_TOGETHER = 500  # tables whose sequences are summed at once


class _Information(Settings):
    positions: int = 8
    alpha: float = 0.1
    even: float = 1.0
    nodes: int = 14
    fewer: int = 10


def _informations(
    positions: int, order: int, alpha: float, nodes: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Weights and I_ij, shape (n, T, T), at the nodes of the Gauss–Jacobi rule for the beta laws of the rows, two symbols."""
    process = MarkovGraph.chain(positions, 2, alpha, order)
    places, weights = scipy.special.roots_jacobi(nodes, alpha - 1, alpha - 1)
    chances, weights = (1 + places) / 2, weights / weights.sum()
    sequences = np.array(list(product(range(2), repeat=positions)))
    grid = np.array(list(product(range(nodes), repeat=process.rows)))
    for some in np.array_split(grid, max(1, len(grid) // _TOGETHER)):
        tables = np.stack([1 - chances[some], chances[some]], -1)
        found = theory.mutual_information(sequences, process.probabilities_given(sequences, tables), 2)
        yield weights[some].prod(-1), found


def _mean_information(positions: int, order: int, alpha: float, nodes: int) -> np.ndarray:
    """E I_ij over tables, shape (T, T)."""
    parts = _informations(positions, order, alpha, nodes)
    return np.sum([np.einsum("n,nij->ij", weights, found) for weights, found in parts], axis=0)


def _other_less_parent(last: np.ndarray) -> float:
    """What the best position that is no parent tells of the last one, less what the weaker of its two parents tells."""
    return float(last[:-3].max() - last[-3:-1].min())


def _tells(settings: _Information) -> Finding:
    """Differences of information with two parents, and the largest of all tables with one."""
    size = settings.positions
    alphas = {"concentrated": settings.alpha, "even": settings.even}
    mean = {name: _mean_information(size, 2, alpha, settings.nodes) for name, alpha in alphas.items()}
    found = {name: _other_less_parent(one[-1]) for name, one in mean.items()}
    errors = {
        name: abs(found[name] - _other_less_parent(_mean_information(size, 2, alpha, settings.fewer)[-1]))
        for name, alpha in alphas.items()
    }
    single = list(_informations(size, 1, settings.alpha, settings.nodes))
    beyond = max(float(np.max(one[:, -1, :-2].max(-1) - one[:, -1, -2])) for _, one in single)
    parts = {
        "two parents, concentrated: another position tells more": verdict_if(
            found["concentrated"] > _MARGIN * errors["concentrated"]
        ),
        "two parents, even: none does": verdict_if(found["even"] < -_MARGIN * errors["even"]),
        "one parent: none does, for any table": verdict_if(beyond <= _ROUNDING),
    }
    of_one = np.sum([np.einsum("n,nij->ij", weights, one) for weights, one in single], axis=0)
    shown = {
        f"One parent, α = {show_number(settings.alpha)}": of_one,
        f"Two parents, α = {show_number(settings.alpha)}": mean["concentrated"],
        f"Two parents, α = {show_number(settings.even)}": mean["even"],
    }
    return Finding.of_parts(
        {
            **{f"other_less_parent_{name}": value for name, value in found.items()},
            "other_less_one_parent": beyond,
        },
        {
            "other_less_parent_concentrated": "above 0",
            "other_less_parent_even": "below 0",
            "other_less_one_parent": 0.0,
        },
        _ROUNDING,
        parts,
        {
            "errors": errors,
            "last_position": {name: one[-1, :-1].tolist() for name, one in mean.items()},
            "meaning": (
                "nats, of the last position: the best that is no parent, less the weaker parent; errors: the change from the "
                "rule with fewer nodes; one parent: the largest difference of all tables of the rule"
            ),
        },
        {"two-parents-information": _figure(shown)},
    )


def _figure(shown: dict[str, np.ndarray]) -> Figure:
    """Title → mean information of all pairs, shape (T, T)."""
    return Figure(
        title="What two positions tell of each other",
        panels=matrix_panels(
            {name: np.tril(one, -1) for name, one in shown.items()},
            "earlier position, $j$",
            "position, $i$",
            colorlabel="mean information, nats",
        ),
        caption="The parents of $i$ are $i - 1$ and, where there are two, $i - 2$. On and above the diagonal nothing is shown.",
    )


CLAIMS = (
    Claim(
        id=f"{PAPER}/two-parents-information",
        title="With two parents and two symbols, another position can tell more",
        statement=(
            "In Markov chains of order two on two symbols (α = 0.1) a position that is no parent has in the mean more "
            "mutual information with the last symbol than its weaker parent."
        ),
        source=(
            "nichani2024, abstract (by data processing the largest entries of the gradient are edges; proved for one parent); "
            "two parents with α = 0.1, on five symbols and another graph: Figure 5 (multi_parent.ipynb, cell 1)"
        ),
        origin="ours",
        evidence="exact",
        settings=presets(_Information(), positions=10, nodes=18, fewer=14),
        check=_tells,
        criterion=(
            "The mean over tables is an integral over the beta laws of their rows (Gauss–Jacobi) of sums over all sequences. "
            "The difference must be above 0 at α = 0.1, and below 0 at α = 1, by ten times what fewer nodes change; with one "
            "parent no other position may tell more for any table of the rule, up to 1e-12."
        ),
    ),
)
