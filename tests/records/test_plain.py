import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesascope.records import canonical_json, plain


def test_numbers_arrays_and_paths_take_their_json_form():
    value = {
        "fraction": Fraction(1, 3),
        "complex": np.array([1 + 2j]),
        "scalar": np.float64(0.1),
        "integer": np.int32(4),
        "flag": np.bool_(True),
        "tuple": (1, None),
        2: "key",
        "path": Path("a") / "b.nc",
        "lost": [float("nan"), float("inf"), -float("inf")],
    }
    assert plain(value) == {
        "fraction": "1/3",
        "complex": [{"re": 1.0, "im": 2.0}],
        "scalar": 0.1,
        "integer": 4,
        "flag": True,
        "tuple": [1, None],
        "2": "key",
        "path": "a/b.nc",
        "lost": ["nan", "inf", "-inf"],
    }


def test_jax_arrays_need_no_jax_here():
    jnp = pytest.importorskip("jax.numpy")
    assert plain({"w": jnp.eye(2)}) == {"w": [[1.0, 0.0], [0.0, 1.0]]}


def test_values_that_cannot_be_stored_are_named_with_their_place():
    with pytest.raises(TypeError, match=r"value\['a'\]\[1\]: a object has no place in a record"):
        plain({"a": [1, object()]})
    with pytest.raises(ValueError, match="two keys read the same"):
        plain({1: 0, "1": 0})


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(),
        lambda leaf: st.lists(leaf) | st.dictionaries(st.text(), leaf),
        max_leaves=10,
    )
)
def test_canonical_json_reads_back_and_is_one_text(value):
    text = canonical_json(value)
    assert json.loads(text) == value
    assert canonical_json(json.loads(text)) == text
