"""Memory layers, compared with the sums and minima that define their rules, and with what others computed."""

import functools
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mesascope.models import (
    Additive,
    DeltaNet,
    DiagonalLonghorn,
    FactoredLinearSelfAttention,
    GatedDeltaNet,
    GatedLinearAttention,
    Longhorn,
    MemoryLayer,
    MesaLayer,
    MesaNet,
    NormalizedAdditive,
    Retention,
    Titans,
    TTTLinear,
)
from mesascope.models._memory_layer import _every_answer
from mesascope.models.rules._rule import Gate, MemorySizes, MemoryToken
from mesascope.models.rules._test_time_training import InnerNorm
from mesascope.specs import known_kinds

from . import equations
from .layers import SIZES, draw, gate, layer_with, norm_of, of_kind

TOKENS = 2 * 32 + 5  # two blocks, and a rest
FEATURES = {
    "identity": lambda x: x,
    "elu": lambda x: np.where(x > 0, x + 1, np.exp(x)),
    "relu": lambda x: np.maximum(x, 0),
    "silu": lambda x: x / (1 + np.exp(-x)),
}


def expected_answers(layer, stream, equation):
    """Σ_h P_h read(M_t, q_t) for a stream (n, width); `equation` takes keys, queries and values of a head, and its index."""
    added = 0
    for h, (k, q, p, v) in enumerate(zip(layer.w_k, layer.w_q, layer.w_p, layer.w_v, strict=True)):
        keys, queries, values = stream @ k.T, stream @ q.T, stream @ v.T
        keys, queries = (FEATURES[layer.feature_map](x) for x in (keys, queries))
        if layer.keys == "unit":
            lengths = (np.linalg.norm(x, axis=1, keepdims=True) for x in (keys, queries))
            keys, queries = (x / np.where(n > 0, n, 1) for x, n in zip((keys, queries), lengths, strict=True))
        added = added + equation(np.asarray(keys), np.asarray(queries), np.asarray(values), h=h) @ p.T
    return added


def gate_values(one, stream, h):
    seen = np.real(stream @ one.weights[h].T) + one.bias[h]
    return 1 / (1 + np.exp(-seen))


def rules_and_equations(rng, complex_numbers=False):
    """Rule → the equation of one head, from keys, queries, values, the stream and the head's index."""

    def gates(size=1):
        return gate(rng, size, complex_numbers)

    def with_gates(equation, rule, *names, **more):
        def answers(keys, queries, values, stream, h):
            found = {name: gate_values(getattr(rule, name), stream, h) for name in names}
            return equation(keys, queries, values, **found, **{name: get(h) for name, get in more.items()})

        return rule, answers

    yield "linear-attention", *with_gates(equations.linear_attention, Additive())
    retained = Retention([0.9, 0.7])
    yield (
        "retention",
        *with_gates(equations.retention, retained, decay=lambda h: retained.decay[h]),
    )
    for size in (1, 3):
        decayed = GatedLinearAttention(gates(size))
        yield (
            f"gated-linear-attention-{size}",
            *with_gates(equations.gated_linear_attention, decayed, "decay"),
        )
    yield "delta-net", *with_gates(equations.delta_net, DeltaNet(gates()), "rate")
    gated = GatedDeltaNet(gates(), gates())
    yield "gated-delta-net", *with_gates(equations.gated_delta_net, gated, "rate", "decay")
    full, diagonal = Longhorn(gates(3)), DiagonalLonghorn(gates(3))
    yield "longhorn", *with_gates(equations.longhorn, full, "rate")
    yield "diagonal-longhorn", *with_gates(equations.diagonal_longhorn, diagonal, "rate")
    momentum = Titans(gates(), gates(), gates())
    yield "titans", *with_gates(equations.titans, momentum, "rate", "momentum", "forgetting")
    for steps in (None, 1, 2):
        solved = MesaNet(gates(), gates(), draw(rng, 2, 3), steps)
        yield (
            f"mesa-net-{steps}",
            *with_gates(
                equations.mesa_net,
                solved,
                "rate",
                "decay",
                penalty=lambda h, solved=solved: np.exp(solved.log_penalty[h]),
                steps=lambda h, steps=steps: steps,
            ),
        )


