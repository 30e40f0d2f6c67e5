"""Memory layers: gradients beside PyTorch, and time and memory that grow with the number of tokens."""

import importlib.util
import json
import os
import statistics

import jax
import jax.numpy as jnp
import pytest
from measuring import ALL_CORES, interleaved, smaller_ratio

from mesascope import MemoryLayer

FOLDER = os.path.dirname(__file__)
RULES = (
    "linear-attention",
    "gated-linear-attention",
    "delta-net",
    "gated-delta-net",
    "longhorn",
    "titans",
    "ttt-linear",
    "mesa-net",
)
TOKENS = (256, 2048, 16384)


@pytest.mark.skipif(
    importlib.util.find_spec("torch") is None,
    reason="needs a PyTorch beside it; benchmarks/README.md says how to install one",
)
@pytest.mark.parametrize("cores", sorted({1, len(ALL_CORES)}))
@pytest.mark.parametrize("rule", RULES)
def test_gradients_beside_pytorch(benchmark, bar, run_python, rule, cores):
    """The gradient of a layer; all programs in one process, in turns, with as many threads."""
    what = f"gradient of a memory layer, {rule}, d = 16, T = 256, batch 64, {cores} core{'s' * (cores > 1)}"
    bar(what=f"{what}, against eager PyTorch", faster=4)
    program, finished = os.path.join(FOLDER, "versus_torch_memory.py"), []
    benchmark.pedantic(lambda: finished.append(run_python(program, rule, cores)), rounds=1)
    assert finished[-1].status == 0, f"run it to see why: {program} {rule} {cores}"
    found = json.loads(finished[-1].output)
    medians = found["medians"]
    ratios = {name: smaller_ratio(found, name) for name in medians if name != "mesascope"}
    info = benchmark.extra_info
    info["seconds"], info["faster"] = medians["mesascope"], ratios["eager"]
    others = ", ".join(f"{1e3 * medians[name]:.3g} ms {name} ({ratios[name]:.1f} ×)" for name in ratios)
    info["detail"] = f"PyTorch {others}"


@pytest.mark.parametrize("rule", ["delta-net", "titans", "ttt-linear", "mesa-net"])
def test_time_and_memory_are_linear_in_the_tokens(benchmark, bar, rule):
    """Time and memory per token at the longest stream, in units of those at the middle one: the shortest is overhead."""
    bar(
        what=f"gradient of a memory layer, {rule}, time per token, T = 16384 against 2048, batch 4",
        slower=1.5,
    )
    layer = jax.tree.map(jnp.float32, MemoryLayer.gaussian(16, rule, scale=0.3, key=jax.random.key(0)))
    gradient = jax.jit(jax.grad(lambda layer, z: jnp.mean(layer(z) ** 2)))
    calls, memory = {}, {}
    for tokens in TOKENS:
        stream = jax.random.normal(jax.random.key(1), (4, tokens, 16), jnp.float32)
        compiled = gradient.lower(layer, stream).compile()
        calls[tokens] = lambda compiled=compiled, stream=stream: jax.block_until_ready(
            compiled(layer, stream)
        )
        memory[tokens] = compiled.memory_analysis().temp_size_in_bytes / tokens
    assert memory[TOKENS[-1]] < 1.5 * memory[TOKENS[1]]
    times = {}
    benchmark.pedantic(lambda: times.update(interleaved(calls, 5)), rounds=1)
    per_token = {tokens: statistics.median(one) / tokens for tokens, one in times.items()}
    benchmark.extra_info["slower"] = per_token[TOKENS[-1]] / per_token[TOKENS[1]]
    shown = " / ".join(f"{1e3 * statistics.median(one):.3g}" for one in times.values())
    kib = " / ".join(f"{one / 1024 / 4:.2g}" for one in memory.values())
    benchmark.extra_info["detail"] = (
        f"T = {' / '.join(map(str, TOKENS))}: {shown} ms, {kib} KiB per token and sequence"
    )
