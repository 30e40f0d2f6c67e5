"""One trained layer of linear attention beside one step of gradient descent: loss, sensitivities, weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from mesascope.core import named_key
from mesascope.probes import sensitivity_cosine, sensitivity_distance
from mesascope.records import Figure, Panel, Rule
from mesascope.theory import Construction
from mesascope.theory import vonoswald2023 as theory

from .._claim import Claim, Finding, Settings, all_of, both, within
from .._figures import curve
from .._intervals import above, below, mean_interval
from .._prompts import construction_model, fresh_losses, layer_weights
from .._runs import seeds_of
from .._still_falling import loss_between, unless_falling
from ._common import PAPER, best_loss, best_step_size, data, query_sensitivities
from ._layers import (
    PAPER_SIZES,
    SCALE,
    TRAINING,
    at_the_end,
    best_step,
    fall_of_the_loss,
    loss_above_the_step,
    trained_layers,
)


def _loss(settings: Settings) -> Finding:
    """Trained layers have the loss of the best step, and the best step that of the closed form."""
    over, z = loss_above_the_step(at_the_end(settings), settings)
    center, interval = mean_interval(over)
    tolerance, falling = settings["tolerance"], fall_of_the_loss(settings)
    return Finding(
        {"loss_above_the_best_step": center, "z_of_the_closed_form": z},
        {"loss_above_the_best_step": 0.0, "z_of_the_closed_form": f"|z| ≤ {settings['largest_z']}"},
        tolerance,
        all_of(loss_between(interval, -tolerance, tolerance, falling), within(abs(z), settings["largest_z"])),
        {
            "interval_95": interval,
            "fall_of_the_loss_in_the_second_half": falling,
            "each_seed": over,
            "closed_form": best_loss(settings),
            "meaning": "differences on the same prompts, in units of the closed form of the best step's loss",
        },
    )


def _printed(settings: Settings) -> Finding:
    """The number in the authors' notebook beside samples of the same size."""
    process, task = data(settings)
    model, exact = best_step(settings), best_loss(settings)
    means = np.array(
        [
            fresh_losses({"step": model}, process, task, settings["tasks"], settings["seed"] + number)[
                "step"
            ].mean()
            for number in range(settings["samples"])
        ]
    )
    spread = float(means.std(ddof=1))
    z = (settings["printed"] - exact) / spread
    return Finding(
        {"z_of_the_printed_number": z},
        {"z_of_the_printed_number": f"|z| ≤ {settings['largest_z']}"},
        settings["largest_z"],
        within(abs(z), settings["largest_z"]),
        {
            "printed": settings["printed"],
            "closed_form": exact,
            "standard_deviation_of_a_sample": spread,
            "lowest_and_highest_sample": [float(means.min()), float(means.max())],
        },
    )


def _alignment(settings: Settings) -> Finding:
    """Loss and sensitivities beside those of the best step, through training."""
    process, _ = data(settings)
    keys = [named_key(seed, "alignment") for seed in seeds_of(settings)]  # prompts of its own for every layer
    prompts = [process.sample(key, settings["examples"], settings["tasks"]) for key in keys]
    wanted = [np.asarray(query_sensitivities(best_step(settings), x, y)) for x, y in prompts]
    losses, cosines, distances = [], [], []
    for models in trained_layers(settings).values():
        losses.append([over + 1 for over in loss_above_the_step(models, settings)[0]])
        made = zip(models, prompts, strict=True)
        found = [np.asarray(query_sensitivities(model, x, y), float) for model, (x, y) in made]
        pairs = list(zip(found, wanted, strict=True))
        cosines.append([float(sensitivity_cosine(*pair).value) for pair in pairs])
        distances.append([float(sensitivity_distance(*pair).value) for pair in pairs])
    falling = fall_of_the_loss(settings)
    (cosine, cosine_interval), (distance, distance_interval) = (
        mean_interval(values[-1]) for values in (cosines, distances)
    )
    return Finding(
        {"cosine": cosine, "relative_distance": distance},
        {"cosine": f"above {settings['cosine']}", "relative_distance": f"below {settings['distance']}"},
        None,
        unless_falling(
            all_of(
                above(cosine_interval, settings["cosine"]), below(distance_interval, settings["distance"])
            ),
            falling,
        ),
        {
            "fall_of_the_loss_in_the_second_half": falling,
            "intervals_95": {"cosine": cosine_interval, "relative_distance": distance_interval},
            "steps": settings["recorded"],
            "cosines": cosines,
            "distances": distances,
            "losses_over_that_of_the_best_step": losses,
            "meaning": "one entry per seed; distance: E|J − J'|²/E|J|² of the sensitivities J = ∂ŷ/∂x_q",
        },
        {"one-layer": _figure(settings, losses, cosines, distances)},
    )