def real_rules_and_equations(rng):
    def answers(rule):
        def of_head(keys, queries, values, stream, h):
            norm = None if rule.norm is None else (rule.norm.gain[h], rule.norm.shift[h])
            rate = gate_values(rule.rate, stream, h)
            start = np.asarray(rule.w_0[h]), np.asarray(rule.b_0[h])
            return equations.ttt_linear(keys, queries, values, rate, *start, rule.mini_batch, norm)

        return of_head

    for mini_batch, norm in ((1, None), (16, None), (5, norm_of(rng))):
        rule = TTTLinear(gate(rng), draw(rng, 2, 3, 3), draw(rng, 2, 3), norm, mini_batch)
        yield f"ttt-linear-{mini_batch}", rule, answers(rule)


@pytest.mark.parametrize(
    "complex_numbers", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["real", "complex"]
)
@pytest.mark.parametrize("keys", ["unit", pytest.param("free", marks=pytest.mark.slow)])
def test_every_rule_is_its_equation(complex_numbers, keys):
    rng = np.random.default_rng(0)
    pairs = list(rules_and_equations(rng, complex_numbers))
    if not complex_numbers:
        pairs += real_rules_and_equations(rng)
    # Free keys are short enough for all rates below 1.
    streams = draw(rng, 2, TOKENS, 3, complex_numbers=complex_numbers) / (2 if keys == "free" else 1)
    for name, rule, equation in pairs:
        layer = layer_with(rng, rule, complex_numbers, keys=keys)
        got = layer(streams)
        for stream, answers in zip(streams, got, strict=True):
            of_head = functools.partial(equation, stream=stream)
            wanted = expected_answers(layer, stream, of_head)
            np.testing.assert_allclose(answers, wanted, atol=1e-10 * abs(wanted).max(), rtol=0, err_msg=name)


@pytest.mark.parametrize("keys", ["free", "unit"])
@pytest.mark.parametrize("feature_map", FEATURES)
def test_keys_and_queries_go_through_the_feature_map(feature_map, keys):
    rng = np.random.default_rng(9)
    layer = layer_with(rng, Additive(), keys=keys, feature_map=feature_map)
    streams = draw(rng, 2, 3, 4, 3)  # two leading axes
    got = np.asarray(layer(streams))
    for index in np.ndindex(2, 3):
        wanted = expected_answers(
            layer, streams[index], lambda k, q, v, h: equations.linear_attention(k, q, v)
        )
        np.testing.assert_allclose(got[index], wanted, rtol=0, atol=1e-12 * abs(wanted).max())


def test_attention_whose_weights_sum_to_one():
    rng = np.random.default_rng(1)
    layer = layer_with(rng, NormalizedAdditive(), keys="free", feature_map="elu")
    stream = draw(rng, 20, 3)
    wanted = expected_answers(
        layer, stream, lambda k, q, v, h: equations.normalized_linear_attention(k, q, v)
    )
    np.testing.assert_allclose(layer(stream), wanted, rtol=1e-12)


