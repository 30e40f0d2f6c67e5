"""Write the page "What each layer computes in context": `python docs/write_layers.py RUN`.

RUN is a folder, created if needed, that keeps what was computed: started again, the program goes on where it was stopped.
For every kind of data it searches the constant gates of every rule that leave the smallest error, and identifies the layers
with these gates. Then it trains a layer with every rule from random weights, and identifies the trained ones. It writes
the record that comes with the package, the figures beside itself, and the tables between the marks of the page. About two
hours on two cores.
"""

import dataclasses
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import scipy.optimize

import mesascope as ms
from mesascope.core import named_key
from mesascope.learners import KalmanFilter, Ridge, predictions, prompt_examples
from mesascope.probes._headline import share
from mesascope.records import (
    LAYERS,
    BestRecord,
    Figure,
    JudgedLayer,
    LayerRecord,
    LayersRecord,
    Line,
    Panel,
    provenance,
    write_text,
)
from mesascope.report import layers_figure, render
from mesascope.specs import SpecError, known_kinds
from mesascope.studies import StudySpec, TrainSpec, parse_spec
from mesascope.theory import wang2025

HERE = Path(__file__).parent
PAGE = HERE / "what-layers-compute.md"
DIM, EXAMPLES, NOISE, DRIFT = 4, 16, 0.3, 0.3
SPREAD = (2.0, 1.0, 0.5, 0.1)
PROMPTS: dict[str, Any] = {"kind": "linear-regression", "dim": DIM, "noise": NOISE}
DATA: dict[str, dict[str, Any]] = {
    "linear regression": PROMPTS,
    "drifting weights": {"kind": "drifting-regression", "dim": DIM, "noise": NOISE, "drift": DRIFT},
    "ill-conditioned inputs": {**PROMPTS, "covariance": np.diag(SPREAD).tolist()},
    "noisy sequences": {
        "kind": "linear-ar",
        "law": {"kind": "gaussian", "scale": 1.0},
        "state_dim": DIM,
        "spectrum": {"low": -0.9, "high": 0.9},
        "noise": NOISE,
    },
}
RULES: dict[str, dict[str, Any]] = {name: {"kind": name} for name in known_kinds("rule")} | {
    "ttt-linear": {"kind": "ttt-linear", "mini_batch": 4, "norm": False},
    "mesa-net, 2 steps": {"kind": "mesa-net", "steps": 2},
}
FEATURES = {"normalized-linear-attention": "elu"}  # its sum of weights is > 0 for positive features only
STARTS = {"rate": 0.1, "decay": 0.9, "momentum": 0.3, "forgetting": 0.05, "penalty": 1.0}
_CURVES = ("delta-net", "longhorn", "linear-attention", "retention")
ENDS = (1e-4, 1 - 1e-4)  # between which gates are searched
SEARCHED, JUDGED = 4000, 100_000  # prompts on which gates are searched, and on which errors are measured
TRAINING = {
    "steps": 3000,
    "batch": 128,
    "seed": 0,
    "held_out": 1024,
    "record_every": 1000,
    "precision": "float64",
    "optimizer": {"method": "adam", "learning_rate": 0.01, "schedule": "cosine", "clip": 1.0},
}


def data_of(name: str) -> dict[str, Any]:
    """The fields of a specification that say which data a model reads."""
    return {
        "process": DATA[name],
        **({"horizon": EXAMPLES + 2} if is_tokens(name) else {"examples": EXAMPLES}),
    }


def is_tokens(name: str) -> bool:
    """Whether the data are sequences."""
    return bool(DATA[name]["kind"] == "linear-ar")


def given(
    rule: str, data: str, gates: Mapping[str, float] | None = None, gain: float = 1.0
) -> dict[str, Any]:
    """The specification of a layer whose weights are given, with constant gates."""
    kind = "memory-solver" if is_tokens(data) else "prompt-memory-solver"
    features = FEATURES.get(rule, "identity")
    return {"kind": kind, "rule": {**RULES[rule], **(gates or {})}, "gain": gain, "feature_map": features}


def trained(rule: str, data: str) -> dict[str, Any]:
    """The specification of a layer with random weights, and with the embedding and the read-out of the given one."""
    tokens = is_tokens(data)
    return {
        "kind": "composed",
        "embedding": "paired-tokens" if tokens else "stacked-prompt",
        "layers": [
            {
                "kind": "memory",
                "rule": RULES[rule],
                "keys": "free",
                "feature_map": FEATURES.get(rule, "identity"),
                "scale": 0.3,
                "residual": False,
            }
        ],
        "readout": {"kind": "first-block"} if tokens else {"kind": "last-entry", "sign": 1},
    }


