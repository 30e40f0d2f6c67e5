"""Checkpoints of models: arrays, and a header that describes the architecture."""

from __future__ import annotations

import io
import json
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from mesascope.core import require_x64
from mesascope.records import CheckpointError as CheckpointError
from mesascope.records import atomic_path, difference, provenance, read_checkpoint, write_checkpoint
from mesascope.specs import one_line

from ._parameters import check_has_weights, in_state_precision, real_vector

Tree = TypeVar("Tree")
Model = TypeVar("Model", bound=eqx.Module)


def save_model(path: str | Path, model: eqx.Module, notes: dict[str, Any] | None = None) -> None:
    """Write the weights of a model, atomically.

    Args:
        path: the file to write.
        model: any module.
        notes: JSON values to keep beside the weights, e.g. the specification that builds the model.

    Raises:
        ValueError: weights in bfloat16, or in several precisions.
        TypeError: notes that are not JSON, or a model without weights.
        RecordError: the file cannot be written; what was there before is still there.
    """
    weights = eqx.filter(model, eqx.is_inexact_array)
    check_has_weights(weights, model)
    kinds = {str(leaf.dtype) for leaf in jax.tree.leaves(weights)}
    if not kinds <= {"float32", "complex64"} and not kinds <= {"float64", "complex128"}:
        found = ", ".join(sorted(kinds))
        raise ValueError(
            f"model: weights must all be in float32, or all in float64, got {found}; cast them first"
        )
    try:
        json.dumps(notes)
    except TypeError as error:
        raise TypeError(f"notes: must be JSON values, {error}") from None
    write_model(Path(path), model, (), {"notes": notes or {}})


def load_model(path: str | Path, like: Model) -> Model:
    """Read weights that `save_model` or a training run wrote, into a copy of the model `like`.

    Args:
        path: the file.
        like: a model of the same architecture; only its structure, shapes and types are used.

    Raises:
        CheckpointError: no such file, a truncated or damaged one, or one of another architecture (the message
            names the first field that differs, with both values).
    """
    header, payload = read_checkpoint(path, "precision", "weights")
    like = _in_precision_of(path, header, like)
    return read_arrays(path, payload, like)


def load_average(path: str | Path, like: Model) -> Model:
    """Read the moving average of the weights from a checkpoint of `train(…, average=…)`.

    Args and errors are those of `load_model`; CheckpointError also where no average was kept.
    """
    header, payload = read_checkpoint(path, "precision", "weights")
    like = _in_precision_of(path, header, like)
    vector, rebuild = real_vector(like)
    if not (header.get("state") or {}).get("state[0]", "None").startswith("float"):
        raise CheckpointError(
            f"{path}: keeps no average of the weights; train with average=0.999, say, or load_model"
        )
    average: Model = rebuild(read_arrays(path, payload, (like, (jnp.asarray(vector),)))[1][0])
    return average


def _in_precision_of(path: str | Path, header: dict[str, Any], like: Model) -> Model:
    """The model `like` in the precision of the checkpoint, if it is of the same architecture."""
    precision = "float64" if header["precision"] == "float64" else "float32"
    if precision == "float64":
        require_x64(f"{path}, a checkpoint in float64,")
    like = in_state_precision(like, precision)
    refuse_other_fields(path, header["weights"], describe_tree(like))
    return like


def write_model(path: Path, model: Any, more: Any, facts: dict[str, Any]) -> None:
    """Write a header of facts, a model and further arrays."""
    header = {
        "weights": describe_tree(model),
        "precision": real_vector(model)[0].dtype.name,
        "provenance": provenance().model_dump(),
        **facts,
    }
    content = io.BytesIO()
    eqx.tree_serialise_leaves(content, (model, more))
    write_checkpoint(path, header, content.getvalue())


def read_arrays(path: str | Path, payload: bytes, like: Tree) -> Tree:
    """The arrays of the model; for a pair `like` also the further arrays.

    Raises:
        CheckpointError: the arrays are others than its header says.
    """
    try:
        tree: Tree = eqx.tree_deserialise_leaves(io.BytesIO(payload), like)
    except MemoryError:
        raise
    except Exception as error:  # numpy and equinox raise many kinds
        raise CheckpointError(
            f"{path}: its arrays are not those of its header ({one_line(str(error))}); use another one"
        ) from None
    return tree


def refuse_other_fields(path: str | Path, found: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Refuse a checkpoint whose facts differ from the expected ones.

    Raises:
        CheckpointError: names the first field that differs, with both values.
    """
    differs = difference(found, wanted)
    if differs:
        name, there, here = differs[0], *("absent" if value is None else value for value in differs[1:])
        raise CheckpointError(
            f"{path}: is a checkpoint of something else: {name} is {there} there and {here} here; name one of this "
            "training, or another folder"
        )


def describe_tree(tree: Any, name: str = "model") -> dict[str, str]:
    """Every field of a module by its path: arrays as type and shape, everything else as its name or repr."""
    if eqx.is_array(tree) or isinstance(tree, np.ndarray):
        return {name: f"{tree.dtype.name}{list(tree.shape)}"}
    if is_dataclass(tree) and not isinstance(tree, type):
        inside = {field.name: getattr(tree, field.name) for field in fields(tree)}
        found = {name: type(tree).__name__}
        for key, value in inside.items():
            found |= describe_tree(value, f"{name}.{key}")
        return found
    if isinstance(tree, tuple | list):
        found = {name: f"{type(tree).__name__} of {len(tree)}"}
        for index, value in enumerate(tree):
            found |= describe_tree(value, f"{name}[{index}]")
        return found
    return {name: getattr(tree, "__qualname__", None) or repr(tree)}


def export_safetensors(path: str | Path, model: eqx.Module) -> None:
    """Write the weights as safetensors, for other libraries: one contiguous tensor per array, named by its path.

    Complex weights become two tensors, `….real` and `….imag`. What is not a weight (normalizer, context, …) goes into the
    metadata, as strings.

    Args:
        path: the file to write, atomically.
        model: any module.

    Raises:
        TypeError: a model without weights.
        RecordError: the file cannot be written.
    """
    from safetensors.numpy import save

    weights = eqx.filter(model, eqx.is_inexact_array)
    check_has_weights(weights, model)
    tensors: dict[str, np.ndarray] = {}
    for where, leaf in jax.tree_util.tree_leaves_with_path(weights):
        name, array = jax.tree_util.keystr(where).lstrip("."), np.asarray(leaf)
        parts = (
            {f"{name}.real": array.real, f"{name}.imag": array.imag}
            if np.iscomplexobj(array)
            else {name: array}
        )
        tensors |= {key: np.ascontiguousarray(part) for key, part in parts.items()}
    content = _in_order(save(tensors, describe_tree(model)))
    with atomic_path(Path(path)) as temporary:
        temporary.write_bytes(content)


def _in_order(content: bytes) -> bytes:
    """The bytes of safetensors with the keys of the header in order, so that equal models give equal files."""
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.dumps(json.loads(content[8:end]), sort_keys=True).encode()
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header + content[end:]
