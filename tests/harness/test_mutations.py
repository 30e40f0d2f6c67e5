"""Every kind of file that mesascope reads, damaged and forged thousands of times.

A mutant may be read as what it was before, or be refused in one line (exit status 2 or 1). A file whose checksum was computed
again, or that has none, may also be read as another valid file; whoever can write such a file can write any. Everything else is
lost: a traceback, a wait, and above all another content under an old checksum.

`MESASCOPE_MUTANTS` is the number of mutants, `MESASCOPE_SEED` another seed. From 6000 on (`make stress`) the figures go into
`mutations.json`, of which docs/store.md has the table. What is written for other programs is never read: CSV, Parquet, MLflow,
PDF, the contexts of a benchmark, the arrays beside an identification along training.
"""

import json
import os
import random
import signal
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from safetensors.numpy import save

import mutants
import stored_records as stored
from mesascope.benchmark import Answer, Answers, Benchmark, Manifest, read_json, score
from mesascope.benchmark._files import KEY, MANIFEST, Key, digest, write_json
from mesascope.cli import main
from mesascope.dynamics import load_model, save_model
from mesascope.dynamics._run_folder import RunFolder
from mesascope.dynamics.phase_diagrams._points import PhasePoint, starts
from mesascope.dynamics.phase_diagrams._rows import RowFile
from mesascope.dynamics.phase_diagrams._solve import FlowFacts
from mesascope.models import LinearAttention
from mesascope.processes import DiagonalUnitary, Gaussian, NextToken
from mesascope.processes._samples_file import read_samples
from mesascope.records import (
    CertificateFile,
    RunDirectory,
    RunFolders,
    StudyAxis,
    StudyPoint,
    StudyRecord,
    folder_lock,
    open_store,
    read_along,
    read_identification,
)
from mesascope.records._folder_lock import _holder
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
from mesascope.studies.sweeps import _attempts
from mesascope.studies.sweeps._status import _FOLDER, Driver, _host, drivers

MUTANTS = int(os.environ.get("MESASCOPE_MUTANTS", "5000"))
SEED = os.environ.get("MESASCOPE_SEED", "1")
RECORD = Path(__file__).with_name("mutations.json")
FULL = 6000
COMMAND_EVERY = 10  # mutants
SECONDS = 30.0  # for one mutant, on a busy machine


class Kind(NamedTuple):
    """A kind of file.

    Attributes:
        file: an example, whose bytes are mutated.
        read: what our readers make of the file, as a text that is equal for equal contents.
        forge: a mutant with a new checksum, or another valid form; None where every mutant of the bytes may be one.
        checksum: whether no other content may be read after an accident.
        command: that reads it, too, with exit status 0 for the file as it was.
        others: further contents to mix it with.
    """

    file: Path
    read: Callable[[], str]
    forge: Callable[..., bytes] | None = None
    checksum: bool = True
    command: tuple[str, ...] = ()
    others: tuple[bytes, ...] = ()


def text(value: Any) -> str:
    """A text that is equal for equal values, NaN included."""
    if hasattr(value, "model_dump_json"):
        return value.model_dump_json()
    return repr(value)


def data_text(data: Any) -> str:
    values = {
        name: (one.dims, one.dtype.str, one.values.tolist(), one.attrs)
        for name, one in data.variables.items()
    }
    return repr((sorted(values.items()), sorted(data.attrs.items())))


def arrays_text(tree: Any) -> str:
    return repr([np.asarray(leaf).tolist() for leaf in jax.tree.leaves(tree)])


def report(path: Path) -> tuple[str, ...]:
    """The command that writes the report of what lies there."""
    return "report", str(path), "--out", f"{path}.html"


# Records


def claim(tmp):
    folder = stored.run_directory(tmp / "run", stored.claim(), stored.claim("zheng2024/other", seconds=2.0))
    run, name = RunDirectory(folder), "zheng2024/theorem-4.1"
    file = folder / f"claims/{name}.json"
    return Kind(file, lambda: text(run.read_claim(name)), mutants.resealed_record, command=report(file))