# Gates that leave the smallest error


def searched(rule: str, data: str) -> dict[str, Any]:
    """The constant gates and the gain that are best on samples, searched from three starts by the method of Nelder and Mead."""
    fields = {one.name for one in dataclasses.fields(known_kinds("rule")[RULES[rule]["kind"]])}
    names = [name for name in STARTS if name in fields]
    inputs, targets = sampled(data, SEARCHED, "search")
    error = eqx.filter_jit(lambda model: jnp.mean(squares(model, inputs, targets)))

    def of(numbers: np.ndarray) -> float:
        gates = {name: to_field(name, one) for name, one in zip(names, numbers, strict=False)}
        try:
            found = float(error(run_of(data, given(rule, data, gates, float(np.exp(numbers[-1])))).model))
        except SpecError:  # a gate rounds to 0 or 1, or steps that diverge
            return 1e300
        return found if np.isfinite(found) else 1e300

    start = np.array([*(to_line(name, STARTS[name]) for name in names), np.log(0.5)])
    options = {"xatol": 1e-3, "fatol": 1e-8, "maxiter": 300}
    ends = [
        scipy.optimize.minimize(of, start + shift, method="Nelder-Mead", options=options)
        for shift in (0.0, 0.7, -0.7)
    ]
    best = min(ends, key=lambda one: float(one.fun))
    gates = {name: to_field(name, one) for name, one in zip(names, best.x, strict=False)}
    return {
        "gates": gates,
        "gain": float(f"{np.exp(best.x[-1]):.4g}"),
        "starts": sorted(float(one.fun) for one in ends),
    }


def to_line(name: str, value: float) -> float:
    """A penalty as its logarithm, a gate as its log odds."""
    return float(np.log(value) if name == "penalty" else np.log(value / (1 - value)))


def to_field(name: str, number: float) -> float:
    """The inverse of `to_line`, a gate between the ends of the search, with six digits."""
    value = np.exp(number) if name == "penalty" else np.clip(1 / (1 + np.exp(-number)), *ENDS)
    return float(f"{value:.6g}")


def run_of(data: str, model: Mapping[str, Any]) -> Any:
    """The process and the model of a specification."""
    return parse_spec({**data_of(data), "model": model, **TRAINING}, TrainSpec).build()


def sampled(data: str, count: int, name: str) -> tuple[Any, Any]:
    """Inputs of a model, and what it predicts: labels of queries, or last tokens."""
    process, key = run_of(data, given("delta-net", data)).process, named_key(0, name)
    if is_tokens(data):
        tokens = process.sample(key, EXAMPLES + 2, count)
        return (tokens[:, :-1],), tokens[:, -1]
    x, y = process.sample(key, EXAMPLES, count)
    return (x, y[:, :-1]), y[:, -1]


def squares(model: Any, inputs: Any, targets: Any) -> Any:
    """Squared errors, a number for each sample."""
    errors = (model(*inputs) - targets) ** 2
    return errors if errors.ndim == 1 else jnp.sum(errors, -1)


