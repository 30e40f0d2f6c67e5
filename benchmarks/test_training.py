"""Training: steps beside eager PyTorch, batches in pieces, many runs at once."""

import importlib.util
import json
import os

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest
from measuring import ALL_CORES, interleaved, smaller_ratio

import mesascope as ms
from mesascope.core import named_key
from mesascope.dynamics import _pieces, _training_steps
from mesascope.dynamics._pieces import number_of_pieces

FOLDER = os.path.dirname(__file__)
PIECES = (1, 2, 4, 8, 16)
LABELS = {
    "linear": ("3-layer linear attention, d = 5, N = 20, batch 1000", "literal", 4),
    "transformer": ("4-layer softmax transformer, width 64, T = 50, batch 64", "softmax", 1.5),
    "prompts": ("3-layer softmax transformer, width 64, 11 points, batch 64", "compiled", 1.5),
}
NAMES = {
    "literal": "literal formula",
    "gram": "Gram matrix first",
    "softmax": "explicit softmax",
    "fused": "scaled_dot_product_attention",
    "compiled": "compiled",
}


@pytest.mark.skipif(
    importlib.util.find_spec("torch") is None,
    reason="needs a PyTorch beside it; benchmarks/README.md says how to install one",
)
@pytest.mark.parametrize("cores", sorted({1, len(ALL_CORES)}))
@pytest.mark.parametrize("kind", list(LABELS))
def test_steps_beside_pytorch(benchmark, bar, run_python, kind, cores):
    """One training step, fresh data included; both programs in one process, in turns, with as many threads."""
    model, against, faster = LABELS[kind]
    kind_of = "compiled" if against == "compiled" else "eager"
    bar(
        what=f"training step, {model}, {cores} core{'s' * (cores > 1)}, against {kind_of} PyTorch",
        faster=faster,
    )
    finished = []
    program = os.path.join(FOLDER, "versus_torch.py")
    benchmark.pedantic(lambda: finished.append(run_python(program, kind, cores)), rounds=1)
    assert finished[-1].status == 0, f"run it to see why: {program} {kind} {cores}"
    found = json.loads(finished[-1].output)
    ratios = {name: smaller_ratio(found, name) for name in found["medians"] if name != "mesascope"}
    if against not in ratios:
        pytest.skip("torch.compile needs a C++ compiler")
    info = benchmark.extra_info
    info.update(found)
    info["seconds"], info["faster"] = found["medians"]["mesascope"], ratios[against]
    others = ", ".join(
        f"{1e3 * found['medians'][name]:.3g} ms {NAMES[name]} ({one:.1f} ×)" for name, one in ratios.items()
    )
    info["detail"] = f"PyTorch {others}; {found['of_matrix_rate']:.0%} of the rate of a large product"


def test_pieces(benchmark, bar, monkeypatch):
    """A step of the softmax transformer with its batch in 1 … 16 pieces: the one chosen against the best."""
    bar(what="softmax transformer, pieces of a batch: the chosen number against the best", slower=1.15)
    model = ms.transformer(dim=10, width=64, layers=4, heads=4, horizon=50, key=jax.random.key(0))
    model = jax.tree.map(jnp.float32, model)
    process, task = ms.RotationAR(ms.Gaussian(1.0), dim=10), ms.NextToken(51)
    steps = _training_steps.TrainingSteps(process, task, ms.Optimizer().build(1000), 64, "float32", None)
    calls, chosen = {}, []
    with jax.enable_x64(False):
        monkeypatch.setattr(
            _pieces,
            "number_of_pieces",
            lambda *given: chosen.append(number_of_pieces(*given)) or chosen[-1],
        )
        _one_step(steps, model)()
        for pieces in PIECES:
            monkeypatch.setattr(_pieces, "number_of_pieces", lambda *given, n=pieces: n)
            calls[pieces] = _one_step(steps, model)
            calls[pieces]()
        times = {}
        benchmark.pedantic(lambda: times.update(interleaved(calls, 10)), rounds=1)
    shown = " / ".join(f"{1e3 * min(one):.3g}" for one in times.values())
    nearest = min(PIECES, key=lambda n: abs(n - chosen[0]))
    benchmark.extra_info["slower"] = min(times[nearest]) / min(min(one) for one in times.values())
    benchmark.extra_info["detail"] = (
        f"{' / '.join(map(str, PIECES))} pieces: {shown} ms; {chosen[0]} are chosen"
    )


def _one_step(steps, model):
    """A step, compiled anew: what was compiled with another number of pieces must not be used again."""
    advance = eqx.filter_jit(lambda *given: steps.advance(*given))
    arguments = (model, steps.start(model), jnp.zeros(()), named_key(0), jnp.asarray(0), jnp.asarray(1))
    return lambda: jax.block_until_ready(advance(*arguments))


def test_many_runs(benchmark, bar, run_python):
    """Eight small runs from a cold start: the way `train_many` takes, against the fastest."""
    bar(what="eight small runs, as train_many does them, against the fastest way", slower=1.25)
    ways = ("one after another", "threads", "vmap", "processes")
    program = os.path.join(FOLDER, "many_runs.py")
    times = {}

    def once():
        for way in ways:
            finished = run_python(program, way)
            assert finished.status == 0, f"run it to see why: {program} {way!r}"
            times.setdefault(way, []).append(finished.seconds)

    benchmark.pedantic(once, rounds=2)
    best = {way: min(one) for way, one in times.items()}
    chosen = "threads" if jax.default_backend() == "cpu" else "vmap"
    benchmark.extra_info["slower"] = best[chosen] / min(best.values())
    benchmark.extra_info["detail"] = ", ".join(f"{way} {seconds:.3g} s" for way, seconds in best.items())