@pytest.mark.slow
def test_rules_are_layers_that_were_there_before():
    rng = np.random.default_rng(2)
    stream = draw(rng, 2, 12, 3)
    summed = layer_with(rng, Additive(), keys="free")
    factors = {name: getattr(summed, name) for name in ("w_k", "w_q", "w_p", "w_v")}
    before = FactoredLinearSelfAttention(**factors, normalizer="1")
    np.testing.assert_allclose(summed(stream), before(stream), rtol=1e-12)
    almost_one = Gate(jnp.zeros((2, 1, 3)), jnp.full((2, 1), 40.0))  # 1 − 4e-18
    solved = MemoryLayer(**factors, rule=MesaNet(almost_one, almost_one, jnp.zeros((2, 3))), keys="free")
    np.testing.assert_allclose(solved(stream), MesaLayer(**factors)(stream), rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("context", ["examples", "all"])
@pytest.mark.parametrize("rule", ["titans", "mesa-net", "ttt-linear"])
def test_every_query_reads_the_memory_of_the_visible_tokens(rule, context):
    made = {c: of_kind(rule, context=c) for c in ("causal", context)}
    stream = draw(np.random.default_rng(3), 2, 7, 3)
    visible = stream[:, :-1] if context == "examples" else stream
    for t in (0, 3, 6):
        # A causal layer with the query at the end, whose own token is not written: it reads what the other layer reads.
        tokens, _ = made["causal"].tokens(jnp.moveaxis(visible, 0, -1))
        query = made["causal"].tokens(jnp.moveaxis(stream, 0, -1))[1][t]
        memory = made["causal"].rule.empty(tokens.value[0], tokens.key[0])
        for i in range(visible.shape[1]):
            memory = made["causal"].rule.write(memory, jax.tree.map(lambda x, i=i: x[i], tokens))
        read = made["causal"].rule.read(memory, query).reshape(3, 2, 2)  # (value, heads, batch)
        wanted = jnp.einsum("hov,vhb->bo", made["causal"].w_p, read)
        np.testing.assert_allclose(made[context](stream)[:, t], wanted, rtol=1e-10)


QUICK = ("mesa-net", "ttt-linear")
"""A linear solve, and nested derivatives."""


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if n in QUICK else pytest.mark.slow) for n in known_kinds("rule")]
)
def test_the_last_token_and_gradients(name):
    """The gradient through blocks of tokens is that of differences of the loss."""
    layer = of_kind(name)
    stream = jnp.asarray(draw(np.random.default_rng(4), 1, TOKENS, 3))
    np.testing.assert_allclose(layer.last(stream), layer(stream)[..., -1:, :], rtol=1e-10, atol=1e-12)
    weights, rest = jax.tree.flatten(layer)
    rng = np.random.default_rng(5)
    direction = [jnp.asarray(draw(rng, *w.shape)) for w in weights]

    @jax.jit
    def loss(weights):
        return jnp.mean(jax.tree.unflatten(rest, weights)(stream) ** 2)

    slope = jax.jvp(lambda w: loss(w), (weights,), (direction,))[1]
    gradient = jax.grad(lambda w: loss(w))(weights)
    inner = sum(jnp.vdot(g, d) for g, d in zip(gradient, direction, strict=True))
    np.testing.assert_allclose(inner, slope, rtol=1e-9)
    steps = [[w + sign * 1e-5 * d for w, d in zip(weights, direction, strict=True)] for sign in (1, -1)]
    # central differences: errors of 1e-10 times the third derivative, and rounding of 1e-16/1e-5
    np.testing.assert_allclose((loss(steps[0]) - loss(steps[1])) / 2e-5, slope, rtol=1e-4, atol=1e-8)


@pytest.mark.parametrize("kind", [jnp.float64, jnp.float32])
def test_gradients_through_more_steps_of_conjugate_gradients_than_are_needed(kind):
    """H has rank 1 after one token: the solution is found in two steps, and later residuals are rounding."""
    made = [known_kinds("rule")["mesa-net"](steps=steps) for steps in (None, 2, 30)]
    exact, two, thirty = (
        jax.tree.map(lambda w: w.astype(kind), MemoryLayer.gaussian(3, rule, 2, 0.7, key=jax.random.key(0)))
        for rule in made
    )
    stream = jnp.asarray(draw(np.random.default_rng(10), 2, 6, 3), kind)
    gradient = jax.jit(jax.grad(lambda layer: jnp.mean(layer(stream) ** 2)))
    found, wanted, few = (jax.tree.leaves(gradient(layer)) for layer in (thirty, exact, two))
    assert all(np.isfinite(leaf).all() for leaf in few)
    # steps end at a residual of 16 ε, which derivatives of six tokens amplify by less than twenty
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=300 * jnp.finfo(kind).eps * jnp.abs(b).max())


def test_momentum_with_changing_keys_can_diverge_where_it_is_stable_for_one_key():
    rule = Titans(*[Gate.constant(SIZES, 0.5)] * 3)  # the gates are those of the tokens below
    gates = tuple(jnp.full((1, 1), value) for value in (0.9, 0.95, 0.01))
    one, other = jnp.eye(3)[:2, :, None]
    largest = {}
    for name, keys in {"one": [one] * 200, "two": [one, other, other, other, other] * 40}.items():
        memory = rule.empty(one, one)
        for key in keys:
            memory = rule.write(memory, MemoryToken(key, one, gates))
        largest[name] = float(abs(memory.matrix).max())
    assert largest["one"] < 2 and largest["two"] > 1e10


