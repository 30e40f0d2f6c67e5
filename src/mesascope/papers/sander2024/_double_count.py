"""The term that the authors' loss for independent eigenvalues counts twice, and what it leaves in their weights."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from mesascope.core import named_key
from mesascope.dynamics import Descent
from mesascope.records import Decision, Figure, Line, Panel
from mesascope.theory import sander2024 as theory

from .._claim import Claim, Finding, Settings, presets, verdict_if, within
from .._runs import require_finished
from ._authors import LONGEST, PROGRAM, authors_descent, authors_start, stored_weights
from ._bare_tokens import DiagonalHeads, IndependentEigenvalues, loss_over_angles
from ._ends import PAPER


class WithTheTermTwice(IndependentEigenvalues):
    """Independent eigenvalues, with the loss of the authors' program."""

    def loss(self, heads: Any, row: Any) -> Any:
        """‖p‖²‖C‖² + p_{T−1}²‖C1‖² − 2 p_T tr C + d: the first product holds p_{T−1}², too."""
        c, p = heads, row
        return (p @ p) * (c**2).sum() + p[-2] ** 2 * (c.sum(1) ** 2).sum() - 2 * p[-1] * c.trace() + len(c)


def _double_count(settings: _DoubleCount) -> Finding:
    """Both losses against the layer at random weights, and descents on both against the stored weights."""
    right, excess = _errors(settings)
    stored, start = stored_weights("unitary"), authors_start(10)
    descents = {
        name: require_finished(
            authors_descent(start, process, settings.rate, settings.steps, settings.steps + 1)
        )
        for name, process in (("twice", WithTheTermTwice(10)), ("once", IndependentEigenvalues(10)))
    }
    distances = {name: _distances(descent, stored) for name, descent in descents.items()}
    ends = {name: float(found[-1]) for name, found in distances.items()}
    before = {
        name: np.abs(np.asarray(descent.trajectory.positions)[:, LONGEST - 1, -2])
        for name, descent in descents.items()
    }
    last_stored = float(abs(stored.row(LONGEST)[-2]))
    parts: dict[str, Decision] = {
        "the loss without it is exact": within(max(right.values()), settings.tolerance),
        "theirs is larger by it": within(max(excess.values()), settings.tolerance),
        "descent with it gives their weights": within(ends["twice"], settings.rounding),
        "descent without it does not": _far(ends["once"], settings.apart),
    }
    return Finding.of_parts(
        {
            "error_of_the_loss_without_it": max(right.values()),
            "error_of_the_excess": max(excess.values()),
            "distance_of_descent_with_it": ends["twice"],
            "distance_of_descent_without_it": ends["once"],
        },
        {
            "error_of_the_loss_without_it": 0.0,
            "error_of_the_excess": 0.0,
            "distance_of_descent_with_it": 0.0,
            "distance_of_descent_without_it": f"above {settings.apart}",
        },
        settings.rounding,
        parts,
        {
            "errors": {"without_it": right, "excess": excess},
            "size_of_p_T-1_in_the_longest_context": {
                **{name: float(path[-1]) for name, path in before.items()},
                "stored": last_stored,
            },
            "c": {
                **{name: descent.model.scale() for name, descent in descents.items()},
                "stored": stored.scale(),
            },
            "entries_that_no_loss_reaches_differ_from_the_start_by": _untouched(stored, start),
            "meaning": "distances: largest difference of an entry of A, B or P from the stored one, after the last step",
        },
        {"double-count": _figure(distances, before, last_stored)},
    )


