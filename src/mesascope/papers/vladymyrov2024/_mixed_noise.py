"""Trained layers with diagonal heads beside GD++ and ridge regression, where the noise differs from prompt to prompt."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
from jax import Array

from mesascope.core import named_key
from mesascope.models import DiagonalSelfAttention, LinearAttentionStack, PromptModel
from mesascope.processes import FewShot, LinearRegression, NoiseLevels, NoiseRange
from mesascope.records import Decision, Figure, Trace
from mesascope.specs import known_kinds
from mesascope.theory import vladymyrov2024 as theory

from .._claim import Claim, Finding, presets
from .._figures import curve, one_panel
from .._intervals import above, below, mean_interval
from .._prompts import GD_PLUS_PLUS, prompt_model
from .._recorded import Trainings, recorded_trainings
from .._runs import seeds_of
from .._shared import shared
from .._still_falling import fall, halves, unless_falling
from ._exact import PAPER
from ._ridge import Examples, Penalties, adaptive, constant, tuned

# which block of a token is written and which is read: all for diagonal heads
PAIRS: dict[str, Any] = {"diagonal": None, "gd++": GD_PLUS_PLUS}
_NAMES = {
    "diagonal": "diagonal heads",
    "gd++": "GD++",
    "constant": "ridge, one penalty",
    "adaptive": "ridge, estimated noise",
    "tuned": "ridge, estimated noise, tuned",
}


class Training(Trainings):
    """Prompts of mixed noise, layers and how these are trained; `noise` is what a specification says of it."""

    dim: int = 4
    examples: int = 8
    noise: Mapping[str, Any] = field(default_factory=lambda: uniform_noise(5.0))
    layers: int = 4
    rate: float = 0.1
    scale: float = 0.05
    steps: int = 600
    batch: int = 256


class Judging(Training):
    """Levels of noise, and prompts over all of them."""

    levels: int = 10
    prompts: int = 20_000


class Rivals(Judging):
    """What trained layers are compared with."""

    rivals: tuple[str, ...]


def uniform_noise(largest: float) -> dict[str, Any]:
    """Noise levels between 0 and the largest."""
    return {"kind": "noise-range", "largest": largest}


def _noise(settings: Training) -> NoiseLevels:
    """The law of the noise level."""
    fields = dict(settings.noise)
    noise: NoiseLevels = known_kinds("noise")[fields.pop("kind")](**fields)
    return noise


def _unit(settings: Training) -> float:
    """In units of this size labels have variance 1: couplings that read labels are then as large as the others."""
    return (settings.dim + float(_noise(settings).moment(2))) ** 0.5


def data(settings: Training) -> tuple[LinearRegression, FewShot]:
    """Prompts of mixed noise in the units of training."""
    dim, unit = settings.dim, _unit(settings)
    prior = np.eye(dim) / unit**2
    return LinearRegression(dim, prior=prior, noise=_noise(settings).scaled(1 / unit)), FewShot(
        settings.examples
    )


def _start(settings: Training, pairs: Any, key: Array) -> PromptModel:
    kind = partial(DiagonalSelfAttention.gaussian, (settings.dim, 1), settings.scale)
    keys = jax.random.split(key, settings.layers)
    return prompt_model(LinearAttentionStack(kind(key=k, pairs=pairs, context="examples") for k in keys))


@shared(Training)
def trained(settings: Training, heads: str) -> dict[int, list[PromptModel]]:
    """Half of the steps and all → one model per seed of layers with diagonal heads, of the kind `heads` in `PAIRS`."""
    start, steps = partial(_start, settings, PAIRS[heads]), settings.steps
    warmup = steps // 10
    return recorded_trainings(start, *data(settings), halves(steps), settings, warmup=warmup, clip=1.0)


def drawn(settings: Judging, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Prompts of every noise level σ in turn: x, y and σ², level by level."""
    parts = []
    for number, sigma in enumerate(_levels(settings)):
        key = named_key(settings.seed, name, str(number))
        process = LinearRegression(settings.dim, noise=float(sigma))
        count = settings.prompts // settings.levels
        x, y = (np.asarray(part) for part in process.sample(key, settings.examples, count))
        parts.append((x, y[:, :-1], np.full(count, sigma**2)))
    inputs, labels, noise = (np.concatenate(part) for part in zip(*parts, strict=True))
    return inputs, labels, noise


