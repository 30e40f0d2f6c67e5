"""Methods of several models in one, stacked along a first axis of their weights, are right or refuse."""

import inspect

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mesascope.core import named_key
from mesascope.dynamics import gradient_flow
from mesascope.models import (
    Dense,
    DiagonalSelfAttention,
    FactoredLinearAttention,
    LearnedPositions,
    LinearAttention,
    MultiHeadLinearAttention,
    OneHot,
    Projected,
    TokenTable,
)
from mesascope.processes import (
    DiagonalUnitary,
    Gaussian,
    LinearRegression,
    MarkovTree,
    NextToken,
    OrthogonalAR,
)
from mesascope.specs import Shape, known_kinds

D, S, T, N = 2, 3, 5, 3
SAMPLES = {
    "complex tokens": DiagonalUnitary(Gaussian(), D).sample(named_key(0), T, 2)[:, :-1],
    "real tokens": OrthogonalAR(Gaussian(), D, noise=0.1).sample(named_key(0), T, 2)[:, :-1],
    "symbols": MarkovTree.chain(T - 1, S, 1.0).sample(named_key(0), T, 2)[:, :-1],
    "prompts": LinearRegression(D).sample(named_key(0), N, 2),
}
STREAM = jax.random.normal(named_key(1), (2, T, 4))


def models():
    """Two models of every kind, with the data that they read."""
    shapes = {
        data: Shape(data, S if data == "symbols" else D, N if data == "prompts" else T) for data in SAMPLES
    }
    kinds = {
        name: kind for name, kind in known_kinds("model").items() if name != "composed"
    }  # of parts that are tested below
    for name, kind in kinds.items():
        for data in kind.reads:
            sample = SAMPLES[data]
            given = (sample.x, sample.y[:, :-1]) if data == "prompts" else (sample,)
            yield name, [kind.example().build(shapes[data], seed) for seed in range(2)], given
    for cls in (MultiHeadLinearAttention, FactoredLinearAttention):
        drawn = [cls.gaussian(D, 2, 0.1, key=named_key(seed)) for seed in range(2)]
        yield cls.__name__, drawn, (SAMPLES["complex tokens"],)


def parts():
    """Two parts with weights of every kind, with the data that they take."""
    for name, kind in known_kinds("layer").items():
        yield name, [kind.example().build(4, "causal", 1.0, named_key(seed)) for seed in range(2)], (STREAM,)
    drawn = {
        "dense": lambda key: Dense.gaussian(4, 1, key=key),
        "positions": lambda key: LearnedPositions.gaussian(T, 4, 1.0, key=key),
        "diagonal": lambda key: DiagonalSelfAttention.gaussian((3, 1), 1.0, key=key),
    }
    for name, draw in drawn.items():
        yield name, [draw(named_key(seed)) for seed in range(2)], (STREAM,)
    for name, draw in {
        "table": lambda key: TokenTable.gaussian(S, 4, key=key),
        "projected": lambda key: Projected.gaussian(OneHot(S), 4, key=key),
    }.items():
        yield name, [draw(named_key(seed)) for seed in range(2)], (SAMPLES["symbols"],)


CASES = [*models(), *parts()]
every_case = pytest.mark.parametrize(("name", "pair", "given"), CASES, ids=[name for name, *_ in CASES])


def stacked(pair):
    return jax.tree.map(lambda *weights: jnp.stack(weights), *pair)


@pytest.mark.slow
@every_case
def test_several_models_in_one_refuse_data(name, pair, given):
    if not jax.tree.leaves(eqx.filter(pair[0], eqx.is_inexact_array)):
        pytest.skip("it has no weights")
    both = stacked(pair)
    for ask in (
        lambda part: part(*given),
        lambda part: part.predictions(*given),
        lambda part: part.outputs(*given),
    ):
        try:
            each = [ask(part) for part in pair]
        except AttributeError:  # it has no such method
            continue
        with pytest.raises(ValueError, match=r"these are 2 models.*jax\.vmap"):
            ask(both)
        mapped = eqx.filter_vmap(ask)(both)
        jax.tree.map(
            lambda found, *known: np.testing.assert_allclose(found, jnp.stack(known), rtol=1e-6, atol=1e-9),
            mapped,
            *each,
        )


def questions(part):
    """The properties of a part, and its methods without arguments."""
    for name in dir(type(part)):
        member = inspect.getattr_static(type(part), name)
        if name.startswith("_") or isinstance(member, classmethod | staticmethod):
            continue
        if isinstance(member, property):
            yield name, lambda it, name=name: getattr(it, name)
        elif callable(method := getattr(part, name)) and not inspect.signature(method).parameters:
            yield name, lambda it, name=name: getattr(it, name)()


@every_case
def test_what_several_models_in_one_say_of_themselves(name, pair, given):
    both = stacked(pair)
    for question, ask in questions(pair[0]):
        first, second = (ask(part) for part in pair)
        try:
            answer = ask(both)
        except ValueError as error:
            assert "these are 2 models" in str(error), question
            continue
        if not jax.tree.leaves(eqx.filter(first, eqx.is_inexact_array)):
            assert answer == first == second, question
            continue
        expected = jax.tree.map(lambda *known: jnp.stack(known), first, second)
        for found, known in zip(jax.tree.leaves(answer), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(found, known, rtol=1e-6, err_msg=question)


def test_the_products_along_a_flow_are_those_of_its_models():
    flow = gradient_flow(
        LinearAttention.diagonal(3, 0.1, 0.2), DiagonalUnitary(Gaussian(), 3), NextToken(6), until=2.0
    )
    found = flow.trajectory.products()
    assert found.shape == (len(flow.times), 3)
    np.testing.assert_allclose(found[0], 0.02, rtol=1e-12)
    np.testing.assert_allclose(found[-1], flow.model.products(), rtol=1e-12)
