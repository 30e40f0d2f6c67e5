"""The best layers of linear attention beside Newton's iterations and gradient steps: the value of one more layer."""

from __future__ import annotations

import equinox as eqx
import numpy as np

from mesascope.core import named_key
from mesascope.models import PromptModel
from mesascope.probes import Identification, identify
from mesascope.processes import FewShot
from mesascope.records import Decision, Figure, Panel, Rule

from .._claim import Claim, Finding, all_of, presets
from .._figures import curve
from .._intervals import below, mean_interval
from .._names import answer_of, name_of
from .._runs import seeds_of
from ._best_layers import BestLayers, best_layers, layers_of, regression
from ._newton import PAPER


def _depth(settings: _Depth) -> Finding:
    """The median error of every depth, in iterations and in steps that leave the same, and the name of one of them."""
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
    names = [_name(models[settings.layers.index(settings.asked)], settings) for models in networks]
    parts: dict[str, Decision] = {
        "fewer iterations": _falls(more),
        "a smaller factor in gradient steps": _falls(times),
    }
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
            "names_of_two_layers": [_in_words(one) for one in names],
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


def _name(model: PromptModel, settings: _Depth) -> Identification:
    task = FewShot(settings.examples)
    return identify(model, regression(settings.dim), task, tasks=settings.tasks, learners=_LEARNERS)


def _in_words(found: Identification) -> str:
    """Its answer in words."""
    return "none" if found.verdict == "none" else f"{found.verdict}: {name_of(found)}"


_LEARNERS = ("zero", "gradient-descent", "gradient-descent++", "newton", "least-squares", "ridge")


class _Prompts:
    """Test prompts, the errors ŵ − w of whoever predicts on them, in the eigenvectors of S: shape (prompts, d)."""

    def __init__(self, settings: _Depth, seed: int):
        examples, count = settings.examples, settings.prompts
        key = named_key(seed, "test prompts")
        x, y = (np.asarray(a) for a in regression(settings.dim).sample(key, examples, count))
        self.inputs, self.labels = x[:, :-1], y[:, :-1]
        gram = np.swapaxes(self.inputs, 1, 2) @ self.inputs / examples
        self.values, self.vectors = np.linalg.eigh(gram)
        right = np.einsum("bdk,bnd,bn->bk", self.vectors, self.inputs, self.labels, optimize=True)
        self.right = right / examples / self.values  # w, since labels are noiseless and N ≥ d
        self.counts = np.arange(settings.most_iterations + 1)
        self.steps = np.unique(np.round(np.geomspace(1, settings.most_steps, 60)).astype(int))
        ratios = (self.values / self.values[:, -1:]) ** 2
        self.newton = [-self.right * (1 - ratios) ** 2.0**count for count in self.counts]
        self.descent = [-self.right * (1 - settings.step_size * self.values) ** count for count in self.steps]

    def of_model(self, model: PromptModel) -> np.ndarray:
        """Queries e_1 … e_d read all of ŵ, in which a model of linear attention is linear."""
        count, dim = len(self.inputs), self.inputs.shape[-1]
        queries = np.broadcast_to(np.eye(dim)[:, None], (count, dim, 1, dim))
        x = np.concatenate(
            [np.broadcast_to(self.inputs[:, None], (count, dim, *self.inputs.shape[1:])), queries], 2
        )
        y = np.broadcast_to(self.labels[:, None], (count, dim, self.labels.shape[1]))
        found = np.asarray(eqx.filter_jit(model)(x, y), float)
        return np.einsum("bdk,bd->bk", self.vectors, found) - self.right

    def equivalents(self, error: np.ndarray) -> tuple[float, float]:
        """Iterations and gradient steps of the same median squared error, between whole numbers by its logarithm."""
        left, iterations, steps = (_medians(one) for one in ([error], self.newton, self.descent))
        newton = float(np.interp(-left[0], -iterations, self.counts))
        return newton, float(np.exp(np.interp(-left[0], -steps, np.log(self.steps))))

    def similarities(self, error: np.ndarray) -> tuple[float, float]:
        """The largest mean cosine with the errors of any number of iterations, and of steps."""
        newton, descent = (max(_cosine(error, one) for one in group) for group in (self.newton, self.descent))
        return newton, descent


def _medians(errors: list[np.ndarray]) -> np.ndarray:
    """Logarithms of the medians over prompts of |ŵ − w|²."""
    return np.log([max(float(np.median((one**2).sum(1))), 1e-300) for one in errors])


def _cosine(one: np.ndarray, other: np.ndarray) -> float:
    return float((_directions(one) * _directions(other)).sum(1).mean())


def _directions(errors: np.ndarray) -> np.ndarray:
    """Unit vectors; 0 where nothing is left but what underflows."""
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
    ),
)
