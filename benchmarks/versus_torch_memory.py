"""Gradients of memory layers of ours and of PyTorch in turns: `versus_torch_memory.py RULE CORES`.

Prints one JSON object with the times of a gradient in all weights: ours, the same recurrence in eager PyTorch, and with
blocks of sixteen tokens compiled by `torch.compile`, where that works. d = 16, T = 256, batch 64, float32, one head. All
three must give the same loss from the same weights and tokens.
"""

import json
import os
import statistics
import sys

RULE, CORES = sys.argv[1], int(sys.argv[2])
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])  # before jax and torch start their threads

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from measuring import interleaved  # noqa: E402
from torch import nn  # noqa: E402

from mesascope import MemoryLayer  # noqa: E402

torch.set_num_threads(CORES)
DIM, TOKENS, BATCH, BLOCK = 16, 256, 64, 16


def outer(a, b):
    return a[:, :, None] * b[:, None]


def applied(matrix, vector):
    return (matrix @ vector[:, :, None])[..., 0]


def gated_linear_attention(memory, k, v, gates):
    return memory * gates[0][:, None] + outer(v, k)


def delta_net(memory, k, v, gates):
    return memory + outer(gates[0] * (v - applied(memory, k)), k)


def gated_delta_net(memory, k, v, gates):
    return delta_net(gates[1][:, :, None] * memory, k, v, gates)


def longhorn(memory, k, v, gates):
    step = gates[0] / (1 + gates[0] * (k * k).sum(-1, keepdim=True))
    return memory + outer(step * (v - applied(memory, k)), k)


def titans(memory, k, v, gates):
    rate, momentum, forgetting = gates
    matrix, surprise = memory
    surprise = momentum[:, :, None] * surprise + outer(rate * (v - applied(matrix, k)), k)
    return (1 - forgetting[:, :, None]) * matrix + surprise, surprise


WRITE = {
    "gated-linear-attention": gated_linear_attention,
    "delta-net": delta_net,
    "gated-delta-net": gated_delta_net,
    "longhorn": longhorn,
    "titans": titans,
}


class Memory(nn.Module):
    """The layer with its weights as parameters."""

    def __init__(self, layer):
        super().__init__()
        self.factors = nn.ParameterList(tensor(getattr(layer, n)[0]) for n in ("w_k", "w_q", "w_p", "w_v"))
        gates = [one for one in jax.tree.leaves(layer.rule)]
        self.gates = nn.ParameterList(tensor(one[0]) for one in gates)  # weights and bias in turns
        self.block = block

    def forward(self, z):
        w_k, w_q, w_p, w_v = self.factors
        k, q, v = z @ w_k.T, z @ w_q.T, z @ w_v.T
        k, q = (x / x.norm(dim=-1, keepdim=True) for x in (k, q))
        numbers = list(self.gates)
        gates = tuple(torch.sigmoid(z @ w.T + b) for w, b in zip(numbers[::2], numbers[1::2], strict=True))
        memory = z.new_zeros(len(z), DIM, DIM)
        memory = (memory, memory) if RULE == "titans" else memory
        answers = []
        for t in range(0, z.shape[1], BLOCK):
            part = [x[:, t : t + BLOCK] for x in (k, q, v, *gates)]
            memory, seen = self.block(memory, *part)
            answers.append(seen)
        return torch.cat(answers, 1) @ w_p.T


def block(memory, k, q, v, *gates):
    """Write and read the tokens of a block, one after the other."""
    answers = []
    for t in range(k.shape[1]):
        memory = WRITE[RULE](memory, k[:, t], v[:, t], [g[:, t] for g in gates])
        answers.append(applied(memory[0] if RULE == "titans" else memory, q[:, t]))
    return memory, torch.stack(answers, 1)


def tensor(array):
    return nn.Parameter(torch.tensor(np.asarray(array), dtype=torch.float32))


def gradients_of(program, stream):
    def run():
        program.zero_grad(set_to_none=True)
        loss = (program(stream) ** 2).mean()
        loss.backward()
        return loss.item()

    return run


def main():
    layer = MemoryLayer.gaussian(DIM, RULE, scale=0.3, key=jax.random.key(0))
    layer = jax.tree.map(lambda x: x.astype(jnp.float32), layer)
    stream = np.random.default_rng(0).normal(size=(BATCH, TOKENS, DIM)).astype(np.float32)
    ours = jax.jit(jax.value_and_grad(lambda layer, z: jnp.mean(layer(z) ** 2)))
    eager, compiled = Memory(layer), Memory(layer)
    compiled.block = torch.compile(block)
    functions = {
        "mesascope": lambda: float(jax.block_until_ready(ours(layer, stream))[0]),
        "eager": gradients_of(eager, torch.tensor(stream)),
        "compiled": gradients_of(compiled, torch.tensor(stream)),
    }
    try:
        losses = {name: one() for name, one in functions.items()}
    except Exception as error:  # torch.compile needs a C++ compiler, and fails in many ways
        del functions["compiled"]
        losses = {name: one() for name, one in functions.items()}
        print(f"without torch.compile: {error}", file=sys.stderr)
    assert max(losses.values()) - min(losses.values()) < 1e-4 * losses["eager"], losses
    times = interleaved(functions, rounds=9)
    medians = {name: statistics.median(one) for name, one in times.items()}
    minima = {name: min(one) for name, one in times.items()}
    print(json.dumps({"medians": medians, "minima": minima}))


main()