@pytest.mark.parametrize(
    ("norm", "rate", "bounded"), [(False, 0.24, True), (False, 0.26, False), (True, 0.9, True)]
)
def test_the_bound_on_steps_of_mini_batches_is_that_of_alike_unit_keys(norm, rate, bounded):
    """Four tokens multiply the error by 1 − 4 · 2 η, which is below −1 for η > 1/4."""
    layer = MemoryLayer.gaussian(
        3, known_kinds("rule")["ttt-linear"](norm=norm, mini_batch=4, rate=0.1), key=jax.random.key(0)
    )
    key = jnp.eye(3)[0][:, None]
    memory = layer.rule.empty(key, key)
    for _ in range(400):
        memory = layer.rule.write(memory, MemoryToken(key, -key, (jnp.full((1, 1), rate),)))
    largest = float(abs(memory.start.matrix).max())
    assert largest < 100 if bounded else largest > 1000
    refused = {"kind": "ttt-linear", "norm": norm, "mini_batch": 4, "rate": rate}
    if bounded:
        known_kinds("layer")["memory"](rule=refused)
    else:
        with pytest.raises(ValueError, match=r"must be less than 1/mini_batch = 0\.25"):
            known_kinds("layer")["memory"](rule=refused)


@pytest.mark.parametrize("size", [0, 1e-3, 1, 200])
def test_unit_keys_of_half_precision(size):
    """Squares of such tokens are 0 or infinite in half precision."""
    layer = jax.tree.map(lambda w: w.astype(jnp.float16), of_kind("delta-net"))
    stream = (size * draw(np.random.default_rng(11), 4, 3)).astype(np.float16)
    keys = np.asarray(layer.tokens(jnp.asarray(stream)[..., None])[0].key, float)
    np.testing.assert_allclose(
        np.linalg.norm(keys, axis=1), 1 if size else 0, atol=1e-6
    )  # in single precision


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in known_kinds("rule") if n not in ("ttt-linear", "mesa-net")])
def test_memories_of_half_precision_are_summed_in_single_precision(name):
    """Tokens of mean 1, whose sums grow until 8 bits do not hold what one more token adds."""
    half = jax.tree.map(lambda w: w.astype(jnp.bfloat16), of_kind(name))
    stream = jnp.asarray(1 + draw(np.random.default_rng(12), 2000, 3), jnp.bfloat16)
    exact = jax.tree.map(lambda w: w.astype(jnp.float32), half)(stream.astype(jnp.float32))
    answers = half(stream)
    assert answers.dtype == jnp.bfloat16
    # the answers are rounded to 8 bits, after sums over heads
    np.testing.assert_allclose(
        answers.astype(jnp.float32), exact, rtol=2**-8, atol=1e-4 * float(abs(exact).max())
    )


@pytest.mark.parametrize("rule", ["normalized-linear-attention", {"kind": "mesa-net", "steps": 40}])
@pytest.mark.parametrize("size", [1e-14, 1e-18])
def test_gradients_at_tiny_tokens(rule, size):
    layer = jax.tree.map(
        lambda w: w.astype(jnp.float32), MemoryLayer.gaussian(3, rule, key=jax.random.key(0), scale=0.7)
    )
    stream = jnp.asarray(size * draw(np.random.default_rng(13), 5, 3), jnp.float32)
    gradient = jax.grad(lambda layer: jnp.sum(layer(stream) ** 2))(layer)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))


@pytest.mark.slow
@pytest.mark.parametrize("name", known_kinds("rule"))
def test_single_precision_stays_finite_and_right_for_thousands_of_tokens(name):
    stream = draw(np.random.default_rng(6), 4096, 3)
    exact, single = in_both_precisions(of_kind(name), stream)
    assert np.isfinite(single).all()
    if name in ("normalized-linear-attention", "ttt-linear"):
        return  # denominators come near 0 without positive features; layer normalization of three entries is chaotic
    # 4096 roundings of 6e-8, which mostly cancel
    assert abs(single - exact).max() < 1e-4 * abs(exact).max()


def test_single_precision_of_inner_models_without_normalization():
    made = known_kinds("rule")["ttt-linear"](norm=False)
    layer = MemoryLayer.gaussian(3, made, 2, 0.7, key=jax.random.key(0))
    exact, single = in_both_precisions(layer, draw(np.random.default_rng(6), 4096, 3))
    assert abs(single - exact).max() < 1e-4 * abs(exact).max()  # as above


def in_both_precisions(layer, stream):
    single = jax.tree.map(lambda x: x.astype(jnp.float32), layer)(stream.astype(np.float32))
    assert single.dtype == jnp.float32
    return np.asarray(layer(stream)), single


