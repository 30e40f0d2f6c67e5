"""What PyTorch trains beside us: the same models from the same weights, on data of the same law, all written eagerly."""

import math

import jax
import numpy as np
import torch
from torch import nn
from torch.nn import functional

import mesascope as ms

EXAMPLES, HORIZON, DIM = 20, 51, 10


def tensor(array, device):
    return torch.tensor(np.asarray(array), dtype=torch.float32, device=device)


def our_linear():
    """Three layers of linear attention on regression prompts, d = 5, N = 20, batch 1000."""
    model = ms.prompt_linear_transformer(dim=5, layers=3, scale=0.05, key=jax.random.key(0))
    return model, ms.LinearRegression(dim=5), ms.FewShot(EXAMPLES), 1000


class Linear(nn.Module):
    """ahn2023's formula as it is printed: Z ← Z + (1/n) P Z M (Zᵀ Q Z), tokens as columns."""

    def __init__(self, model, device):
        super().__init__()
        layers = model.network.layers
        self.p = nn.Parameter(torch.stack([tensor(layer.w_pv[0], device) for layer in layers]))
        self.q = nn.Parameter(torch.stack([tensor(layer.w_kq[0], device) for layer in layers]))
        self.device = device
        self.mask = torch.eye(EXAMPLES + 1, device=device)
        self.mask[-1, -1] = 0

    def data(self, batch):
        x = torch.randn(batch, EXAMPLES + 1, 5, device=self.device)
        w = torch.randn(batch, 5, 1, device=self.device)
        return x, (x @ w)[..., 0]

    def loss(self, prompts):
        x, y = prompts
        labels = torch.cat([y[:, :-1], torch.zeros_like(y[:, :1])], 1)
        z = self.layers(torch.cat([x, labels[..., None]], -1).transpose(1, 2))
        return ((-z[:, -1, -1] - y[:, -1]) ** 2).mean() / 2

    def layers(self, z):
        for p, q in zip(self.p, self.q, strict=True):
            z = z + p @ z @ self.mask @ (z.transpose(1, 2) @ q @ z) / EXAMPLES
        return z


class LinearByGram(Linear):
    """The same, in the order that is fastest for PyTorch: first the Gram matrix, then the weights."""

    def layers(self, z):
        z = z.transpose(1, 2)
        for p, q in zip(self.p, self.q, strict=True):
            seen = z[:, :-1]
            gram = seen.transpose(1, 2) @ seen / EXAMPLES
            z = z + z @ (p @ gram @ q).transpose(1, 2)
        return z.transpose(1, 2)


def our_transformer():
    """A softmax transformer: 4 layers, width 64, 4 heads, contexts of 50 tokens, batch 64."""
    model = ms.transformer(dim=DIM, width=64, layers=4, heads=4, horizon=HORIZON - 1, key=jax.random.key(0))
    return model, ms.RotationAR(ms.Gaussian(1.0), dim=DIM), ms.NextToken(HORIZON), 64