def figure(tmp):
    name = "zheng2024/curves"
    figures = {name: stored.curves_figure(), "zheng2024/map": stored.map_figure()}
    folder = stored.run_directory(tmp / "run", stored.claim(), figures=figures)
    run, file = RunDirectory(folder), folder / f"figures/{name}.json"
    return Kind(file, lambda: text(run.read_figure(name)), mutants.resealed_record, command=report(folder))


def data(tmp):
    run = RunDirectory.create(tmp / "run")
    time = np.linspace(0, 1, 5)
    arrays = {
        "time": ("time", time),
        "z": (("time", "k"), np.ones((5, 2)) * 1j),
        "name": ("time", np.array(list("abcde"))),
    }
    run.write_data("curves", arrays | {"s": ((), 3.5)}, {"note": "a", "n": 3})
    return Kind(tmp / "run/data/curves.nc", lambda: data_text(run.read_data("curves")), mutants.resealed_data)


def identification(tmp):
    file = stored.identification(tmp) / "identification.json"
    return Kind(file, lambda: text(read_identification(file)), mutants.resealed_record, command=report(file))


def certificate(tmp):
    file = stored.certificate(tmp / "c.json")
    return Kind(file, lambda: text(CertificateFile(file).record), mutants.changed_json, False, report(file))


def along(tmp):
    file = stored.along(tmp) / "along.json"
    return Kind(file, lambda: text(read_along(file)), mutants.resealed_record, command=report(file))


# A benchmark


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


# Stores


def _store(tmp, name, read, forge=mutants.resealed_record, **more):
    root = stored.store(tmp / "store", failed=[(1, 1)])
    folders, run = RunFolders(root), stored.run_id((0, 0))
    places = {"run": folders.folder(run), "store": root}
    file = next(place / name for place in places.values() if (place / name).exists())
    return Kind(file, lambda: text(read(folders, run)), forge, **more)


def run(tmp):
    return _store(tmp, "run.json", lambda folders, run: folders.finished(run))


def planned(tmp):
    return _store(tmp, "planned.json", lambda folders, run: folders.planned(run))


def trajectory(tmp):
    return _store(
        tmp, "trajectory.nc", lambda folders, run: data_text(folders.trajectory(run)), mutants.resealed_data
    )


def study(tmp):
    return _store(tmp, "studies/grid.json", lambda folders, run: folders.study("grid"))


def store(tmp):
    return _store(tmp, "store.json", lambda folders, run: RunFolders(folders.root).identity)


def attempts(tmp):
    folder = tmp / "run"
    folder.mkdir()
    for driver in "ab":
        _attempts.begin_attempt(folder, driver, batch=2)
        _attempts.abandon_attempt(folder, "it needs too much")
    readers = (_attempts.attempts, _attempts.last_driver, _attempts.has_advanced)

    def read():
        found = [reader(folder) for reader in readers]
        return text([*found, _attempts.why_unbatched(folder, "a"), _attempts.driver_deaths(folder, 0)])

    return Kind(folder / "attempts.jsonl", read, mutants.changed_lines, False)


def driver(tmp):
    here = Driver(study="grid", host=_host(), pid=os.getpid(), scheduler="local", dashboard=None, total=3)
    file = tmp / _FOLDER / "here.json"
    file.parent.mkdir()
    file.write_text(here.model_dump_json())
    return Kind(file, lambda: text(drivers(tmp, "grid")), mutants.changed_json, False)


def lock(tmp):
    file = tmp / ".run.lock"
    file.write_text(json.dumps({"pid": 1, "host": "here", "since": "2026-01-01 10:00:00"}))
    return Kind(file, lambda: _holder(file), mutants.changed_json, False)


