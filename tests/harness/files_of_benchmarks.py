"""The files of a benchmark, for the harness."""

import equinox as eqx
import numpy as np
from safetensors.numpy import save

import mutants
import stored_records as stored
from harness.files import TRAIN, Kind, arrays_text, text
from mesascope.benchmark import Answer, Answers, Benchmark, Manifest, read_json, score
from mesascope.benchmark._files import KEY, MANIFEST, Key, digest, write_json


def _benchmark(tmp):
    """A benchmark of a network and a mixture, as `write_benchmark` leaves it, without contexts."""
    folder = tmp / "benchmark"
    (folder / "models").mkdir(parents=True)
    file = folder / "models/0000.safetensors"
    file.write_bytes(
        save({name: np.full((2, 1, 3, 3), 0.1) for name in ("w_kq", "w_pv", "usual/predictions")})
    )
    parts = [
        {"learner": "ridge", "hyperparameters": {"penalty": 0.5}},
        {"learner": "gradient-descent", "hyperparameters": {"step_size": 0.3, "steps": 2}},
    ]
    models = {
        "0000": {"kind": "network", "architecture": "prompt-attention"},
        "0001": {"kind": "mixture", "parts": parts, "weights": [0.4, 0.6]},
    }
    truth = {
        "learners": [one["learner"] for one in parts],
        "hyperparameters": {one["learner"]: one["hyperparameters"] for one in parts},
        "weights": {"ridge": 0.4, "gradient-descent": 0.6},
    }
    entry = {"group": "mixture", "noise": 0.0, "truth": truth}
    key = Key.model_validate({"models": {name: entry | {"model": one} for name, one in models.items()}})
    write_json(folder / KEY, key)
    usual = {"process": TRAIN["process"], "task": {"kind": "few-shot", "examples": 3}}
    data = {"prompts": {"file": "data/prompts.safetensors", "sha256": "0", "settings": {"usual": usual}}}
    one = {"file": "models/0000.safetensors", "sha256": digest(file), "data": "prompts"}
    facts = {"seed": 0, "draws": 1, "key": digest(folder / KEY), "provenance": stored.FROM}
    manifest = Manifest.model_validate({"data": data, "models": dict.fromkeys(models, one), **facts})
    write_json(folder / MANIFEST, manifest)
    return folder


def _models(folder, **digests):
    """What a benchmark says of its models, whose manifest has these digests."""
    if digests:
        manifest = Manifest.model_validate_json((folder / MANIFEST).read_text())
        files = {name: one.model_copy(update=digests) for name, one in manifest.models.items()}
        update = {"models": files, "key": digest(folder / KEY)}
        write_json(folder / MANIFEST, manifest.model_copy(update=update))
    found = Benchmark(folder)
    networks = [one for one in map(found.model, found.names) if isinstance(one, eqx.Module)]
    return text([found.manifest.data, found.key, arrays_text(networks)])


def benchmark_manifest(tmp):
    folder = _benchmark(tmp)
    return Kind(folder / MANIFEST, lambda: _models(folder), mutants.changed_json, False)


def benchmark_key(tmp):
    folder = _benchmark(tmp)
    file = folder / "models/0000.safetensors"
    return Kind(folder / KEY, lambda: _models(folder, sha256=digest(file)), mutants.changed_json, False)


def benchmark_weights(tmp):
    folder = _benchmark(tmp)
    file = folder / "models/0000.safetensors"
    return Kind(file, lambda: _models(folder, sha256=digest(file)), mutants.changed_tensors, False)


def benchmark_answers(tmp):
    folder, file = _benchmark(tmp), tmp / "answers.json"
    found = Benchmark(folder)
    (truth, _), names = (entry.truth for entry in found.key.models.values()), found.names
    weights = {name: (weight, 0.0, 1.0) for name, weight in truth.weights.items()}
    answer = Answer(verdict="mixture", **truth.model_dump(exclude={"weights"}), weights=weights)
    write_json(
        file,
        Answers(method="mine", benchmark=found.id, answers=dict.fromkeys(names, answer), provenance=None),
    )
    return Kind(
        file,
        lambda: text(score(found, read_json(file, Answers))),
        mutants.changed_json,
        False,
        ("benchmark", "score", str(folder), str(file)),
    )


BENCHMARKS = (benchmark_manifest, benchmark_key, benchmark_weights, benchmark_answers)
