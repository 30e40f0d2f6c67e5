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


class Rule:
    """A recurrence: the memory before the first token, what every token writes, what a query reads.

    It has as many gates as `gates` says; its other weights are `more`.
    """

    gates = 0

    def start(self, z, more):
        return z.new_zeros(len(z), DIM, DIM)

    def before_block(self, memory):
        return memory

    def read(self, memory, q, more):
        return applied(memory, q)


class LinearAttention(Rule):
    def write(self, memory, k, v, gates, more):
        return memory + outer(v, k)


class GatedLinearAttention(Rule):
    gates = 1

    def write(self, memory, k, v, gates, more):
        return memory * gates[0][:, None] + outer(v, k)


class DeltaNet(Rule):
    gates = 1

    def write(self, memory, k, v, gates, more):
        return memory + outer(gates[0] * (v - applied(memory, k)), k)


class GatedDeltaNet(DeltaNet):
    gates = 2

    def write(self, memory, k, v, gates, more):
        return super().write(gates[1][:, :, None] * memory, k, v, gates, more)


class Longhorn(Rule):
    gates = 1

    def write(self, memory, k, v, gates, more):
        step = gates[0] / (1 + gates[0] * (k * k).sum(-1, keepdim=True))
        return memory + outer(step * (v - applied(memory, k)), k)


class Titans(Rule):
    gates = 3

    def start(self, z, more):
        return super().start(z, more), super().start(z, more)

    def write(self, memory, k, v, gates, more):
        rate, momentum, forgetting = gates
        matrix, surprise = memory
        surprise = momentum[:, :, None] * surprise + outer(rate * (v - applied(matrix, k)), k)
        return (1 - forgetting[:, :, None]) * matrix + surprise, surprise

    def read(self, memory, q, more):
        return applied(memory[0], q)


class TTTLinear(Rule):
    """With layer normalization; a block of tokens is a mini-batch, whose gradients are taken at its start."""

    gates = 1

    def start(self, z, more):
        start = more[0].expand(len(z), DIM, DIM), more[1].expand(len(z), DIM)
        return (*start, *(torch.zeros_like(one) for one in start))

    def before_block(self, memory):
        matrix, bias, step, bias_step = memory
        return matrix + step, bias + bias_step, torch.zeros_like(step), torch.zeros_like(bias_step)

    def write(self, memory, k, v, gates, more):
        matrix, bias, step, bias_step = memory
        moved = -gates[0] * self.gradient(applied(matrix, k) + bias, k, v, *more[2:])
        return matrix, bias, step + outer(moved, k), bias_step + moved

    def gradient(self, z, k, v, gain, shift):
        """That of ½ ‖k + γ n + δ − v‖² in z, where n = (z − mean)/σ."""
        deviation = (z.var(-1, unbiased=False, keepdim=True) + 1e-6).sqrt()
        n = (z - z.mean(-1, keepdim=True)) / deviation
        g = gain * (k + gain * n + shift - v)
        return (g - g.mean(-1, keepdim=True) - n * (g * n).mean(-1, keepdim=True)) / deviation

    def read(self, memory, q, more):
        matrix, bias, step, bias_step = memory
        z = applied(matrix + step, q) + bias + bias_step
        return q + nn.functional.layer_norm(z, (DIM,), *more[2:], 1e-6)


class MesaNet(Rule):
    gates = 2

    def start(self, z, more):
        return super().start(z, more), super().start(z, more)

    def write(self, memory, k, v, gates, more):
        rate, decay = gates
        products, gram = (decay[:, :, None] * one for one in memory)
        return products + outer(rate * v, k), gram + outer(rate * k, k)

    def read(self, memory, q, more):
        products, gram = memory
        return applied(products, torch.linalg.solve(gram + torch.diag(more[0].exp()), q))


TWINS = {
    "linear-attention": LinearAttention(),
    "gated-linear-attention": GatedLinearAttention(),
    "delta-net": DeltaNet(),
    "gated-delta-net": GatedDeltaNet(),
    "longhorn": Longhorn(),
    "titans": Titans(),
    "ttt-linear": TTTLinear(),
    "mesa-net": MesaNet(),
}


class Memory(nn.Module):
    """The layer with its weights as parameters."""

    def __init__(self, layer):
        super().__init__()
        self.factors = nn.ParameterList(tensor(getattr(layer, n)[0]) for n in ("w_k", "w_q", "w_p", "w_v"))
        weights = [tensor(one[0]) for one in jax.tree.leaves(layer.rule)]
        self.rule, self.block = TWINS[RULE], block
        count = 2 * self.rule.gates  # weights and bias in turns
        self.gates, self.more = nn.ParameterList(weights[:count]), nn.ParameterList(weights[count:])

    def forward(self, z):
        w_k, w_q, w_p, w_v = self.factors
        k, q, v = z @ w_k.T, z @ w_q.T, z @ w_v.T
        k, q = (x / x.norm(dim=-1, keepdim=True) for x in (k, q))
        numbers, more = list(self.gates), list(self.more)
        gates = tuple(torch.sigmoid(z @ w.T + b) for w, b in zip(numbers[::2], numbers[1::2], strict=True))
        memory, answers = self.rule.start(z, more), []
        for t in range(0, z.shape[1], BLOCK):
            part = [x[:, t : t + BLOCK] for x in (k, q, v, *gates)]
            memory, seen = self.block(memory, more, *part)
            answers.append(seen)
        return torch.cat(answers, 1) @ w_p.T


def block(memory, more, k, q, v, *gates):
    """Write and read the tokens of a block, one after the other."""
    rule, answers = TWINS[RULE], []
    memory = rule.before_block(memory)
    for t in range(k.shape[1]):
        memory = rule.write(memory, k[:, t], v[:, t], [g[:, t] for g in gates], more)
        answers.append(rule.read(memory, q[:, t], more))
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