def index(tmp):
    root, axis = tmp / "store", StudyAxis(name="init.a", labels=(0.1, 0.2))
    folders = RunFolders.create(root)
    points = tuple(StudyPoint(run=stored.finish(folders, place), place=place) for place in ((0,), (1,)))
    folders.write_study(StudyRecord(name="grid", kind="flow", spec={}, axes=(axis,), points=points))
    for path in (*root.glob("runs/*"), *root.glob("studies/*")):
        os.utime(path, (1, 1))  # at rest: an index that is whole is not written when it is opened
    open_store(root).close()

    def read():
        with open_store(root) as opened:
            return text([opened.rows(), opened.studies(), opened.to_xarray("grid").to_dict()])

    return Kind(root / "index.sqlite", read)


# Training, phase diagrams


def weights(tmp):
    first, second = (LinearAttention.gaussian(2, 0.3, key=jax.random.key(n)) for n in range(2))
    save_model(tmp / "model", first, {"note": "a"})
    save_model(tmp / "other", second)
    others = ((tmp / "other").read_bytes(),)
    return Kind(
        tmp / "model",
        lambda: arrays_text(load_model(tmp / "model", first)),
        mutants.resealed_checkpoint,
        others=others,
    )


TRAIN = {
    "process": {"kind": "linear-regression", "dim": 2},
    "examples": 3,
    "model": {"kind": "prompt-linear-transformer", "layers": 1},
    "steps": 2,
    "batch": 2,
    "held_out": 4,
    "average": 0.9,
    "checkpoint_every": 1,
}


def checkpoint(tmp):
    seen = []

    class Seen(RunFolder):
        def resume(self, state, steps):
            seen.append((self, state, steps))
            return super().resume(state, steps)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mesascope.dynamics._train.RunFolder", Seen)
        parse_spec(TRAIN, TrainSpec).build().train(tmp / "run")
    folder, state, steps = seen[0]
    file = tmp / "run/step-000000002.checkpoint"

    def read():
        step, found, log = RunFolder.resume(folder, state, steps)
        return text((step, arrays_text(found), log))

    others = ((tmp / "run/step-000000001.checkpoint").read_bytes(),)
    return Kind(file, read, mutants.resealed_checkpoint, True, report(tmp / "run"), others)


def row(tmp):
    points = [
        PhasePoint(LinearAttention.diagonal(2, a, a), DiagonalUnitary(Gaussian(1.0), 2), NextToken(5))
        for a in (0.1, 0.2)
    ]
    file = RowFile(tmp / "row.nc", {"until": 3.0, "code": "c"})
    stored_row = {name: np.arange(2.0) for name in FlowFacts._fields} | {"end": starts(points)}
    file.write(points, stored_row)
    return Kind(
        tmp / "row.nc",
        lambda: repr({k: v.tolist() for k, v in file.read(points).items()}),
        mutants.resealed_data,
    )


# Specifications and samples

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


def _spec(name, ending):
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