def test_prompts(settings: Judging, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Prompts of its own for every seed: intervals over seeds then hold what the choice of prompts does, too."""
    return drawn(settings, f"test prompts {seed}")


def _levels(settings: Judging) -> np.ndarray:
    """The levels in the middles of equal shares of the prompts."""
    return _noise(settings).quantiles((np.arange(settings.levels) + 0.5) / settings.levels)


def answers(model: PromptModel, x: np.ndarray, y: np.ndarray, settings: Training) -> np.ndarray:
    """Of a model that was trained in other units."""
    unit = _unit(settings)
    return unit * np.asarray(eqx.filter_jit(model)(x, y / unit), float)


class TrainedLosses(NamedTuple):
    """Trained models on prompts of their own.

    Attributes:
        losses: above the oracle's, shape (seeds,).
        intervals: 95 % intervals of these over the prompts, shape (seeds, 2).
        falling: `fall` of that loss in the second half of the training, where no prompt counts more than the variance of
            labels: half-trained layers diverge on a few, which would else be all of their loss.
    """

    losses: np.ndarray
    intervals: np.ndarray
    falling: float


def judged(settings: Judging, heads: str) -> TrainedLosses:
    """Models with heads of the kind `heads`."""
    intervals, falls = [], []
    for seed, *models in zip(seeds_of(settings), *trained(settings, heads).values(), strict=True):
        x, y, noise = test_prompts(settings, seed)
        known = Examples.of(x, y, noise)
        losses = [known.excess(answers(model, x, y, settings)) for model in models]
        intervals.append(mean_interval(losses[-1]))
        falls.append(_capped(losses, settings))
    means, ends = zip(*intervals, strict=True)
    return TrainedLosses(np.array(means), np.array(ends), fall(*np.array(falls).T))


def _capped(losses: list[np.ndarray], settings: Training) -> list[float]:
    """Means of losses of prompts, where none counts more than the variance of labels."""
    return [float(np.minimum(one, _unit(settings) ** 2).mean()) for one in losses]


class Profiles(NamedTuple):
    """Trained layers and their rivals on the same prompts, drawn for every seed.

    Attributes:
        losses: above the oracle's at every noise level, in the paper's units: name → (seeds, levels).
        falling: that of `TrainedLosses`, of the diagonal heads.
    """

    losses: dict[str, np.ndarray]
    falling: float

    def means(self) -> dict[str, np.ndarray]:
        """Over all levels: name → (seeds,)."""
        return {name: values.mean(1) for name, values in self.losses.items()}


def profiles(settings: Rivals) -> Profiles:
    """Diagonal heads and what `rivals` names, each on its own or tuned on prompts of its own."""
    known = Examples.of(*drawn(settings, "tuning prompts"))
    rules: dict[str, Callable[[], Penalties]] = {
        "constant": lambda: constant(known),
        "adaptive": lambda: adaptive,
        "tuned": lambda: tuned(known),
    }
    penalties = {name: rules[name]() for name in settings.rivals if name in rules}
    kinds = ["diagonal", *(name for name in settings.rivals if name not in rules)]
    recorded = {name: trained(settings, name) for name in kinds}
    half, end = halves(settings.steps)
    found: dict[str, list[np.ndarray]] = {name: [] for name in (*kinds, *penalties)}
    falls = []
    for number, seed in enumerate(seeds_of(settings)):
        test = test_prompts(settings, seed)
        prompts = Examples.of(*test)
        given = {name: answers(many[end][number], *test[:2], settings) for name, many in recorded.items()}
        given |= {name: prompts.answers(rule(prompts)) for name, rule in penalties.items()}
        losses = {name: prompts.excess(answer) for name, answer in given.items()}
        for name, loss in losses.items():
            found[name].append(loss.reshape(settings.levels, -1).mean(1))
        middle = prompts.excess(answers(recorded["diagonal"][half][number], *test[:2], settings))
        falls.append(_capped([middle, losses["diagonal"]], settings))
    return Profiles({name: np.array(rows) for name, rows in found.items()}, fall(*np.array(falls).T))


def _tuned_rival(settings: _Tuned) -> Finding:
    """Trained layers beside all baselines, and at most a little above the tuned estimate."""
    found = profiles(settings)
    means, most = found.means(), 1 + settings.tolerance
    ratio, interval = mean_interval(means["diagonal"] / means["tuned"])
    parts = {_NAMES["tuned"]: unless_falling(below(interval, most), found.falling)}
    parts |= _better(found, [name for name in settings.rivals if name != "tuned"])
    return _beside(
        settings,
        "mixed-noise",
        found,
        parts,
        {
            "over_the_tuned_estimate": f"at most {most:g}",
            "others": "diagonal heads below, beyond 95 % intervals over seeds",
        },
        {"over_the_tuned_estimate": {"mean": ratio, "interval_95": interval}},
        settings.tolerance,
    )


def _untuned_rivals(settings: Rivals) -> Finding:
    """Noise that is uniform up to σ_max."""
    return _untuned(settings, "untuned-rivals")


def _two_levels(settings: Rivals) -> Finding:
    """Noise of a few levels."""
    return _untuned(settings, "categorical-noise")


def _untuned(settings: Rivals, figure: str) -> Finding:
    """Trained layers beside all but the tuned estimate, and beside one layer."""
    found, rivals = profiles(settings), settings.rivals
    variance = _noise(settings).moment(2)
    one = theory.one_layer_loss(settings.dim, settings.examples, variance) - _oracle(settings)
    _, interval = mean_interval(found.means()["diagonal"])
    parts = _better(found, rivals) | {"one layer": unless_falling(below(interval, one), found.falling)}
    expected = f"diagonal heads below {', '.join(rivals)} and one layer ({one:.4g}), beyond 95 % intervals over seeds"
    return _beside(settings, figure, found, parts, expected, {"one_layer": one})


def _better(found: Profiles, rivals: Sequence[str]) -> dict[str, Decision]:
    """Rival → whether the diagonal heads lose less, by the interval of the difference on the same prompts."""
    means = found.means()
    return {
        _NAMES[name]: unless_falling(above(mean_interval(margin)[1], 0.0), found.falling)
        for name, margin in ((name, means[name] - means["diagonal"]) for name in rivals)
    }


def _beside(
    settings: Rivals,
    name: str,
    found: Profiles,
    parts: dict[str, Decision],
    expected: Any,
    details: dict[str, Any],
    tolerance: float | None = None,
) -> Finding:
    means = found.means()
    margins = {one: mean_interval(means[one] - means["diagonal"]) for one in settings.rivals}
    return Finding.of_parts(
        {one: float(values.mean()) for one, values in means.items()},
        expected,
        tolerance,
        parts,
        {
            "interval_95": mean_interval(means["diagonal"])[1],
            "margins": {one: {"mean": mean, "interval_95": ends} for one, (mean, ends) in margins.items()},
            "each_seed": means,
            "fall_of_the_loss_in_the_second_half": found.falling,
            "oracle": _oracle(settings),
            "meaning": "losses minus that of ridge regression that knows σ, on the same prompts, drawn for every seed",
            **details,
        },
        {name: _figure(settings, found.losses)},
    )


def _figure(settings: Judging, profiles: dict[str, np.ndarray]) -> Figure:
    traces: list[Trace] = []
    levels = _levels(settings)
    for series, (name, label) in enumerate(_NAMES.items()):
        if name not in profiles:
            continue
        named = f"{label}, {settings.layers} layers" if name in PAIRS else label
        traces += curve(levels, profiles[name], named, series, f"{label}, all seeds")
    return one_panel(
        "Linear transformers under mixed noise",
        f"d = {settings.dim}, N = {settings.examples}, $\\sigma$ ~ {_noise(settings).describe()}",
        *traces,
        xlabel="noise level $\\sigma$ of the prompt",
        ylabel="loss above the oracle's",
        yscale="log",
        caption="Lines: median over the seeds; bands: all seeds. The oracle is ridge regression that knows σ.",
    )


def _oracle(settings: Judging) -> float:
    """The mean loss of ridge regression that knows the noise of every prompt."""
    dim, examples, noise = settings.dim, settings.examples, _noise(settings)
    if isinstance(noise, NoiseRange):
        return theory.oracle_loss(dim, examples, noise.largest)
    return float(np.mean([theory.oracle_loss_at(dim, examples, one) for one in _levels(settings)]))


class _TwoLevels(Rivals):
    noise: Mapping[str, Any] = field(default_factory=lambda: {"kind": "noise-choice", "levels": (1.0, 3.0)})
    levels: int = 2
    rivals: tuple[str, ...] = ("gd++", "constant", "adaptive")


class _Tuned(Rivals):
    tolerance: float = 0.05


FULL_SIZES: dict[str, Any] = {
    "dim": 10,
    "examples": 20,
    "rate": 0.02,
    "steps": 50_000,
    "batch": 2048,
    "prompts": 200_000,
}
REST = """A loss above the oracle's that still fell by more than a tenth in the second half of the training leaves undecided
    what it does not meet."""
TUNED = """What ridge regression is tuned by is the best of a grid, refined inside, on prompts of its own; a best value at an
    end of the grid decides nothing."""

CLAIMS = (
    Claim(
        id=f"{PAPER}/mixed-noise",
        title="Five layers or more match ridge regression with tuned noise estimates",
        statement="""Under mixed noise five or more layers of diagonal heads come as close to the oracle as ridge regression
            with a tuned noise estimate, and closer than with the plain estimate or one penalty.""",
        source=f"{PAPER}, section 6 (uniform noise variance), figure 2 and Table 1 (five layers and more, TUNEDRR)",
        origin="paper",
        evidence="measured, another model",
        settings=presets(
            _Tuned(layers=5, rate=0.05, rivals=("constant", "adaptive", "tuned")), **FULL_SIZES, layers=6
        ),
        check=_tuned_rival,
        criterion=f"""The 95 % interval over five seeds of the loss above the oracle's, over that of the tuned estimate on the
            same prompts, ends at 1.05 or below: at σ_max = 5 the paper's table has 0.051 of five layers beside 0.049, and calls
            it a match. Against the others the interval of the difference must not reach 0. {TUNED} {REST}""",
        history="""Four layers, three seeds and a loss below the tuned estimate's were asked for before. By the paper's own
            table four layers stay above it (0.059 beside 0.049). With five layers one of the five trainings diverged at the
            rates 0.1 (600 steps) and 0.03 (600 and 1200 steps).""",
        cost="about 20 h",
        papers_setting="about 4 days",
    ),
    Claim(
        id=f"{PAPER}/untuned-rivals",
        title="Four layers beat GD++ and ridge regression that is not tuned",
        statement="""Under mixed noise four layers of diagonal heads come closer to the oracle than one layer, than GD++ of four
            layers and than ridge regression with one penalty or with the plain noise estimate.""",
        source=f"{PAPER}, section 6 (uniform noise variance) and Table 1 (four layers)",
        origin="paper",
        evidence="measured, another model",
        settings=presets(Rivals(rivals=("gd++", "constant", "adaptive")), **FULL_SIZES),
        check=_untuned_rivals,
        criterion=f"""The 95 % intervals over five seeds of the differences of losses on the same prompts must not reach 0, and
            that of the loss must lie below one layer's, which is a closed form. {TUNED} {REST}""",
        history="Three seeds were trained before.",
        cost="about 25 h",
        papers_setting="about 4 days",
    ),
    Claim(
        id=f"{PAPER}/categorical-noise",
        title="Two levels of noise: four layers beat untuned ridge regression",
        statement="""With noise of 1 or 3, four layers of diagonal heads come closer to the oracle than one layer, GD++ of four
            layers, and ridge regression with one penalty or a plain noise estimate.""",
        source=f"{PAPER}, section 6 (categorical noise variance) and Table 1 (four layers, noise from {{1, 3}})",
        origin="paper",
        evidence="measured, another model",
        settings=presets(_TwoLevels(), **FULL_SIZES),
        check=_two_levels,
        criterion="""As for untuned-rivals: the 95 % intervals over five seeds of the differences of losses on the same prompts,
            half of each level, must not reach 0, and that of the loss must lie below one layer's.""",
        cost="about 25 h",
        papers_setting="about 4 days",
    ),
)
