"""The contract of every kind in the registry, tested with its example; nothing here changes for a new kind."""

import pickle
import re
from dataclasses import replace
from typing import Annotated

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pydantic import TypeAdapter, ValidationError

from mesascope.core import named_key
from mesascope.objectives import sample_losses
from mesascope.processes import (
    DiagonalUnitary,
    FewShot,
    Gaussian,
    LinearRegression,
    MarkovTree,
    NextToken,
    OrthogonalAR,
)
from mesascope.report._tex import _MATHEMATICS, _OTHERS
from mesascope.specs import Shape, families, field_help, known_kinds, one_of, summary

ALL = [(family, name) for family in families() for name in known_kinds(family)]
every_kind = pytest.mark.parametrize(
    ("family", "name"), ALL, ids=[f"{family}-{name}" for family, name in ALL]
)
SPECIFIED = [
    (family, name) for family, name in ALL if family != "learner"
]  # their fields may be arrays, which are fitted
T, N, D, S = 5, 2, 2, 3
PROCESSES = {
    "complex tokens": DiagonalUnitary(Gaussian(), D),
    "real tokens": OrthogonalAR(Gaussian(), D, noise=0.1),
    "symbols": MarkovTree.chain(T - 1, S, 1.0),
    "prompts": LinearRegression(D, noise=0.1),
}


def example(family, name):
    return known_kinds(family)[name].example()


@every_kind
def test_kinds_and_their_fields_are_described(family, name):
    kind = known_kinds(family)[name]
    assert summary(kind) != summary(kind.__base__)
    undescribed = [field.name for field in field_help(kind) if not field.text]
    assert not undescribed, f"{name}: the section Args of the docstring lacks {', '.join(undescribed)}"
    assert name == name.lower() and " " not in name and "_" not in name


@every_kind
def test_formulas_of_help_are_letters_and_signs(family, name):
    """A command of LaTeX that the translation has no sign for would stand there by its name: M_todot v_t."""
    written_out = _MATHEMATICS - set(_OTHERS.split())
    kind = known_kinds(family)[name]
    for text in (summary(kind), *(field.text for field in field_help(kind))):
        assert set(re.findall(r"\\([A-Za-z]+)", text)) <= written_out, text


@pytest.mark.parametrize(
    ("family", "name"), SPECIFIED, ids=[f"{family}-{name}" for family, name in SPECIFIED]
)
def test_an_example_is_its_specification(family, name):
    one = example(family, name)
    read = TypeAdapter(Annotated[object, *one_of(family)])
    again = read.validate_python(one.specification())
    assert again == one and hash(again) == hash(one) and repr(again) == repr(one)
    assert pickle.loads(pickle.dumps(one)) == one
    assert read.dump_python(one) == one.specification() and one.specification()["kind"] == name
    with pytest.raises(ValidationError, match="unknown field 'wrong'"):
        read.validate_python({**one.specification(), "wrong": 1})


def model_for(name, data):
    """The example of a model; if it is made of parts, with an embedding and a read-out for these data."""
    one = example("model", name)
    fitting = {
        family: next(kind.example() for kind in known_kinds(family).values() if data in getattr(kind, takes))
        for family, takes in (("embedding", "reads"), ("readout", "predicts"))
        if hasattr(one, family)
    }
    return replace(one, **fitting)


MODELS = [(name, data) for name, kind in known_kinds("model").items() for data in kind.reads]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "data"), MODELS)
def test_a_model_learns_from_the_data_that_it_reads(name, data):
    process, prompts = PROCESSES[data], data == "prompts"
    one = model_for(name, data)
    shape = Shape(data, S if data == "symbols" else D, N if prompts else T)
    one.check(shape)
    task = FewShot(N) if prompts else NextToken(T)
    sample = process.sample(named_key(0), N if prompts else T, 3)

    def loss(model):
        return jnp.mean(sample_losses(model, sample, task))

    value, slope = eqx.filter_value_and_grad(loss)(one.build(shape, 0))
    assert np.isfinite(value)
    sizes = [float(jnp.abs(leaf).max()) for leaf in jax.tree.leaves(slope)]
    assert np.isfinite(sizes).all() and max(sizes) > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", known_kinds("layer"))
def test_a_layer_maps_streams(name):
    one, width = example("layer", name), 4
    layer = one.build(width, "causal", 1.0, named_key(0))
    stream = jax.random.normal(named_key(1), (3, T, width))
    mapped = layer(stream)
    assert layer.width == width and mapped.shape == (3, T, layer.output_width)
    np.testing.assert_allclose(layer.last(stream), mapped[:, -1:], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(jax.vmap(layer)(stream), mapped, rtol=1e-10, atol=1e-12)
    later = layer(stream.at[:, -1].add(1.0))
    assert not layer.causal or np.allclose(later[:, :-1], mapped[:, :-1], rtol=1e-10, atol=1e-12)
    slope = eqx.filter_grad(lambda layer: jnp.sum(layer(stream) ** 2))(layer)
    sizes = [float(jnp.abs(leaf).max()) for leaf in jax.tree.leaves(slope)]
    assert np.isfinite(sizes).all() and (not sizes or max(sizes) > 0)


@pytest.mark.slow
@pytest.mark.parametrize("name", known_kinds("embedding"))
def test_an_embedding_gives_streams_of_its_width(name):
    one = example("embedding", name)
    for data in one.reads:
        prompts = data == "prompts"
        embedding = one.build(S if data == "symbols" else D, named_key(0))
        sample = PROCESSES[data].sample(named_key(1), N if prompts else T, 3)
        stream = embedding(sample.x, sample.y[:, :-1]) if prompts else embedding(sample[:, :-1])
        tokens = {"tokens": T - 1, "stacked": N + 1, "interleaved": 2 * N + 1}[embedding.layout]
        assert stream.shape == (3, tokens, embedding.width)


@pytest.mark.parametrize("name", known_kinds("readout"))
def test_a_readout_gives_the_required_number_of_entries(name):
    one = example("readout", name)
    outputs = 1 if one.predicts == ("prompts",) else 2
    readout = one.build(4, outputs, named_key(0))
    readout.check_width(4)
    assert readout(jnp.ones((3, T, 4))).shape == (3, T, outputs)


def test_every_family_has_kinds():
    assert all(known_kinds(family) for family in families())