_RECORDS = (claim, figure, data, identification, along, certificate)
_BENCHMARK = (benchmark_manifest, benchmark_key, benchmark_weights, benchmark_answers)
_STORED = (run, planned, trajectory, study, store, index, attempts, driver, lock)
_TRAINED = (weights, checkpoint, row)
KINDS = {one.__name__.replace("_", " "): one for one in (*_RECORDS, *_BENCHMARK, *_STORED, *_TRAINED)}
KINDS |= {f"{name}.{ending}": _spec(name, ending) for name in SPECS for ending in ("toml", "json")}
KINDS |= {f"samples.{ending}": samples(ending) for ending in ("npy", "csv")}
EACH = -(-MUTANTS // len(KINDS))


# The harness


class Hang(BaseException):
    """A mutant took too long."""


def _hang(*_):
    raise Hang(f"it took more than {SECONDS} s")


@pytest.fixture(autouse=True)
def alarm():
    before = signal.signal(signal.SIGALRM, _hang)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def ended(kind: Kind, original: str, forged: bool) -> tuple[str, str]:
    """How the reading of the file ended, and why it is lost."""
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        found = kind.read()
    except ValidationError as error:
        return "lost", f"many lines: {error!r:.200}"
    except (ValueError, MemoryError):
        return "refused", ""
    except (Exception, Hang) as error:
        return "lost", f"{error!r:.300}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    if found == original:
        return "same", ""
    return (
        ("other", "") if forged or not kind.checksum else ("lost", "another content under the old checksum")
    )


def command_lost(kind: Kind, end: str, forged: bool, capsys: Any) -> str:
    """Why the end of the command does not fit that of the reader; "" if it does. It may read a part of a forged file only."""
    signal.setitimer(signal.ITIMER_REAL, 6 * SECONDS)
    try:
        status = main(kind.command)
    except (Exception, Hang) as error:
        return f"{' '.join(kind.command)}: {error!r:.300}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    said = capsys.readouterr().err
    overlooked = end == "refused" and not forged and (status == 0 or not said)
    if status not in (0, 1, 2) or overlooked or (end == "same" and status):
        return f"{' '.join(kind.command)}: exit status {status} where the file is {end}: {said:.300}"
    return ""


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_mutants_are_read_as_before_or_refused(tmp_path, capsys, name):
    warnings.simplefilter("ignore")  # of libraries, about numbers; the test restores the filters
    kind = KINDS[name](tmp_path)
    whole, began = kind.file.read_bytes(), time.monotonic()
    others = (whole, *kind.others)
    original = kind.read()
    assert original == kind.read()
    counts, lost = Counter(tried=0, same=0, refused=0, other=0, lost=0), []
    for number in range(EACH):
        chance = random.Random(f"{SEED} {name} {number}")
        forged = kind.forge is not None and number % 2 == 1
        mutant = (kind.forge if forged else mutants.damaged)(chance, whole, others)
        kind.file.write_bytes(mutant)
        end, why = ended(kind, original, forged)
        if not why and kind.command and number % COMMAND_EVERY < 2:
            why = command_lost(kind, end, forged, capsys)
        counts["tried"] += 1
        counts["lost" if why else end] += 1
        if why:
            lost.append(f"MESASCOPE_SEED={SEED} {name} mutant {number}{' (forged)' * forged}: {why}")
    if MUTANTS >= FULL:
        _record(name, counts, time.monotonic() - began)
    assert not lost, "\n".join([f"{len(lost)} of {EACH} mutants are lost:", *lost[:20]])


def _record(name, counts, seconds):
    """Write the figures of one kind."""
    with folder_lock(RECORD.parent, "mutations", wait=60):
        try:
            before = json.loads(RECORD.read_text())
        except (OSError, ValueError):
            before = {}
        kinds = {one: found for one, found in before.get("kinds", {}).items() if one in KINDS}
        kinds[name] = dict(counts, seconds=round(seconds, 1))
        total = {one: sum(found[one] for found in kinds.values()) for one in counts}
        document = {"seed": SEED, "total": total, "kinds": dict(sorted(kinds.items()))}
        RECORD.write_text(json.dumps(document, indent=1) + "\n")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
SEALED = (
    "claim",
    "figure",
    "identification",
    "run",
    "planned",
    "study",
    "store",
    "certificate",
    "driver",
    "lock",
    "loss.json",
)


@pytest.mark.slow
@pytest.mark.parametrize("name", SEALED)
def test_any_json_is_refused(tmp_path, name):
    kind = KINDS[name](tmp_path)
    document, original = json.loads(kind.file.read_text()), kind.read()

    @settings(max_examples=max(20, EACH // 4), derandomize=True, suppress_health_check=[HealthCheck.too_slow])
    @given(JSON)
    def check(value):
        kind.file.write_text(json.dumps(value))
        assert ended(kind, original, True)[0] != "lost"
        if "content" in document:
            kind.file.write_bytes(mutants.sealed(document | {"content": value}))
            assert ended(kind, original, True)[0] != "lost"

    check()
