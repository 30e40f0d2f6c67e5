import subprocess
import sys

import jax
import numpy as np
import pytest

from mesascope.core import named_key, random_key, split_keys


def data(*args):
    return tuple(np.asarray(jax.random.key_data(named_key(*args))).tolist())


def test_equal_names_make_equal_keys():
    assert data(3, "init", "layer-0") == data(3, "init", "layer-0")


def test_without_names_it_is_the_plain_key():
    assert data(3) == tuple(np.asarray(jax.random.key_data(jax.random.key(3))).tolist())


def test_keys_depend_on_seed_names_and_their_division():
    names = [(), ("",), ("", ""), ("a",), ("b",), ("ab", "c"), ("a", "bc"), ("abc",)]
    calls = [(seed, *parts) for seed in (0, 1) for parts in names]
    assert len({data(*call) for call in calls}) == len(calls)


def test_streams_of_different_names_are_uncorrelated():
    count = 20_000
    first = jax.random.normal(named_key(0, "first"), (count,))
    second = jax.random.normal(named_key(0, "second"), (count,))
    # The sample correlation of independent normals has standard deviation count**-0.5.
    assert abs(float(first @ second) / count) < 5 * count**-0.5


@pytest.mark.slow
def test_the_key_is_the_same_in_every_process_and_precision():
    # Python randomizes the hashes of strings per process; a key made from them would change.
    program = (
        "import jax, numpy as np; from mesascope.core import named_key; "
        "print(np.asarray(jax.random.key_data(named_key(2**32 - 1, 'data', 'π'))).tolist())"
    )
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert tuple(map(int, out.strip().strip("[]").split(","))) == data(2**32 - 1, "data", "π")


def test_bad_arguments():
    with pytest.raises(ValueError, match="seed must be at least 0, got -1"):
        named_key(-1, "a")
    with pytest.raises(ValueError, match="seed must be below"):
        named_key(2**32, "a")
    with pytest.raises(TypeError, match="seed must be an integer"):
        named_key(1.0, "a")
    with pytest.raises(TypeError, match=r"named_key names must be strings, got 3; write str"):
        named_key(0, 3)


def test_keys_of_both_kinds_are_taken_as_they_are():
    for key in (jax.random.key(0), jax.random.PRNGKey(0), jax.random.split(jax.random.key(0), 3)):
        assert random_key(key) is key
    assert jax.jit(lambda key: jax.random.key_data(random_key(key)))(jax.random.key(1)).shape == (2,)
    found, expected = (
        jax.random.key_data(split(jax.random.key(3), 4)) for split in (split_keys, jax.random.split)
    )
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("wrong", [0, None, 1.5, "key", np.uint32(3), np.zeros(2), jax.numpy.arange(2)])
def test_values_that_are_not_keys_are_refused_with_the_fix(wrong):
    for use in (random_key, split_keys):
        with pytest.raises(TypeError, match=r"key must be a random key such as jax\.random\.key\(0\), got "):
            use(wrong)