def measured(model: Any, data: str) -> dict[str, Any]:
    """The mean squared error on new samples, with its 95 % interval."""
    of = eqx.filter_jit(squares)
    errors = np.concatenate(
        [np.asarray(of(model, *sampled(data, JUDGED // 10, f"judge {part}"))) for part in range(10)]
    )
    half = 1.96 * errors.std() / len(errors) ** 0.5
    return {
        "error": float(errors.mean()),
        "interval": [float(errors.mean() - half), float(errors.mean() + half)],
    }


def best(data: str) -> dict[str, Any] | None:
    """Bayes' rule on prompts: the error of the learner that it is, on the same samples; None for sequences."""
    if is_tokens(data):
        return None
    drifts = data.startswith("drifting")
    learner: Any = KalmanFilter(NOISE**2, (DRIFT / NOISE) ** 2) if drifts else Ridge(NOISE**2)

    def answers(x: Any, y: Any) -> Any:
        return predictions(learner, *prompt_examples(x, y))[:, -1, 0]

    numbers = ", ".join(f"{name} {float(value):.3g}" for name, value in learner.hyperparameters.items())
    return {"learner": f"`{learner.name}` ({numbers})", **measured(answers, data)}


def exact(rule: str, data: str, found: Mapping[str, Any]) -> float | None:
    """The exact error of a rule with these gates after all examples, where second moments give it."""
    errors = exact_errors(rule, data, found)
    return None if errors is None else float(errors[-1])


def exact_errors(rule: str, data: str, found: Mapping[str, Any]) -> np.ndarray | None:
    """The exact errors after 0, 1, 2 … examples."""
    if is_tokens(data):
        return None
    gates = found["gates"]
    inputs = wang2025.gaussian_inputs(np.diag(SPREAD) if data.startswith("ill") else np.eye(DIM))
    if rule == "linear-attention":
        steps = wang2025.linear_attention(1.0)
    elif rule in ("retention", "gated-linear-attention"):  # given gates are the same number at every token
        steps = wang2025.linear_attention(1.0, gates["decay"])
    elif rule in ("delta-net", "gated-delta-net"):
        steps = wang2025.delta_rule(gates["rate"], gates.get("decay", 1.0))
    elif rule == "titans":
        steps = wang2025.momentum(gates["rate"], gates["momentum"], gates["forgetting"])
    elif rule == "longhorn" and not data.startswith("ill"):
        steps, inputs = wang2025.delta_rule(1.0), wang2025.normalized_inputs(DIM, 1 / gates["rate"])
    else:
        return None
    drift = DRIFT if data.startswith("drifting") else 0.0
    return wang2025.squared_errors(steps, inputs, EXAMPLES, drift=drift, noise=NOISE, gain=found["gain"])


def curves(record: LayersRecord) -> Figure:
    """Exact errors over the number of examples, of the rules that have them and whose curves differ."""
    panels = []
    for data, layers in record.data.items():
        found = {rule: exact_errors(rule, data, layers[rule].model_dump()) for rule in _CURVES}
        lines = [
            Line(x=np.arange(len(errors)), y=errors, label=rule, series=series)
            for series, (rule, errors) in enumerate(found.items())
            if errors is not None
        ]
        if lines:
            axes = {"xlabel": "examples", "ylabel": "squared error", "yscale": "log"}
            panels.append(Panel(title=data.capitalize(), traces=tuple(lines), **axes))
    return Figure(title="Exact errors of layers with a memory", panels=tuple(panels), width="page", across=3)


# Runs


def swept(run: Path, name: str, kind: str, data: str, models: Mapping[str, Any]) -> dict[str, Any]:
    """Compute a study over models and return the outcome of every model."""
    base = {**data_of(data), **(TRAINING if kind == "train" else {"tasks": 400, "seed": 0, "search": False})}
    values = [{"label": label, "value": value} for label, value in models.items()]
    study = parse_spec(
        {"name": name, "kind": kind, "base": base, "axes": [{"path": "model", "values": values}]}, StudySpec
    )
    ms.sweep(study, run / "store")
    with ms.open_store(run / "store") as store:
        points = store.folders.study(name).points
        rows = [store.find(point.run) for point in points]
        folders = [str(store.folders.folder(row.id)) for row in rows]
    return {
        label: {"folder": folder, **row.outcome}
        for label, row, folder in zip(models, rows, folders, strict=True)
    }


def computed(run: Path, data: str) -> dict[str, Any]:
    """All that the page says of one kind of data."""
    file = run / f"{data.replace(' ', '-')}.json"
    found = json.loads(file.read_text()) if file.exists() else {}
    for rule in RULES:
        if rule not in found:
            print(f"{data}: gates of {rule}", flush=True)
            found[rule] = searched(rule, data)
            write_text(file, json.dumps(found))
    name = data.replace(" ", "-")
    constructed = {rule: given(rule, data, one["gates"], one["gain"]) for rule, one in found.items()}
    named = swept(run, f"given-{name}", "identify", data, constructed)
    trainings = swept(run, f"training-{name}", "train", data, {rule: trained(rule, data) for rule in RULES})
    ends = {
        rule: {"kind": "checkpoint", "path": f"{one['folder']}/checkpoint"} for rule, one in trainings.items()
    }
    named_trained = swept(run, f"trained-{name}", "identify", data, ends)
    return {
        rule: {
            **one,
            "exact": exact(rule, data, one),
            "given": {**measured(run_of(data, constructed[rule]).model, data), **told(named[rule])},
            "trained": {**measured(ms.load_trained(ends[rule]["path"]), data), **told(named_trained[rule])},
        }
        for rule, one in found.items()
    }


def told(outcome: Mapping[str, Any]) -> dict[str, Any]:
    """The part of an identification that is kept."""
    ranking = sorted(outcome["ranking"], key=lambda one: float(one["distance"]))
    distances = {one["learner"]: float(f"{one['distance']:.4g}") for one in ranking}
    same = [reason for reason in outcome["reasons"] if reason.startswith("as fitted, ")]
    return {
        "verdict": outcome["verdict"],
        "headline": outcome["headline"],
        "distances": distances,
        "same": same,
    }


# The page

_SAME = 1.001  # errors at the ends of searches whose ratio is less are one minimum


def written(page: str, record: LayersRecord) -> str:
    """The page with the tables of a record between its marks."""
    for name, layers in record.data.items():
        mark = f"<!--{name}-->"
        start, end = page.index(mark) + len(mark), page.index(f"<!--/{name}-->")
        page = page[:start] + "\n" + table(layers, record.best.get(name)) + page[end:]
    return page


def table(layers: Mapping[str, LayerRecord], best: BestRecord | None) -> str:
    """A row for each rule, the smallest error first: errors with given and trained weights, and what both compute."""
    lines = [
        "| rule | gates, gain | error | exact | it computes | trained: error | trained: it computes |",
        "|---|---|---|---|---|---|---|",
    ]
    if best is not None:
        lines.append(f"| *Bayes' rule* | | {with_interval(best)} | | {best.learner} | | |")
    for rule, one in sorted(layers.items(), key=lambda pair: pair[1].given.error):
        gates = ", ".join(shown(name, value) for name, value in {**one.gates, "gain": one.gain}.items())
        reached = sum(end <= _SAME * one.starts[0] for end in one.starts)
        gates += "" if reached == len(one.starts) else f" ({reached} of {len(one.starts)} searches)"
        exactly = "" if one.exact is None else f"{one.exact:.4f}"
        lines.append(
            f"| `{rule}` | {gates} | {with_interval(one.given)} | {exactly} | {verdict(one.given)} | "
            f"{with_interval(one.trained)} | {verdict(one.trained)} |"
        )
    return "\n".join(lines) + "\n"


def shown(name: str, value: float) -> str:
    """A gate or a gain in three digits, or where these are 1 in all; gates at an end of the search say so."""
    digits = f"{value:.3g}" if f"{value:.3g}" != "1" else f"{value:.6g}"
    return f"{name} {digits}{' (end)' if name not in ('gain', 'penalty') and value in ENDS else ''}"


def verdict(one: JudgedLayer) -> str:
    """The headline in short: the learners, and the share of the mean square of the predictions that they leave unexplained."""
    first, *more = one.headline.replace(" of its mean square unexplained", "").split("; ")
    if one.verdict == "identified":
        return "; ".join((first, *map(in_short, one.same)))
    if one.verdict == "none":
        return f"none; the nearest leave {share(next(iter(one.distances.values())))}"
    if not more:
        return f"{first}, or others"
    learners = more[0].removesuffix(" cannot be told apart here")
    return f"{learners}, which cannot be told apart: {first.rpartition(': ')[2]}"


def in_short(same: str) -> str:
    """The sentence on learners that are the same, or their number if there are more than three."""
    count = same.count(", ") if " are the same as " in same else 1
    return same if count <= 3 else f"as fitted, {count} other learners are the same"


def with_interval(one: JudgedLayer | BestRecord) -> str:
    """A mean and its 95 % interval."""
    low, high = one.interval
    return f"{one.error:.3f} [{low:.3f}, {high:.3f}]"


def picture(name: str) -> Path:
    """The figure of one kind of data, without its ending."""
    return HERE / f"layers-{name.replace(' ', '-')}"


if __name__ == "__main__":
    ms.enable_x64()
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    found = {name: computed(folder, name) for name in DATA}
    bayes = {name: one for name in DATA if (one := best(name)) is not None}
    kept = LayersRecord.model_validate({"data": found, "best": bayes, "provenance": provenance()})
    write_text(LAYERS, kept.model_dump_json() + "\n")
    for name in kept.data:
        render(layers_figure(kept, name), picture(name), formats=("png",))
    render(curves(kept), picture("curves"), formats=("png",))
    write_text(PAGE, written(PAGE.read_text(encoding="utf-8"), kept))