class Block(nn.Module):
    """Pre-norm attention and MLP, each with a residual connection."""

    def __init__(self, attention, mlp, tokens, fused, device):
        super().__init__()
        heads, _, width = attention.w_k.shape
        self.heads, self.fused = heads, fused
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        stacked = [np.asarray(w).reshape(-1, width) for w in (attention.w_q, attention.w_k, attention.w_v)]
        self.qkv.weight.data = tensor(np.concatenate(stacked), device)
        self.out.weight.data = tensor(np.moveaxis(np.asarray(attention.w_p), 0, 1).reshape(width, -1), device)
        for layer, weight, bias in zip((self.up, self.down), mlp.weights, mlp.biases, strict=True):
            layer.weight.data, layer.bias.data = tensor(weight, device), tensor(bias, device)
        later = torch.ones(tokens, tokens, dtype=torch.bool, device=device)
        self.later = torch.triu(later, 1)

    def forward(self, z):
        z = z + self.attended(self.norms[0](z))
        return z + self.down(functional.gelu(self.up(self.norms[1](z))))

    def attended(self, z):
        batch, tokens, width = z.shape
        q, k, v = self.qkv(z).view(batch, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        if self.fused:
            seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = q @ k.transpose(-1, -2) / math.sqrt(width // self.heads)
            seen = scores.masked_fill(self.later, -torch.inf).softmax(-1) @ v
        return self.out(seen.transpose(1, 2).reshape(batch, tokens, width))


class Transformer(nn.Module):
    """The softmax transformer with nn.LayerNorm, nn.Linear and attention by explicit masked softmax."""

    fused = False

    def __init__(self, model, device):
        super().__init__()
        projected, positions = model.embedding.embedding, model.embedding.positions
        self.device = device
        self.embedding = nn.Parameter(tensor(projected.weights, device))
        self.positions = nn.Parameter(tensor(positions.table, device))
        pairs = [[residual.layer.layer for residual in block.layers] for block in model.network.layers]
        tokens, dense = len(self.positions), model.readout.dense
        self.blocks = nn.Sequential(*(Block(*pair, tokens, self.fused, device) for pair in pairs))
        self.norm, self.readout = nn.LayerNorm(projected.width), nn.Linear(projected.width, len(dense.bias))
        self.readout.weight.data, self.readout.bias.data = (
            tensor(dense.weights, device),
            tensor(dense.bias, device),
        )
        self.to(device)

    def data(self, batch):
        planes = torch.complex(*torch.randn(2, batch, 1, DIM // 2, device=self.device))
        turns = torch.rand(batch, 1, DIM // 2, device=self.device)
        angles = 2 * math.pi * (turns * torch.arange(HORIZON, device=self.device)[:, None] % 1.0)
        return torch.view_as_real(planes * torch.polar(torch.ones_like(angles), angles)).flatten(-2)

    def answers(self, tokens):
        return self.readout(self.norm(self.blocks(tokens @ self.embedding.T + self.positions)))

    def loss(self, tokens):
        predicted = self.answers(tokens[:, :-1])[:, 1:]
        return ((predicted - tokens[:, 2:]) ** 2).sum((-1, -2)).mean() / 2


class FusedTransformer(Transformer):
    """The same with scaled_dot_product_attention."""

    fused = True


def our_prompts():
    """A small GPT-2-like transformer on regression: 3 layers, width 64, 2 heads, 11 points, d = 5, batch 64."""
    model = ms.prompt_transformer(dim=5, width=64, layers=3, heads=2, examples=10, key=jax.random.key(0))
    return model, ms.LinearRegression(dim=5), ms.FewShot.every(10), 64


class Prompts(Transformer):
    """The transformer on tokens (x_1, 0), (0, y_1), …, (x_11, 0), which predicts at every x."""

    def data(self, batch):
        x = torch.randn(batch, 11, 5, device=self.device)
        return x, (x @ torch.randn(batch, 5, 1, device=self.device))[..., 0]

    def loss(self, prompts):
        x, y = prompts
        tokens = x.new_zeros(len(x), 22, 6)
        tokens[:, ::2, :5], tokens[:, 1::2, 5] = x, y
        predicted = self.answers(tokens[:, :-1])[:, ::2, 0]
        return ((predicted - y) ** 2).sum(-1).mean() / 2


class FusedPrompts(Prompts):
    """The same with scaled_dot_product_attention."""

    fused = True


class CompiledPrompts(Prompts):
    """The first by `torch.compile`."""

    def __init__(self, model, device):
        super().__init__(model, device)
        self.loss = torch.compile(self.loss)


KINDS = {
    "linear": (our_linear, {"literal": Linear, "gram": LinearByGram}),
    "transformer": (our_transformer, {"softmax": Transformer, "fused": FusedTransformer}),
    "prompts": (our_prompts, {"softmax": Prompts, "fused": FusedPrompts, "compiled": CompiledPrompts}),
}
