"""Layers of a trained softmax transformer beside Newton's iterations and gradient steps, through linear probes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mesascope.core import named_key
from mesascope.learners import LeastSquares, Zero, predictions
from mesascope.models import PromptModel, prompt_transformer
from mesascope.probes import (
    LayerProgress,
    Problems,
    StepFamily,
    draw_problems,
    layer_progress,
    layer_streams,
    linear_probe,
)
from mesascope.processes import FewShot, LinearRegression
from mesascope.records import Figure, Panel

from .._claim import Claim, Finding, UnsettledError, all_of, presets
from .._figures import curve
from .._intervals import above, below, mean_interval
from .._recorded import Trainings, recorded_trainings
from .._runs import seeds_of
from .._still_falling import fall, halves, unless_falling
from ._newton import CONVENTIONS, PAPER
from ._similar import FrobeniusNewton, SumSteps


class _Layers(NamedTuple):
    """The iterations and steps most similar to every layer of one model, and the loss above the least possible.

    Attributes:
        counts: learner → the number of iterations or steps with the most similar errors, shape (L,).
        similarities: learner → their similarity, shape (L,); of "zero" that of the learner that answers 0.
        left: ½E(ŷ − ŷ_LS)² of the model half way through its training and at the end, which least squares, the best
            possible here, has not.
    """

    counts: dict[str, np.ndarray]
    similarities: dict[str, np.ndarray]
    left: tuple[float, float]


def _transformer(settings: _Transformer) -> Finding:
    """The numbers of iterations and of gradient steps with errors most similar to those of every layer."""
    models = zip(seeds_of(settings), *_trained(settings).values(), strict=True)
    found = [_layers(middle, end, seed, settings) for seed, middle, end in models]
    # (seeds, layers) each
    newton, descent = (
        np.array([one.counts[name] for one in found]) for name in ("newton", "gradient_descent")
    )
    alike = {name: np.array([one.similarities[name] for one in found]) for name in found[0].similarities}
    # layers before the first bring the examples together; after the last both have converged to least squares
    compared = slice(settings.first - 1, settings.last)
    more = [mean_interval(column) for column in np.diff(newton[:, compared], axis=1).T]
    times = [mean_interval(column) for column in np.diff(np.log(descent[:, compared]), axis=1).T]
    similar = mean_interval(alike["newton"][:, -1])
    closer = mean_interval(alike["newton"][:, -1] - alike["gradient_descent"][:, -1])
    falling = fall(*zip(*(one.left for one in found), strict=True))
    least, most = settings.per_layer
    parts = {
        "iterations": all_of(*(above(ends, least) for _, ends in more)),
        "gradient_steps": all_of(*(above(ends, float(np.log(settings.factor))) for _, ends in times)),
        "similarity": above(similar[1], settings.similarity),
        "nearer_to_newton": above(closer[1], 0.0),
    }
    parts = {name: unless_falling(decision, falling) for name, decision in parts.items()}
    # more training could not excuse layers that add too many iterations
    parts["not_too_many_iterations"] = all_of(*(below(ends, most) for _, ends in more))
    return Finding.of_parts(
        {
            "more_iterations": [mean for mean, _ in more],
            "times_as_many_gradient_steps": [float(np.exp(mean)) for mean, _ in times],
            "similarity_of_the_last_layer": similar[0],
            "similarity_above_that_of_gradient_descent": closer[0],
        },
        {
            "more_iterations": f"{least:g} to {most:g} with every layer",
            "times_as_many_gradient_steps": f"above {settings.factor} with every layer",
            "similarity_of_the_last_layer": f"above {settings.similarity}",
            "similarity_above_that_of_gradient_descent": "above 0",
        },
        None,
        parts,
        {
            "intervals_95": {
                "more_iterations": [ends for _, ends in more],
                "times_as_many_gradient_steps": [np.exp(ends).tolist() for _, ends in times],
                "similarity_of_the_last_layer": similar[1],
                "similarity_above_that_of_gradient_descent": closer[1],
            },
            "newton_iterations": newton.tolist(),
            "gradient_steps": descent.tolist(),
            "similarities": {name: rows.tolist() for name, rows in alike.items()},
            "fall_of_the_loss_in_the_second_half": falling,
            "meaning": f"one row per seed, by layer; compared from layer {settings.first} to {settings.last}; "
            "loss: ½E(ŷ − ŷ_LS)²",
        },
        {"transformer": _figure(settings, newton, descent)},
    )


def _problems(settings: _Transformer, seed: int, name: str) -> Problems:
    """Prompts of one seed; labels count after 1 … N examples, as without examples all learners have the same errors."""
    examples = settings.examples
    task = FewShot(examples, [0] + [1] * examples)
    key = named_key(seed, f"{name} prompts")
    return draw_problems(LinearRegression(settings.dim), task, settings.tasks, key)


def _layers(middle: PromptModel, end: PromptModel, seed: int, settings: _Transformer) -> _Layers:
    probed, judged = (_problems(settings, seed, name) for name in ("probed", "judged"))
    read = _read(end, probed, judged)
    progress = {name: layer_progress(read, family, judged) for name, family in _families(settings).items()}
    best = np.asarray(predictions(LeastSquares(), judged.x, judged.y, judged.queries))

    def left(model: PromptModel) -> float:
        streams = layer_streams(model, judged)
        answers = streams.read(streams.layers)
        return float(((answers - best) ** 2)[..., 0].mean(0) @ judged.weights) / 2

    return _Layers(
        {name: _by_layer(one, settings.first) for name, one in progress.items() if name != "zero"},
        {name: one.similarity.value.max(1)[1:] for name, one in progress.items()},
        (left(middle), left(end)),
    )


def _read(model: PromptModel, probed: Problems, judged: Problems) -> np.ndarray:
    """What linear probes read off every layer, shape (L + 1, prompts, N + 1, 1).

    They are fitted to the labels of other prompts, not to a learner: one that hardly answers is no easier to read.
    """
    maps = linear_probe(layer_streams(model, probed), probed).maps
    streams = layer_streams(model, judged).streams
    return np.stack([one(stream)[0] for one, stream in zip(maps, streams, strict=True)])


def _trained(settings: _Transformer) -> dict[int, list[PromptModel]]:
    """Half of the steps and all → one transformer per seed."""
    sizes = (settings.dim, settings.width, settings.layers, settings.heads, settings.examples)
    return recorded_trainings(
        lambda key: prompt_transformer(*sizes, key=key),
        LinearRegression(settings.dim),
        FewShot.every(settings.examples),
        halves(settings.steps),
        settings,
        warmup=settings.steps // 10,
        clip=1.0,
    )


def _families(settings: _Transformer) -> dict[str, StepFamily]:
    iterations = np.arange(settings.most_iterations + 1)
    steps, size = 2 ** np.arange(round(np.log2(settings.most_steps)) + 1), settings.step_size
    newton = tuple(FrobeniusNewton(int(count)) for count in iterations)
    descent = tuple(SumSteps(size, int(count)) for count in steps)
    return {
        "newton": StepFamily("newton", iterations, newton),
        "gradient_descent": StepFamily("gradient-descent", steps, descent),
        "zero": StepFamily("zero", np.zeros(1, int), (Zero(),)),
    }


def _by_layer(progress: LayerProgress, first: int) -> np.ndarray:
    """The count with the most similar errors behind layers 1 … L.

    Raises:
        UnsettledError: from layer `first` on one is the largest of the family, so that more might be more similar.
    """
    counts = np.asarray(progress.most_similar.steps.value[1:])
    most = progress.family.steps[-1]
    if np.any(counts[first - 1 :] == most):
        raise UnsettledError(f"a layer errs most like {most} steps of {progress.family.name}, the most tried")
    return counts


def _figure(settings: _Transformer, newton: np.ndarray, descent: np.ndarray) -> Figure:
    layers = np.arange(1, newton.shape[1] + 1)
    setting = f"d = {settings.dim}, N = {settings.examples}"
    return Figure(
        title="Layers of a softmax transformer",
        panels=(
            Panel(
                title=f"In Newton iterations, {setting}",
                xlabel="layer",
                ylabel="most similar iteration",
                traces=curve(layers, newton, "median", 0, "all seeds"),
            ),
            Panel(
                title=f"In gradient steps, {setting}",
                xlabel="layer",
                ylabel="most similar number of steps",
                yscale="log",
                traces=curve(layers, descent, "median", 1, "all seeds"),
            ),
        ),
        caption=(
            "How many iterations or steps err most like what a linear probe for the labels reads off every layer. The first "
            "layer moves examples together: nothing is predicted behind it."
        ),
    )


class _Transformer(Trainings):
    dim: int = 2
    examples: int = 6
    width: int = 32
    layers: int = 4
    heads: int = 4
    rate: float = 0.004
    steps: int = 1500
    batch: int = 64
    seed: int = 3
    tasks: int = 1000
    most_iterations: int = 40
    most_steps: int = 16_384
    step_size: float = 0.01
    first: int = 2
    last: int = 4
    per_layer: tuple[float, float] = (1.5, 6.0)
    factor: float = 1.5
    similarity: float = 0.8


CLAIMS = (
    Claim(
        id=f"{PAPER}/transformer",
        title="Each middle layer of a trained transformer adds about three Newton iterations",
        evidence="measured, another model",
        origin="paper",
        statement=(
            "Each middle layer of a trained softmax transformer adds about three Newton iterations and multiplies the gradient "
            "steps of most similar errors, and the last errs nearly like Newton's method, more than like gradient descent."
        ),
        source=(
            "fu2024, section 4.2 and Figures 3, 7b and 8 (layers 3 to 9 of the 12-layer GPT-2 of Garg et al.); "
            f"{CONVENTIONS}"
        ),
        settings=presets(
            _Transformer(),
            dim=20,
            examples=40,
            width=256,
            layers=12,
            heads=8,
            rate=1e-4,
            steps=500_000,
            tasks=4000,
            most_iterations=100,
            most_steps=65_536,
            first=3,
            last=9,
            similarity=0.98,
        ),
        check=_transformer,
        criterion=(
            "The 95 % intervals over seeds lie beyond the thresholds. From one compared layer to the next 1.5 to 6 "
            "iterations are added, half and twice the paper's three, and gradient steps are multiplied by more than 1.5 "
            "(paper: by two or more). The cosine of the last layer's errors with Newton's is above 0.8 (full: 0.98; paper: "
            "0.994) and above that with gradient descent (paper: by 0.006). Small compares layers 2 to 4 of 4, full layers 3 "
            "to 9 of 12 as the paper: behind layer 9 both have converged. Where the loss still fell by more than a tenth in "
            "the second half of the training, the claim is not called failed."
        ),
        history=(
            "At first probes were fitted to each learner in turn, which favours learners that hardly answer: a few gradient "
            "steps were the most similar to every layer (0.97, against 0.89 for Newton's method), on seeds 0 to 2. The "
            "measure was changed and judged on seeds from 3 on, with the same thresholds; seeds 3 to 5 were looked at with "
            "steps of 0.05 on the mean loss. The full preset asked for 0.99 and for all layers from the fifth on, which the "
            "paper's own layers 10 to 12 do not give."
        ),
        cost="about 50 days",
        papers_setting="about 50 days",
    ),
)