@pytest.mark.slow
def test_mesa_states_of_half_precision_stay_finite():
    """What was reported of mesa layers in half precision: small gates, long contexts and a weak penalty."""
    layer = of_kind("mesa-net")
    half = jax.tree.map(lambda x: x.astype(jnp.float16), layer)
    stream = draw(np.random.default_rng(7), 4096, 3)
    answers = half(stream.astype(np.float16)).astype(np.float32)
    assert np.isfinite(answers).all()
    # tokens and gates are rounded by 5e-4; the solution amplifies that by up to the condition of H + Λ, some tens
    assert abs(answers - layer(stream)).max() < 0.1 * abs(layer(stream)).max()


@pytest.fixture(scope="module")
def reference():
    with np.load(Path(__file__).parents[2] / "data" / "flash_linear_attention.npz") as file:
        return dict(file)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "tolerance"), [(jnp.float64, 1e-10), (jnp.float32, 1e-5)])
def test_the_reference_recurrences_of_another_library(reference, kind, tolerance):
    """Its naive recurrences, run in double precision: see tests/data/README.md."""

    def batch_last(name):  # (batch, n, heads, …) → (n, …, heads · batch)
        moved = np.moveaxis(reference[f"input:{name}"], (0, 2), (-1, -2))
        return jnp.asarray(moved.reshape(*moved.shape[:-2], -1), kind)

    q, k, v, long_values = (batch_last(n) for n in ("q", "k", "v", "values_as_long_as_keys"))
    rate, decay = batch_last("beta")[:, None], jnp.exp(batch_last("log_decay"))[:, None]
    decays = jnp.exp(batch_last("log_decay_entries"))
    penalty = np.log(reference["input:penalty"])
    sizes = MemorySizes(width=1, heads=2, key=q.shape[1], value=v.shape[1])
    unused = Gate.constant(sizes, 0.5)
    elu = [jax.nn.elu(x) + 1 for x in (q, k)]
    cases = {
        "linear-attention": (Additive(), q, MemoryToken(k, v)),
        "normalized-linear-attention": (NormalizedAdditive(), elu[0], MemoryToken(elu[1], v)),
        "retention": (Retention([1 - 2**-5, 1 - 2**-6]), q, MemoryToken(k, v)),
        "gated-linear-attention": (GatedLinearAttention(unused), q, MemoryToken(k, v, (decays,))),
        "gated-linear-attention-head": (GatedLinearAttention(unused), q, MemoryToken(k, v, (decay,))),
        "delta-net": (DeltaNet(unused), q, MemoryToken(k, v, (rate,))),
        "gated-delta-net": (GatedDeltaNet(unused, unused), q, MemoryToken(k, v, (rate, decay))),
        "mesa-net": (MesaNet(unused, unused, penalty), q, MemoryToken(k, long_values, (rate, decay))),
        "mesa-net-3-steps": (
            MesaNet(unused, unused, penalty, 3),
            q,
            MemoryToken(k, long_values, (rate, decay)),
        ),
    }
    for name, (rule, queries, tokens) in cases.items():
        got = _every_answer(rule, rule.empty(tokens.value[0], tokens.key[0]), tokens, queries)
        assert got.dtype == kind
        moved = np.moveaxis(np.asarray(got).reshape(*got.shape[:-1], 2, 2), (-1, -2), (0, 2))
        np.testing.assert_allclose(moved, reference[f"output:{name}"], atol=tolerance, rtol=0, err_msg=name)
    norm = InnerNorm(jnp.asarray(reference["input:gain"]), jnp.asarray(reference["input:shift"]))
    start = reference["input:start"].swapaxes(1, 2)
    rule = TTTLinear(unused, start, np.zeros(start.shape[:2]), norm, mini_batch=4)
    memory = rule.empty(long_values[0], k[0])
    for key, value in zip(k, long_values, strict=True):
        memory = rule.write(memory, MemoryToken(key, value, (jnp.full((1, 4), 0.3, kind),)))
    now = memory.now
    matrix = np.moveaxis(np.asarray(now.matrix).reshape(*now.matrix.shape[:2], 2, 2), (-1, -2), (0, 1))
    bias = np.moveaxis(np.asarray(now.bias).reshape(-1, 2, 2), (-1, -2), (0, 1))
    np.testing.assert_allclose(matrix, reference["output:ttt-linear-matrix"].swapaxes(-1, -2), atol=tolerance)
    np.testing.assert_allclose(bias, reference["output:ttt-linear-bias"][..., 0, :], atol=tolerance)