def _errors(settings: _DoubleCount) -> tuple[dict[str, float], dict[str, float]]:
    """Of the right loss, and of what the programmed one has more, relative to the loss on all roots of unity."""
    right, excess = {}, {}
    process, programmed = IndependentEigenvalues(settings.dim), WithTheTermTwice(settings.dim)
    for context in settings.contexts:
        key = named_key(settings.seed, "unitary", str(context))
        layer = DiagonalHeads.gaussian(settings.dim, settings.heads, context, 1.0, key=key)
        measured = loss_over_angles(layer, process, context)
        heads, row = layer.product(), layer.row(context)
        term = row[-2] ** 2 * (heads**2).sum()
        right[f"T = {context}"] = float(abs(theory.unitary_loss(heads, row) / measured - 1))
        excess[f"T = {context}"] = float(abs((programmed.loss(heads, row) - measured) / term - 1))
    return right, excess


def _far(distance: float, least: float) -> Decision:
    return "undecided" if np.isnan(least) else verdict_if(distance > least)


def _distances(descent: Descent[DiagonalHeads], stored: DiagonalHeads) -> np.ndarray:
    """Largest difference of an entry from the stored one at every step."""
    path = descent.trajectory
    pairs = ((path.a, stored.a), (path.b, stored.b), (path.positions, stored.positions))
    return np.max([np.asarray(jnp.abs(found - wanted)).max((1, 2)) for found, wanted in pairs], axis=0)


def _untouched(stored: DiagonalHeads, start: DiagonalHeads) -> float:
    """Their row of no context, and the positions beyond each context, against the start."""
    used = np.tril(np.ones((LONGEST, LONGEST), bool))
    used[0] = False
    return float(np.abs(np.asarray(stored.positions - start.positions))[~used].max())


def _figure(distances: dict[str, np.ndarray], before: dict[str, np.ndarray], stored: float) -> Figure:
    steps = np.arange(len(distances["twice"]))
    names = {"twice": "term counted twice, as in the program", "once": "term counted once: the right loss"}
    end = {"x": steps[[0, -1]], "y": [stored, stored], "label": "stored weights", "series": "theory"}

    def lines(curves: dict[str, np.ndarray]) -> list[Line]:
        return [
            Line(x=steps, y=curves[name], label=label, series=series)
            for series, (name, label) in enumerate(names.items())
        ]

    return Figure(
        title="The authors' descent, again with their loss and with the right one",
        panels=(
            Panel(
                title="which loss gives the stored weights",
                xlabel="step",
                ylabel="largest distance from a stored entry",
                yscale="log",
                traces=tuple(lines(distances)),
            ),
            Panel(
                title="the trace that it leaves",
                xlabel="step",
                ylabel="$|p_{T-1}|$ of $T = 20$ tokens",
                yscale="log",
                traces=(*lines(before), Line(**end, style="dotted")),
            ),
        ),
        caption=(
            "From the authors' start, with their rate and number of steps. Counted twice, the term makes the last position "
            "but one vanish twice as fast, as it has in the stored weights."
        ),
    )


class _DoubleCount(Settings):
    dim: int = 2
    contexts: tuple[int, ...] = (2, 4)
    heads: int = 3
    seed: int = 0
    rate: float = 0.01
    steps: int = 100
    tolerance: float = 1e-12
    rounding: float = 1e-5
    apart: float = 1e-3


CLAIMS = (
    Claim(
        id=f"{PAPER}/double-count",
        title="The authors' unitary loss counts one term twice",
        evidence="exact",
        origin="ours",
        statement="""The authors' loss for independent eigenvalues counts p_{T−1}²‖C‖² twice, and their stored weights are those
            of gradient descent on it, not on the right loss.""",
        source=f"""found here; sander2024, authors' program {PROGRAM}, unitary.py:29-35 (the loss), :7-18 and :64-68 (start,
            rate, steps), tensors/{{A,B,P}}_unitary.npy""",
        settings=presets(_DoubleCount(), dim=4, contexts=(2, 3, 4, 6)),
        check=_double_count,
        criterion="""Losses are finite sums over roots of unity: 1e-12 is rounding. The descent is repeated with the authors'
            start, rate and 100 steps: 1e-5 allows for their single precision, and 1e-3 is a hundred times more. The start is
            theirs where no loss reaches: there the stored positions still hold it.""",
        cost="about 1 min",
    ),
)
