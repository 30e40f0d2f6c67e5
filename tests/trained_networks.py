"""Forty small networks, trained on four kinds of data, whose weights and identifications are stored in tests/probes.

python tests/trained_networks.py            trains them, identifies them, writes both files
python tests/trained_networks.py --answers  identifies the stored networks, writes the answers
"""

import argparse
import json
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from safetensors.numpy import load_file, save_file

import mesascope as ms
from mesascope.studies import TrainSpec, parse_spec

WEIGHTS = Path(__file__).parent / "probes/trained_networks.safetensors"
ANSWERS = Path(__file__).parent / "probes/trained_networks.json"

_PROMPTS = {"process": {"kind": "linear-regression", "dim": 2}, "examples": 6, "weights": "last"}
_NOISY = {
    "process": {"kind": "linear-regression", "dim": 2, "noise": 0.5},
    "examples": 6,
    "weights": "every",
}
_TOKENS = {
    "process": {"kind": "rotation-ar", "law": {"kind": "gaussian", "scale": 1.0}, "dim": 2},
    "horizon": 8,
}
_SYMBOLS = {"process": {"kind": "markov-tree", "parents": "chain", "states": 3, "alpha": 1.0}, "horizon": 8}


def _softmax(kind, layers):
    return {"kind": kind, "width": 8, "layers": layers, "heads": 1}


_MODELS = {
    "prompts": (
        _PROMPTS,
        [{"kind": "prompt-linear-transformer", "layers": layers} for layers in (1, 2, 3)] * 3
        + [{"kind": "looped-linear-transformer", "loops": 3}],
    ),
    "noisy": (
        _NOISY,
        [_softmax("prompt-transformer", layers) for layers in (1, 2)] * 3
        + [{"kind": "prompt-linear-transformer", "layers": layers} for layers in (1, 2)] * 2,
    ),
    "tokens": (
        _TOKENS,
        [{"kind": "linear-transformer", "layers": layers} for layers in (1, 2)] * 3
        + [{"kind": "mesa-transformer"}] * 2
        + [_softmax("transformer", 2)] * 2,
    ),
    "symbols": (_SYMBOLS, [_softmax("token-transformer", layers) for layers in (1, 2)] * 5),
}
_TRAINING = {
    "steps": 1500,
    "batch": 256,
    "precision": "float64",
    "held_out": 64,
    "record_every": 500,
    "optimizer": {"method": "adam", "learning_rate": 0.01, "schedule": "cosine", "clip": 1.0},
}
SPECS = {
    f"{name}-{number}": {**data, "model": model, "seed": number, **_TRAINING}
    for name, (data, models) in _MODELS.items()
    for number, model in enumerate(models)
}
ASKED = {"tasks": 400, "seed": 0}


def untrained(name):
    """The run of a network: its model before training, process and task."""
    return parse_spec(SPECS[name], TrainSpec).build()


def stored(name, tensors):
    """The trained network."""
    weights, others = eqx.partition(untrained(name).model, eqx.is_inexact_array)
    leaves, tree = jax.tree.flatten(weights)
    found = [jnp.asarray(tensors[f"{name}/{i}"], leaf.dtype) for i, leaf in enumerate(leaves)]
    return eqx.combine(jax.tree.unflatten(tree, found), others)


def answer(name, tensors):
    """What `identify` says of it: the numbers that are compared, and the headline."""
    run = untrained(name)
    found = ms.identify(stored(name, tensors), run.process, run.task, **ASKED)
    return {
        "verdict": found.verdict,
        "candidates": list(found.candidates),
        "distance": float(f"{found.ranking[0].distance:.6g}"),
        "headline": found.headline,
    }


def _trained():
    tensors = {}
    for name in SPECS:
        model = untrained(name).train().model
        for i, leaf in enumerate(jax.tree.leaves(eqx.filter(model, eqx.is_inexact_array))):
            tensors[f"{name}/{i}"] = np.asarray(leaf, np.float32)
        print(name, "trained", flush=True)
    return tensors


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--answers", action="store_true", help="keep the stored weights")
    jax.config.update("jax_enable_x64", True)
    if not parser.parse_args().answers:
        save_file(_trained(), WEIGHTS)
    tensors, found = load_file(WEIGHTS), {}
    for name in SPECS:
        found[name] = answer(name, tensors)
        print(name, found[name]["headline"], flush=True)
    ANSWERS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
