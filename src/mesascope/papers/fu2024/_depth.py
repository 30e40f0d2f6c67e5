"""The best layers of linear attention, searched from many starts, beside Newton's iterations and gradient steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from mesascope.core import named_key
from mesascope.models import DiagonalSelfAttention, LinearAttentionStack, PromptModel
from mesascope.probes import identify
from mesascope.processes import FewShot, LinearRegression
from mesascope.records import Decision, Figure, Panel, Rule

from .._claim import Claim, Finding, all_of, presets
from .._figures import curve
from .._intervals import below, mean_interval
from .._minimized import Best, Minimum, best_of, minimized
from .._names import answer_of
from .._prompts import GD_PLUS_PLUS, prompt_model
from .._runs import Seeds, seeds_of
from .._shared import shared
from ._newton import PAPER
from ._similar import in_eigenvectors


class Spectra(NamedTuple):
    """What the loss of GD++ layers depends on in prompts without noise.

    Attributes:
        values: eigenvalues s of XᵀX/N, shape (prompts, d).
        parts: x_q and w along the eigenvectors, multiplied: shape (prompts, d). The query's label is their sum.
    """

    values: np.ndarray
    parts: np.ndarray


def layers_of(dim: int, couplings: Any) -> PromptModel:
    """GD++ layers with couplings (L, 2): what inputs write into inputs, and into labels."""
    layers = [DiagonalSelfAttention(one, (dim, 1), GD_PLUS_PLUS, context="examples") for one in couplings]
    return prompt_model(LinearAttentionStack(layers))


def regression(dim: int) -> LinearRegression:
    """Noiseless prompts, w ~ N(0, I/d): labels of variance 1."""
    return LinearRegression(dim, prior=np.eye(dim) / dim)


def spectra(x: Any, y: Any) -> Spectra:
    """Those of prompts (x (B, N + 1, d), y (B, N + 1)) without noise; N ≥ d."""
    values, vectors, cross = in_eigenvectors(x, y)
    query = np.einsum("bd,bdk->bk", np.asarray(x)[:, -1], vectors)
    return Spectra(values, query * cross / values)


@jax.jit
def log_loss(flat: Any, values: Any, parts: Any) -> Any:
    """Log ½E(ŷ − y)², and its gradient in the couplings of all layers.

    Layers multiply the inputs along an eigenvector by p and leave r of the label: with what inputs write into inputs, a, and
    into labels, b, r becomes r (1 + b s p²) and p becomes p (1 + a s p²).
    """

    def loss(couplings: Any) -> Any:
        size, left = jnp.ones_like(values), jnp.ones_like(values)
        for a, b in couplings.reshape(-1, 2):
            seen = values * size**2
            left, size = left * (1 + b * seen), size * (1 + a * seen)
        return jnp.log(jnp.mean((parts * left).sum(1) ** 2) / 2)

    return jax.value_and_grad(loss)(flat)


class BestLayers(Seeds):
    """The training prompts, the depths, and the searches for each depth."""

    dim: int = 8
    examples: int = 16
    layers: tuple[int, ...] = (1, 2, 3, 4)
    training_prompts: int = 1000
    starts: int = 160
    iterations: int = 1000
    largest_slope: float = 1e-5
    nearness: float = 1e-6


@shared(BestLayers)
def best_layers(settings: BestLayers) -> list[list[Best]]:
    """The best couplings of 1, 2, … layers, for the training prompts of every seed; values are ½E(ŷ − y)².

    Raises:
        UnsettledError: fewer than three starts reach the best of a depth.
    """
    found = []
    for seed in seeds_of(settings):
        key = named_key(seed, "training prompts")
        prompts = regression(settings.dim).sample(key, settings.examples, settings.training_prompts)
        seen = spectra(*prompts)
        found.append([_best(seen, depth, seed, settings) for depth in settings.layers])
    return found


def _best(seen: Spectra, depth: int, seed: int, settings: BestLayers) -> Best:
    slope = settings.largest_slope

    def search(start: np.ndarray) -> Minimum:
        with np.errstate(all="ignore"):  # steps that overflow are taken back
            end = minimized(
                lambda flat: log_loss(flat, *seen), start, slope, gtol=slope / 10, maxiter=settings.iterations
            )
        return Minimum(end.point, float(np.exp(end.value)))

    return best_of(search, _starts(seen, depth, seed, settings.starts), settings.nearness)


def _starts(seen: Spectra, depth: int, seed: int, count: int) -> Iterator[np.ndarray]:
    """Random couplings: where a layer sees eigenvalues up to m, between −1.5/m and 0.

    At −1/m the largest is answered, or taken out of the inputs, at once. Inputs shrink from layer to layer and couplings grow.
    """
    for number in range(count):
        rng = np.random.default_rng([seed, depth, number])
        size, couplings = np.ones_like(seen.values), np.zeros((depth, 2))
        for layer in range(depth):
            values = seen.values * size**2
            couplings[layer] = -rng.uniform(0, 1.5, 2) / values.max()
            size = size * (1 + couplings[layer, 0] * values)
        couplings[-1, 0] = 0.0  # what the last layer does to the inputs has no effect
        yield couplings.reshape(-1)


def _depth(settings: _Depth) -> Finding:
    """The numbers of iterations and of steps with the median error of every depth, and the name of one depth."""
    best = best_layers(settings)
    networks = [[layers_of(settings.dim, one.point.reshape(-1, 2)) for one in depths] for depths in best]
    rows = []
    for seed, models in zip(seeds_of(settings), networks, strict=True):
        prompts = _Prompts(settings, seed)
        errors = [prompts.of_model(model) for model in models]
        rows.append([(*prompts.equivalents(error), *prompts.similarities(error)) for error in errors])
    newton, descent, alike, alike_descent = np.moveaxis(np.array(rows), -1, 0)  # (seeds, layers) each
    more, times = np.diff(newton, axis=1), np.diff(np.log(descent), axis=1)
    gains, factors = ([mean_interval(column) for column in table.T] for table in (more, times))
    last = {
        "iterations": mean_interval(more[:, -1] / more[:, 0]),
        "logarithm_of_gradient_steps": mean_interval(times[:, -1] / times[:, 0]),
    }
    asked = [models[settings.layers.index(settings.asked)] for models in networks]
    process, task = regression(settings.dim), FewShot(settings.examples)
    names = [identify(model, process, task, tasks=settings.tasks, learners=_LEARNERS) for model in asked]
    parts = {"fewer iterations": _falls(more), "a smaller factor in gradient steps": _falls(times)}
    return Finding.of_parts(
        {
            "newton_iterations": newton.mean(0).tolist(),
            "gradient_steps": np.exp(np.log(descent).mean(0)).tolist(),
            "last_gain_over_the_first": {name: mean for name, (mean, _) in last.items()},
        },
        {"newton_iterations": "gains that fall with every layer"},
        None,
        parts,
        {
            "intervals_95": {name: interval for name, (_, interval) in last.items()},
            "more_iterations": [{"mean": mean, "interval_95": ends} for mean, ends in gains],
            "times_as_many_steps": [
                {"mean": float(np.exp(mean)), "interval_95": np.exp(ends).tolist()} for mean, ends in factors
            ],
            "losses": [[one.value for one in depths] for depths in best],
            "starts_that_reach_them": [[one.reached for one in depths] for depths in best],
            "each_seed": {"newton_iterations": newton.tolist(), "gradient_steps": descent.tolist()},
            "names_of_two_layers": [
                "none" if one.verdict == "none" else f"{one.verdict}: {' or '.join(one.candidates)}"
                for one in names
            ],
            "named": [answer_of(one, "newton") for one in names],
            "similarity_of_errors": {
                "newton": alike.mean(0).tolist(),
                "gradient_descent": alike_descent.mean(0).tolist(),
                "meaning": "of the best-matching count: mean cosine of the vectors ŵ − w, by the number of layers",
            },
        },
        {"depth": _figure(settings, newton, descent)},
    )


def _falls(gains: np.ndarray) -> Decision:
    """Whether every gain is below the one before: by the intervals over seeds of their differences."""
    return all_of(*(below(mean_interval(column)[1], 0.0) for column in np.diff(gains, axis=1).T))


_LEARNERS = ("zero", "gradient-descent", "gradient-descent++", "newton", "least-squares", "ridge")


class _Prompts:
    """Test prompts, and the errors ŵ − w of models and learners on them, along the eigenvectors of S: shape (prompts, d)."""

    def __init__(self, settings: _Depth, seed: int):
        examples, count = settings.examples, settings.prompts
        x, y = regression(settings.dim).sample(named_key(seed, "test prompts"), examples, count)
        self.inputs, self.labels = np.asarray(x)[:, :-1], np.asarray(y)[:, :-1]
        self.values, self.vectors, cross = in_eigenvectors(x, y)
        self.right = cross / self.values  # w, since labels are noiseless and N ≥ d
        self.counts = np.arange(settings.most_iterations + 1)
        self.steps = np.unique(np.round(np.geomspace(1, settings.most_steps, 60)).astype(int))
        ratios = (self.values / self.values[:, -1:]) ** 2
        self.newton = [-self.right * (1 - ratios) ** 2.0**count for count in self.counts]
        self.descent = [-self.right * (1 - settings.step_size * self.values) ** count for count in self.steps]

    def of_model(self, model: PromptModel) -> np.ndarray:
        """The error of a model whose answer is linear in the query: queries e_1 … e_d read all of ŵ."""
        compiled, (count, _, dim) = eqx.filter_jit(model), self.inputs.shape
        queries = (np.broadcast_to(query, (count, 1, dim)) for query in np.eye(dim))
        found = [compiled(np.concatenate([self.inputs, query], 1), self.labels) for query in queries]
        return np.einsum("bdk,db->bk", self.vectors, np.asarray(found, float)) - self.right

    def equivalents(self, error: np.ndarray) -> tuple[float, float]:
        """Iterations and gradient steps of the same median squared error, interpolated in its logarithm."""
        left, iterations, steps = (_medians(one) for one in ([error], self.newton, self.descent))
        newton = float(np.interp(-left[0], -iterations, self.counts))
        return newton, float(np.exp(np.interp(-left[0], -steps, np.log(self.steps))))

    def similarities(self, error: np.ndarray) -> tuple[float, float]:
        """The largest mean cosine with the errors of any number of iterations, and of steps."""
        unit = _directions(error)
        newton, descent = (
            max(float((unit * _directions(one)).sum(1).mean()) for one in group)
            for group in (self.newton, self.descent)
        )
        return newton, descent


def _medians(errors: list[np.ndarray]) -> np.ndarray:
    """Logarithms of the medians over prompts of |ŵ − w|²."""
    return np.log([max(float(np.median((one**2).sum(1))), 1e-300) for one in errors])


def _directions(errors: np.ndarray) -> np.ndarray:
    """Unit vectors along errors; 0 where these underflow."""
    sizes = np.linalg.norm(errors, axis=1, keepdims=True)
    return np.where(sizes > 1e-150, errors / np.maximum(sizes, 1e-150), 0.0)


def _figure(settings: _Depth, newton: np.ndarray, descent: np.ndarray) -> Figure:
    layers = settings.layers
    setting = f"d = {settings.dim}, N = {settings.examples}"
    return Figure(
        title="The value of one more layer of linear attention",
        panels=(
            Panel(
                title=f"In Newton iterations, {setting}",
                xlabel="layers",
                ylabel="iterations of the same error",
                traces=curve(layers, newton, "best layers", 0, "all seeds"),
            ),
            Panel(
                title=f"In gradient steps, {setting}",
                xlabel="layers",
                ylabel="steps of the same error",
                yscale="log",
                traces=(
                    *curve(layers, descent, "best layers", 1, "all seeds"),
                    Rule(value=1.0, label="one step"),
                ),
            ),
        ),
        caption="Iterations and steps whose median error over prompts is that of the best layers.",
    )


class _Depth(BestLayers):
    prompts: int = 400
    most_iterations: int = 30
    most_steps: int = 200_000
    step_size: float = 0.3
    asked: int = 2
    tasks: int = 400


CLAIMS = (
    Claim(
        id=f"{PAPER}/depth",
        title="Each further layer of linear attention is worth less",
        evidence="measured, another model",
        statement=(
            "Each further layer of the best linear attention adds fewer Newton iterations, and multiplies gradient steps by "
            "less, than the one before."
        ),
        source=(
            "fu2024, section 4.2 (layers 3 to 9 of one softmax transformer: about three iterations a layer, exponential in "
            "gradient steps; some second-order method, not Newton's in particular); the question for linear attention is ours"
        ),
        origin="ours",
        settings=presets(
            _Depth(), dim=20, examples=40, training_prompts=4000, starts=200, prompts=2000, tasks=2000
        ),
        check=_depth,
        criterion=(
            "Iterations and steps are those with the same median error. The 95 % intervals over seeds of the change from one "
            "gain to the next lie below 0; thresholds are not needed. The layers of every depth are the best of 160 random "
            "starts (full: 200), of which at least three end at the same loss to 10⁻⁶, the least found. What "
            "`identify` answers for two layers is told in the details and decides nothing: it is ambiguous for some seeds."
        ),
        history=(
            "Before, each depth was searched once, from the layers of the depth before it, and stopped in local minima: for "
            "two layers and seeds 0 to 2 losses ½E(ŷ − y)² of 0.0394, 0.0419 and 0.0406, where the best are 0.0258, 0.0277 "
            "and 0.0253; for four layers 3.8, 2.0 and 0.93 · 10⁻⁵ instead of 1.21, 0.81 and 0.68 · 10⁻⁵. The claim was then "
            "that layers advance evenly, and a claim of its own, layers-named, that two layers are named Newton's method; "
            "both came out otherwise. Seeds 0 to 2 are those of then."
        ),
        cost="about 30 min",
    ),
)
