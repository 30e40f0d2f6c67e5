"""How fast gradient flow of the looped layer is, beside the time that gradient dominance allows."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from mesascope.dynamics import gradient_flow
from mesascope.models import LinearAttentionStack, Looped, PreconditionedLinearAttention
from mesascope.processes import FewShot, LinearRegression
from mesascope.records import Figure, Line, Panel, Rule
from mesascope.theory import gatmiry2024 as theory

from .._claim import Claim, Finding, UnsettledError, presets, within
from .._prompts import prompt_model
from .._runs import require_finished
from ._common import PAPER, Inputs


class _Fall(NamedTuple):
    """The loss ℓ along A' = −∇ℓ until it is low enough, and the longest times that the inequality allows, each (n,)."""

    times: np.ndarray
    losses: np.ndarray
    allowed: np.ndarray

    @property
    def share(self) -> float:
        """The largest part of the allowed time that the flow takes."""
        return float(np.max(self.times / self.allowed))


def _fall(settings: _Rate, loops: int, number: int) -> _Fall:
    """One flow for these loops, from a random start."""
    rng = np.random.default_rng([settings.seed, loops, number])
    a = jnp.asarray(settings.scale * rng.normal(size=(settings.dim,) * 2))
    start = prompt_model(Looped(LinearAttentionStack([PreconditionedLinearAttention(a)]), loops))
    process, task = LinearRegression(settings.dim), FewShot(settings.examples)
    flow = require_finished(gradient_flow(start, process, task, rtol=1e-8, tolerance=1e-6))
    times, losses = flow.times / 2, 2 * flow.loss  # the objective is ½ℓ: its flow takes twice as long
    counted = (losses < _BEGUN * losses[0]) & (losses >= _floor(settings, loops))
    if losses[-1] >= _floor(settings, loops) or not counted.any():
        raise UnsettledError(f"a flow of {loops} loops ends at the loss {losses[-1]:.3g}, above the floor")
    allowed = theory.dominated_time(losses[counted], float(losses[0]), loops)
    return _Fall(times[counted], losses[counted], allowed)


_BEGUN = 0.99  # of the loss at the start: above it both times are nearly 0


def _floor(settings: _Rate, loops: int) -> float:
    """The loss down to which the inequality is known to hold."""
    sizes = (settings.dim, settings.examples, loops)
    return settings.floor * theory.multiple_loss(theory.best_multiple(*sizes), *sizes)


def _rate(settings: _Rate) -> Finding:
    """Flow times beside those that the inequality allows for the same loss."""
    falls = {
        loops: [_fall(settings, loops, number) for number in range(settings.starts)]
        for loops in settings.loops
    }
    shares = {f"{loops}": [one.share for one in found] for loops, found in falls.items()}
    worst = max(map(max, shares.values()))
    return Finding(
        {"largest_part_of_the_allowed_time": worst},
        {"largest_part_of_the_allowed_time": f"at most {settings.most}"},
        None,
        within(worst, settings.most),
        {
            "parts_of_the_allowed_time": shares,
            "times_to_the_floor": {f"{loops}": float(found[0].times[-1]) for loops, found in falls.items()},
            "allowed_to_the_floor": {
                f"{loops}": float(found[0].allowed[-1]) for loops, found in falls.items()
            },
            "floors": {f"{loops}": _floor(settings, loops) for loops in settings.loops},
            "meaning": "times of A' = −∇ℓ, ℓ = E(ŷ − y)², Σ = I; floor: twice the least loss of multiples",
        },
        {"flow-rate": _figure(settings, {loops: found[0] for loops, found in falls.items()})},
    )


def _figure(settings: _Rate, falls: dict[int, _Fall]) -> Figure:
    panels = (
        Panel(
            title="one loop" if loops == 1 else f"{loops} loops",
            xlabel="flow time",
            ylabel="loss",
            xscale="log",
            yscale="log",
            traces=(
                Line(x=fall.times, y=fall.losses, label="exact flow"),
                Line(x=fall.allowed, y=fall.losses, label="slowest flow that is allowed"),
                Rule(value=_floor(settings, loops), label="twice the least loss"),
            ),
        )
        for loops, fall in falls.items()
    )
    return Figure(
        title="Gradient flow is faster than gradient dominance requires",
        panels=tuple(panels),
        width="page",
        caption=f"d = {settings.dim}, n = {settings.examples}.",
    )


class _Rate(Inputs):
    examples: int = 40
    loops: tuple[int, ...] = (1, 2, 3)
    starts: int = 3
    scale: float = 0.01
    floor: float = 2.0
    most: float = 1.0


CLAIMS = (
    Claim(
        id=f"{PAPER}/flow-rate",
        title="Gradient flow converges as fast as gradient dominance requires",
        statement=(
            "Down to twice the least loss, exact gradient flow of A for one to three loops from small random starts reaches "
            "every loss within the time that ‖∇_A ℓ‖² ≥ ℓ^{(2L−1)/L}/16 allows."
        ),
        source=(
            "gatmiry2024, abstract (fast convergence of gradient flow by gradient dominance) and Theorems 3.3 and 3.4 (arXiv "
            "v1, second-hand); the time is the inequality, integrated here"
        ),
        origin="paper, second-hand",
        evidence="exact",
        settings=presets(_Rate(), dim=10, starts=5),
        check=_rate,
        criterion=(
            "Every saved point of every flow counts, from 0.99 of the first loss on: its time is at most 16 log(ℓ₀/ℓ) for one "
            "loop, and 16 L/(L − 1) (ℓ^{−(L−1)/L} − ℓ₀^{−(L−1)/L}) for L. The flow is solved to 1e-8. Below twice the least "
            "loss of multiples the inequality fails and nothing follows; that number is ours, see "
            "`dominance-above-the-least-loss`."
        ),
        cost="about 3 min",
    ),
)
