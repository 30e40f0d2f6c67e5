"""Causal attention, its gradient and its chunks; the mesa layer beside linear attention."""

import re
import statistics

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest
from measuring import interleaved, ratio

from mesascope import FactoredLinearSelfAttention, MesaLayer
from mesascope.models import _kernels

WIDTH = 16
LENGTHS = (64, 512, 1024, 8192)
CHUNKS = (1, 4, 16, 32, 64)


def compiled(horizon, batch):
    """The gradient of causal attention in values, keys and queries, compiled, and arguments for it."""

    def squared(*streams):
        return jnp.sum(_kernels.causal_attention(*streams) ** 2)

    shape = (horizon, WIDTH, batch)
    streams = [
        0.1 * jax.random.normal(key, shape, jnp.float32) for key in jax.random.split(jax.random.key(0), 3)
    ]
    return jax.jit(jax.grad(squared, argnums=(0, 1, 2))).lower(*streams).compile(), streams


def call(function, arguments):
    return lambda: jax.block_until_ready(function(*arguments))


def in_milliseconds(times):
    return " / ".join(f"{1e3 * min(one):.3g}" for one in times.values())


@pytest.mark.parametrize("batch", [1, 16, 256])
def test_gradient_of_causal_attention_is_linear_in_the_context(benchmark, bar, batch):
    """Time and memory per token at the longest context, in units of those at the shortest."""
    bar(what=f"gradient of causal attention, time per token, T = 8192 against 64, batch {batch}", slower=1.5)
    gradients = {horizon: compiled(horizon, batch) for horizon in LENGTHS}
    calls = {horizon: call(*one) for horizon, one in gradients.items()}
    times = {}
    benchmark.pedantic(lambda: times.update(interleaved(calls, 7)), rounds=1)
    per_token = {horizon: [t / horizon for t in one] for horizon, one in times.items()}
    memory = {h: one.memory_analysis().temp_size_in_bytes / h for h, (one, _) in gradients.items()}
    assert memory[8192] < 1.5 * max(memory[h] for h in LENGTHS[:-1])
    benchmark.extra_info["slower"] = statistics.median(per_token[8192]) / statistics.median(per_token[64])
    lengths = " / ".join(map(str, LENGTHS))
    kib = " / ".join(f"{memory[h] / 1024 / batch:.2g}" for h in LENGTHS)
    benchmark.extra_info["detail"] = (
        f"T = {lengths}: {in_milliseconds(times)} ms, {kib} KiB per token and sequence"
    )


def test_no_array_of_the_gradient_has_the_size_of_the_square_of_the_context(benchmark, bar):
    """Every array of the optimized program is counted; the time is that of one gradient."""
    bar(what="gradient of causal attention, T = 8192, batch 1")
    gradient, streams = compiled(8192, 1)
    shapes = re.findall(r"\b[a-z]+\d+\[([\d,]+)\]", gradient.as_text())
    sizes = [eval(shape.replace(",", "*")) for shape in shapes]
    assert 3 * 8192 * WIDTH // 3 <= max(sizes) < 8192**2 / 10
    benchmark.pedantic(call(gradient, streams), rounds=7, warmup_rounds=2)


@pytest.mark.parametrize("batch", [1, 16, 256])
@pytest.mark.parametrize("horizon", [100, 1024])
def test_chunk(benchmark, bar, monkeypatch, horizon, batch):
    """The chunk that is chosen, against the best of all."""
    bar(what=f"chosen chunk against the best, T = {horizon}, batch {batch}", slower=1.5)
    chosen = min(_kernels._chunk(horizon, WIDTH, batch), horizon)
    calls = {}
    for chunk in CHUNKS:
        monkeypatch.setattr(_kernels, "_chunk", lambda *given, chunk=chunk: chunk)
        calls[chunk] = call(*compiled(horizon, batch))
    times = {}
    benchmark.pedantic(lambda: times.update(interleaved(calls, 9)), rounds=1)
    best = min(times, key=lambda chunk: min(times[chunk]))
    benchmark.extra_info["slower"] = min(times[chosen]) / min(times[best])
    benchmark.extra_info["detail"] = (
        f"chunks of {' / '.join(map(str, CHUNKS))}: {in_milliseconds(times)} ms; {chosen} is chosen"
    )


@pytest.mark.parametrize("batch", [64, 256])
def test_mesa_layer_beside_linear_attention(benchmark, bar, batch):
    """Forward and backward pass of both layers with the same factors."""
    bar(what=f"mesa layer against linear attention, d = 10, T = 50, batch {batch}", slower=3)
    drawn = MesaLayer.gaussian(10, 1, 0.3, key=jax.random.key(0))
    factors = {name: jnp.float32(getattr(drawn, name)) for name in ("w_k", "w_q", "w_p", "w_v")}
    layers = {
        "mesa": MesaLayer(**factors, regularization=jnp.float32(1)),
        "linear": FactoredLinearSelfAttention(**factors, normalizer="1"),
    }
    stream = jax.random.normal(jax.random.key(1), (batch, 50, 10), jnp.float32)
    gradient = eqx.filter_jit(eqx.filter_grad(lambda both: jnp.sum(both[0](both[1]) ** 2)))
    calls = {name: call(gradient, ((layer, stream),)) for name, layer in layers.items()}
    times = {}
    benchmark.pedantic(lambda: times.update(interleaved(calls, 50)), rounds=1)
    benchmark.extra_info["slower"] = ratio(times, "mesa", "linear")[0]
    benchmark.extra_info["detail"] = f"{in_milliseconds(times)} ms"