def _figure(settings: Settings, losses: Any, cosines: Any, distances: Any) -> Figure:
    steps = settings["recorded"]
    shown = {
        "loss": curve(steps, np.transpose(losses), "trained layer", 0),
        "cosine": curve(steps, np.transpose(cosines), "trained layer", 0),
        "distance": curve(steps, np.transpose(distances), "trained layer", 0),
    }
    axes: dict[str, Any] = {"xlabel": "training step", "xscale": "log"}
    rule = Rule(value=1.0, label="one step of GD")
    return Figure(
        title="One trained layer of linear attention becomes one step of gradient descent",
        panels=(
            Panel(
                title=f"Loss, d = {settings['dim']}, N = {settings['examples']}",
                ylabel="loss / loss of the best step",
                traces=(*shown["loss"], rule),
                **axes,
            ),
            Panel(
                title="Cosine of $∂ŷ/∂x_q$ with the step's",
                ylabel="cosine",
                traces=(*shown["cosine"], rule),
                **axes,
            ),
            Panel(
                title="Distance of $∂ŷ/∂x_q$",
                ylabel="$E|J − J_{GD}|^2 / E|J|^2$",
                yscale="log",
                traces=shown["distance"],
                **axes,
            ),
        ),
        caption="Lines: median over the seeds; bands: all seeds.",
        width="page",
        across=3,
    )


def _interpolation(settings: Settings) -> Finding:
    """The loss half way between trained and constructed weights."""
    models = at_the_end(settings)
    construction = theory.gradient_descent(settings["dim"], [best_step_size(settings)])
    half_way = [construction_model(_half_way(layer_weights(model), construction)) for model in models]
    (ends, _), (middle, _) = (loss_above_the_step(group, settings) for group in (models, half_way))
    (trained, trained_interval), (halved, halved_interval) = mean_interval(ends), mean_interval(middle)
    tolerance, falling = settings["tolerance"], fall_of_the_loss(settings)
    return Finding(
        {"half_way_above_the_step": halved, "trained_above_the_step": trained},
        {"half_way_above_the_step": 0.0, "trained_above_the_step": 0.0},
        tolerance,
        all_of(
            *(
                loss_between(one, -tolerance, tolerance, falling)
                for one in (trained_interval, halved_interval)
            )
        ),
        {
            "fall_of_the_loss_in_the_second_half": falling,
            "intervals_95": {"half_way": halved_interval, "trained": trained_interval},
            "half_way": middle,
            "trained": ends,
            "meaning": "losses minus that of the best step on the same prompts, in units of the closed form",
        },
    )


def _half_way(trained: Construction, construction: Construction) -> Construction:
    """The mean of both, after W^KQ of the trained layer is given the size of the construction's, and W^PV the inverse.

    A layer does not change when W^KQ is multiplied by a number and W^PV divided by it.
    """
    size = float(np.sum(trained.w_kq * construction.w_kq) / np.sum(construction.w_kq**2))
    return Construction(
        (trained.w_kq / size + construction.w_kq) / 2, (trained.w_pv * size + construction.w_pv) / 2
    )


CLAIMS = (
    Claim(
        id=f"{PAPER}/trained-loss",
        statement=(
            "One trained layer of linear attention has the loss of one step of gradient descent with the best step "
            f"size to 1 %, and that loss is the closed form ½s²(d − t₁²/t₂) ({SCALE})."
        ),
        source="vonoswald2023, Figure 2 (left); the closed form is derived here",
        settings=both({**TRAINING, "tolerance": 0.01, "largest_z": 4.0}, **PAPER_SIZES),
        check=_loss,
        tolerance_reason=(
            "ends of the 95 % interval over seeds of differences on the same prompts: 1 % is what training leaves in "
            "weights that matter little; the closed form is met within 4 standard errors of all prompts"
        ),
    ),
    Claim(
        id=f"{PAPER}/printed-loss",
        statement=(
            "The loss 0.20468888 of one step of gradient descent that the authors' notebook stores, measured on 10⁴ "
            "tasks with d = N = 10 and inputs uniform on [−½, ½], lies as near the closed form 0.206229 as means over "
            "10⁴ tasks do: within 4 of their standard deviations."
        ),
        source="vonoswald2023, published notebook (a stored number)",
        settings=both(
            {
                "dim": 10,
                "examples": 10,
                "half_width": 0.5,
                "printed": 0.20468888,
                "tasks": 10_000,
                "samples": 40,
                "seed": 0,
                "largest_z": 4.0,
            }
        ),
        check=_printed,
        tolerance_reason=(
            "40 samples of 10⁴ tasks know their standard deviation to a ninth; that the authors chose the step on "
            "tasks of theirs lowers their number by far less than that"
        ),
    ),
    Claim(
        id=f"{PAPER}/sensitivities",
        statement=(
            "What a trained layer makes of the query, ∂ŷ/∂x_q, is that of the best step of gradient descent: mean "
            f"cosine above 0.99, relative squared distance below 0.02 ({SCALE})."
        ),
        source="vonoswald2023, Figure 2 (cosine and L2 distance of sensitivities)",
        settings=both(
            {**TRAINING, "tasks": 1000, "cosine": 0.99, "distance": 0.02}, **PAPER_SIZES, tasks=10_000
        ),
        check=_alignment,
        tolerance_reason="no distance: the ends of the 95 % intervals over seeds must lie beyond the thresholds",
    ),
    Claim(
        id=f"{PAPER}/interpolated-weights",
        statement=(
            "The mean of trained and constructed weights, after both are brought to one scale of W^KQ, has the loss of "
            f"the best step of gradient descent to 1 %, as the trained ones have ({SCALE})."
        ),
        source="vonoswald2023, Figure 2 and section 3 (interpolation)",
        settings=both({**TRAINING, "tolerance": 0.01}, **PAPER_SIZES),
        check=_interpolation,
        tolerance_reason="ends of the 95 % intervals over seeds of differences on the same prompts, as for trained-loss",
    ),
)
