"""Writing a benchmark: models from a seed, their data, their predictions, and the key."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mesascope.core import Clock, Progress, integer_at_least, require_x64
from mesascope.probes import Problems, answers
from mesascope.records import atomic_path, folder_lock, provenance
from mesascope.specs import unknown

from ._cases import GROUPS, Case, Group, Truth, predictor
from ._data import USUAL, Setting, arrays_of, standard_data
from ._decoys import OF_SYMBOLS, OF_VECTORS
from ._files import (
    KEY,
    MANIFEST,
    PURPOSE,
    DataFile,
    Key,
    KeyEntry,
    Manifest,
    ModelFile,
    digest,
    require_finished,
    write_json,
)
from ._models import DecoyModel
from ._networks import constructions, trained
from ._planted import mixtures, planted

_Samples = dict[str, dict[str, Problems]]


def cases(seed: int, draws: int, groups: Collection[Group] = GROUPS) -> Iterator[Case]:
    """Yield the models of these groups; those of one group do not depend on the others.

    Args:
        seed: of the hyperparameters and weights.
        draws: how often each learner with hyperparameters, and each mixture, is drawn.
        groups: planted learners, constructions, trained networks, mixtures, decoys.
    """
    data = standard_data()
    made: dict[Group, Callable[[np.random.Generator], Iterator[Case]]] = {
        "planted": lambda rng: planted(data, draws, rng),
        "construction": lambda rng: constructions(data, rng),
        "trained": trained,
        "mixture": lambda rng: mixtures(data, draws, rng),
        "decoy": lambda rng: _decoys(data),
    }
    for place, (group, make) in enumerate(made.items()):
        if group in groups:
            yield from make(np.random.default_rng([seed, place]))


def write_benchmark(
    folder: str | Path,
    *,
    seed: int = 0,
    draws: int = 1,
    groups: Collection[Group] = GROUPS,
    progress: Callable[[Progress], None] | None = None,
) -> Manifest:
    """Write models with known algorithms, their data and predictions, and the right answers.

    `manifest.json` lists data and models with digests, without the answers; `data/` holds contexts, `models/` the
    predictions of every model in every setting and the weights of networks, as safetensors; `key.json` holds the right
    answers. Models are numbered in a random order.

    Args:
        folder: an empty folder, or one that is created.
        seed: of models and data.
        draws: how often each learner with hyperparameters, and each mixture, is drawn.
        groups: which models: "planted", "construction", "trained", "mixture", "decoy"; by default all.
        progress: called before each model.

    Raises:
        ValueError: the folder is not empty, or another process writes to it; an unknown group or none, JAX in 32-bit mode.
        RecordError: a file cannot be written.
    """
    require_x64("write_benchmark")
    folder, seed = Path(folder), integer_at_least("seed", seed, 0)
    draws, tell, clock = integer_at_least("draws", draws, 1), progress or (lambda _: None), Clock()
    _require_empty(folder)
    for group in groups:
        if group not in GROUPS:
            raise ValueError(f"groups: {unknown('group', group, GROUPS)}")
    if not groups:
        raise ValueError(f"groups: must name at least one of {', '.join(GROUPS)}")
    with folder_lock(folder, PURPOSE):
        _require_empty(folder)  # once more: another process may have written between
        return _written(folder, seed, draws, groups, tell, clock)


def _require_empty(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is no folder; name another one")
    require_finished(folder)
    if folder.exists() and {path.name for path in folder.iterdir()} - {f".{PURPOSE}.lock"}:
        raise ValueError(f"{folder} is not an empty folder; name a new one")


def _written(
    folder: Path,
    seed: int,
    draws: int,
    groups: Collection[Group],
    tell: Callable[[Progress], None],
    clock: Clock,
) -> Manifest:
    """Write everything, the manifest last."""
    tell(clock.read(0, None, unit="models", stage="training"))
    made = list(cases(seed, draws, groups))
    samples, files = _write_data(folder, made, seed)
    order = np.random.default_rng([seed, len(GROUPS)]).permutation(len(made))
    models, key = {}, {}
    for place, chosen in enumerate(order):
        name, case = f"{place:04}", made[chosen]
        tell(clock.read(place, len(made), unit="models", stage="predictions"))
        path = folder / "models" / f"{name}.safetensors"
        _write_arrays(path, _predictions(case, samples[case.data]) | dict(case.weights))
        models[name] = ModelFile(file=f"models/{path.name}", sha256=digest(path), data=case.data)
        key[name] = KeyEntry(group=case.group, model=case.model, noise=case.noise, truth=case.truth)
    write_json(folder / KEY, Key(models=key))
    manifest = Manifest(
        seed=seed, draws=draws, data=files, models=models, key=digest(folder / KEY), provenance=provenance()
    )
    write_json(folder / MANIFEST, manifest)  # last: a folder without it is unfinished
    return manifest


def _decoys(data: Mapping[str, Mapping[str, Setting]]) -> Iterator[Case]:
    truth = Truth(learners=(), hyperparameters={}, weights={})
    for name in data:
        pooled, symbols = name.startswith("pool"), name.endswith("chains")
        for decoy in () if pooled else OF_SYMBOLS if symbols else OF_VECTORS:
            model = DecoyModel(name=decoy.__name__.replace("_", "-"))
            yield Case("decoy", name, data[name], model, truth)


def _write_data(folder: Path, made: list[Case], seed: int) -> tuple[_Samples, dict[str, DataFile]]:
    """Draw and write the contexts of all data."""
    samples: _Samples = {}
    files: dict[str, DataFile] = {}
    for case in made:
        if case.data in samples:
            continue
        drawn = {name: one.problems(seed, case.data, name) for name, one in case.settings.items()}
        arrays = {f"{name}/{k}": v for name, one in drawn.items() for k, v in arrays_of(one).items()}
        path = folder / "data" / f"{case.data}.safetensors"
        _write_arrays(path, arrays)
        samples[case.data] = drawn
        settings = dict(case.settings)
        files[case.data] = DataFile(file=f"data/{path.name}", sha256=digest(path), settings=settings)
    return samples, files


def _predictions(case: Case, samples: Mapping[str, Problems]) -> dict[str, np.ndarray]:
    """Return the predictions of a model after every number of examples, (tasks, N + 1, m), or (tasks, N + 1) for labels."""
    model = predictor(case.model, case.settings[USUAL], case.noise, case.weights)
    found: dict[str, np.ndarray] = {}
    for name, problems in samples.items():
        given = answers(model, problems)
        found[f"{name}/predictions"] = given[..., 0] if problems.prompts else given
    return found


def _write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays as safetensors; complex ones, which the format lacks, with real and imaginary part as last axis."""
    from safetensors.numpy import save

    content = save({name: np.ascontiguousarray(_real(array)) for name, array in arrays.items()})
    with atomic_path(path) as temporary:
        temporary.write_bytes(content)


def _real(array: Any) -> np.ndarray:
    array = np.asarray(array)
    return np.stack([array.real, array.imag], -1) if np.iscomplexobj(array) else array
