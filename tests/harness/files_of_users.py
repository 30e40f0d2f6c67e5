"""Files that users write: specifications and samples, for the harness."""

import json
from typing import Any

import numpy as np

import mutants
from harness.files import TRAIN, Kind, text
from mesascope.processes._samples_file import read_samples
from mesascope.studies import (
    CertifySpec,
    FlowSpec,
    IdentifySpec,
    LossSpec,
    ModelFlowSpec,
    StudySpec,
    TrainSpec,
    parse_spec,
    read_spec,
)

LAW = {"kind": "gaussian", "scale": 1.0}
DATA = {"law": LAW, "dim": 2, "horizon": 5}
FLOW = DATA | {"init": {"kind": "diagonal", "a": 0.1, "b": 0.1}, "weights": {"3": 1, "4": "1/2"}}
AXES = [
    {"path": "init.a", "values": [0.1, {"label": "high", "value": 0.2}]},
    {"path": "law.scale", "log_range": {"start": 1, "stop": 100, "count": 3}},
]
SPECS = {
    "loss": (LossSpec, DATA | {"w_kq": [[0] * 4] * 4, "w_pv": [[0.7, 0, 0, 0], [0, 0.7, 0, 0]]}),
    "flow": (FlowSpec, FLOW),
    "flow of a model": (ModelFlowSpec, {name: TRAIN[name] for name in ("process", "examples", "model")}),
    "train": (TrainSpec, TRAIN),
    "identify": (
        IdentifySpec,
        {"process": TRAIN["process"], "examples": 3, "model": TRAIN["model"], "tasks": 100},
    ),
    "certify": (CertifySpec, FLOW),
    "study": (StudySpec, {"name": "grid", "kind": "flow", "base": FLOW | {"weights": "every"}, "axes": AXES}),
}


def as_written(spec: Any) -> Any:
    """A specification in the form of its file."""
    return without_none(spec.model_dump(mode="json"))


def without_none(value: Any) -> Any:
    """A value without fields that are None, as TOML has none."""
    if isinstance(value, dict):
        return {key: without_none(one) for key, one in value.items() if one is not None}
    return list(map(without_none, value)) if isinstance(value, list) else value


def toml(value: Any) -> str:
    """A value in TOML, tables inline."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {toml(one)}" for key, one in value.items()) + "}"
    return f"[{', '.join(map(toml, value))}]" if isinstance(value, list) else json.dumps(value)


def spec(name, ending):
    kind, content = SPECS[name]

    def make(tmp):
        file = tmp / f"spec.{ending}"
        lines = "\n".join(f"{key} = {toml(value)}" for key, value in content.items())
        file.write_text(json.dumps(content, indent=1) if ending == "json" else lines)

        def read():
            written = as_written(read_spec(file, kind))
            again = as_written(parse_spec(written, kind))
            assert again == written, "what it says of itself is another specification"
            return text(written)

        return Kind(file, read, mutants.changed_json if ending == "json" else None, False)

    return make


def samples(ending):
    def make(tmp):
        table = np.arange(12.0).reshape(6, 2) / 7
        np.save(tmp / "s.npy", table)
        np.savetxt(tmp / "s.csv", table, delimiter=",", header="x,y", comments="")
        file = tmp / f"s.{ending}"
        return Kind(file, lambda: text(read_samples(file).tolist()), None, False)

    return make


USERS = {f"{name}.{ending}": spec(name, ending) for name in SPECS for ending in ("toml", "json")}
USERS |= {f"samples.{ending}": samples(ending) for ending in ("npy", "csv")}
