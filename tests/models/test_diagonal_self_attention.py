"""The layer, compared with its formula as loops and with many diagonal heads, and its errors."""

import jax
import numpy as np
import pytest

from mesascope.models import DiagonalSelfAttention, LinearAttentionStack, LinearSelfAttention

KEY = jax.random.key(0)
LENGTH = 5


def stream(width, *batch, seed=0):
    return np.random.default_rng(seed).normal(size=(*batch, LENGTH, width))


def by_loops(layer, z):
    """(1/ρ) Σ_i Ω_ab z_i,a z_i,b z_t,b with ρ = t − 1, or N for "examples" and "all" (and 0 where ρ = 0)."""
    starts = np.cumsum([0, *layer.blocks])
    omega = np.zeros((layer.width, layer.width))
    for value, (a, b) in zip(np.asarray(layer.couplings), layer.pairs, strict=True):
        omega[starts[a] : starts[a + 1], starts[b] : starts[b + 1]] = value
    out = np.zeros_like(z)
    for t in range(LENGTH):
        seen = {"causal": z[: t + 1], "all": z, "examples": z[:-1]}[layer.context]
        rho = t if layer.context == "causal" else LENGTH - 1
        for token in seen:
            if rho:
                out[t] += (omega * np.outer(token, token)) @ z[t] / rho
    return out


@pytest.mark.parametrize("context", ["causal", "all", "examples"])
@pytest.mark.parametrize(
    ("blocks", "pairs"),
    [((3, 1), None), ((2, 1), ((1, 0),)), ((1, 1, 2), ((0, 2), (2, 0), (1, 1))), ((4,), None)],
)
def test_the_formula(context, blocks, pairs):
    layer = DiagonalSelfAttention.gaussian(blocks, 0.7, key=KEY, pairs=pairs, context=context)
    z = stream(sum(blocks))
    expected = by_loops(layer, z)
    np.testing.assert_allclose(layer(z), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(layer.last(z), expected[-1:], rtol=1e-12, atol=1e-12)


def test_many_diagonal_heads_are_one_layer():
    rng = np.random.default_rng(1)
    p, q = rng.normal(size=(2, 5, 2))
    spread = np.array([1, 1, 1, 0]), np.array([0, 0, 0, 1])
    w_pv, w_kq = (np.stack([np.diag(x * spread[0] + y * spread[1]) for x, y in rows]) for rows in (p, q))
    heads = LinearSelfAttention(w_kq, w_pv, context="examples")
    layer = DiagonalSelfAttention((p.T @ q).ravel(), (3, 1), context="examples")
    z = stream(4, 2)
    np.testing.assert_allclose(layer(z), heads(z), rtol=1e-12, atol=1e-12)


@pytest.mark.slow
def test_stacks_and_gradients():
    layers = [DiagonalSelfAttention.gaussian((2, 1), 0.3, key=key) for key in jax.random.split(KEY)]
    stack, z = LinearAttentionStack(layers), stream(3, 4)
    both = [one + by_loops(layers[0], one) for one in z]
    expected = np.stack([one + by_loops(layers[1], one) for one in both])
    np.testing.assert_allclose(stack(z), expected, rtol=1e-12, atol=1e-12)
    slope = jax.grad(lambda model: (model(z) ** 2).sum())(stack).layers[0].couplings
    for k in range(4):
        ends = []
        for step in (1e-5, -1e-5):
            moved = DiagonalSelfAttention(layers[0].couplings.at[k].add(step), (2, 1))
            ends.append(float((LinearAttentionStack([moved, layers[1]])(z) ** 2).sum()))
        # differences of order 2: an error of 1e-10 beside rounding of 1e-16/1e-5
        assert slope[k] == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-7, abs=1e-7)


REFUSED = {
    "no blocks": (lambda: DiagonalSelfAttention([1.0], ()), TypeError, "blocks: must be the sizes"),
    "an empty block": (lambda: DiagonalSelfAttention([1.0], (0,)), ValueError, r"blocks\[0\] must be"),
    "a pair of no blocks": (
        lambda: DiagonalSelfAttention([1.0], (2, 1), [(2, 0)]),
        ValueError,
        r"pairs: must be distinct pairs of the 2 blocks, at least one",
    ),
    "a pair twice": (
        lambda: DiagonalSelfAttention([1.0, 2.0], (2, 1), [(1, 0), (1, 0)]),
        ValueError,
        "pairs: must be distinct",
    ),
    "couplings too few": (
        lambda: DiagonalSelfAttention([1.0], (2, 1)),
        ValueError,
        "couplings: expected one for each of the 4 pairs of blocks, got 1",
    ),
    "nan": (
        lambda: DiagonalSelfAttention([np.nan], (2,)),
        ValueError,
        "couplings: every entry must be finite",
    ),
    "complex": (lambda: DiagonalSelfAttention([1j], (2,)), TypeError, "couplings: must be real"),
    "context": (lambda: DiagonalSelfAttention([1.0], (2,), context="past"), ValueError, "context: 'past'"),
    "scale": (lambda: DiagonalSelfAttention.gaussian((2,), 0, key=KEY), ValueError, "scale must be greater"),
    "width": (
        lambda: DiagonalSelfAttention([1.0], (2,))(np.ones((4, 3))),
        ValueError,
        r"DiagonalSelfAttention: expected a stream of shape \(…, n, 2\) with n ≥ 1, got \(4, 3\)",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_arguments(case):
    call, kind, message = REFUSED[case]
    with pytest.raises(kind, match=message):
        call()
