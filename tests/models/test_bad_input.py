"""Input that models refuse, in one line that says what, where and the fix."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mesascope.models import (
    FactoredLinearAttention,
    LinearAttention,
    MultiHeadLinearAttention,
    check_normalizer,
    normalizer_values,
)

KEY = jax.random.key(0)
KQ, PV = np.ones((4, 4)), np.ones((2, 4))
K, Q, P, V = np.ones((1, 3, 4)), np.ones((1, 3, 4)), np.ones((1, 2, 5)), np.ones((1, 5, 4))
HOLED = np.where(np.eye(4) > 0, np.nan, 0.0)


class Unhashable:
    __hash__ = None

    def __call__(self, t):
        return t


def factored(**changed):
    return FactoredLinearAttention(**({"w_k": K, "w_q": Q, "w_p": P, "w_v": V} | changed))


REFUSED = {
    "w_kq of another size": (lambda: LinearAttention(np.ones((2, 2)), PV), ValueError, "weights do not fit"),
    "w_pv of another size": (
        lambda: LinearAttention(KQ, np.ones((2, 2))),
        ValueError,
        r"expected w_kq \(2d, 2d\)",
    ),
    "w_pv transposed": (lambda: LinearAttention(KQ, PV.T), ValueError, "weights do not fit"),
    "no dimension at all": (
        lambda: LinearAttention(np.ones((0, 0)), np.ones((0, 0))),
        ValueError,
        "w_kq: every axis must have at least one entry",
    ),
    "too many axes": (lambda: LinearAttention(KQ[None], PV), ValueError, "w_kq: expected 2 axes"),
    "too few axes": (lambda: LinearAttention(KQ, 1.0), ValueError, "w_pv: expected 2 axes"),
    "nan weight": (lambda: LinearAttention(HOLED, PV), ValueError, "w_kq: every entry must be finite"),
    "infinite weight": (
        lambda: LinearAttention(KQ, np.inf * PV),
        ValueError,
        "w_pv: every entry must be finite",
    ),
    "words for weights": (
        lambda: LinearAttention("identity", PV),
        TypeError,
        "w_kq: not an array of numbers",
    ),
    "ragged weights": (
        lambda: LinearAttention([[1, 2], [3]], PV),
        TypeError,
        "w_kq: not an array of numbers",
    ),
    "heads that differ": (
        lambda: MultiHeadLinearAttention(np.ones((2, 4, 4)), np.ones((3, 2, 4))),
        ValueError,
        r"expected w_kq \(heads, 2d, 2d\)",
    ),
    "merged for several heads": (
        lambda: MultiHeadLinearAttention(KQ, PV),
        ValueError,
        "w_kq: expected 3 axes",
    ),
    "full weights not square": (
        lambda: LinearAttention.from_full(np.ones((3, 6)), np.ones((3, 6))),
        ValueError,
        r"full weights must both be \(3d, 3d\)",
    ),
    "full weights of 4d": (lambda: LinearAttention.from_full(KQ, KQ), ValueError, r"both be \(3d, 3d\)"),
    "factor of another size": (
        lambda: factored(w_q=K[:, :2]),
        ValueError,
        "factored weights do not fit: got w_k",
    ),
    "factors of other heads": (
        lambda: factored(w_v=np.ones((2, 5, 4))),
        ValueError,
        "factored weights do not fit",
    ),
    "keys of other heads": (
        lambda: factored(w_k=np.ones((2, 3, 4)), w_q=np.ones((2, 3, 4))),
        ValueError,
        "factored weights do not fit",
    ),
    "factor of another dimension": (lambda: factored(w_p=np.ones((1, 3, 5))), ValueError, "do not fit"),
    "nan factor": (lambda: factored(w_v=np.nan * V), ValueError, "w_v: every entry must be finite"),
    "diagonal of dim 0": (lambda: LinearAttention.diagonal(0, 1, 1), ValueError, "dim must be at least 1"),
    "diagonal of dim 2.0": (lambda: LinearAttention.diagonal(2.0, 1, 1), TypeError, "dim must be an integer"),
    "diagonal nan": (lambda: LinearAttention.diagonal(2, np.nan, 1), ValueError, "a must be finite"),
    "diagonal infinite": (lambda: LinearAttention.diagonal(2, 1, jnp.inf), ValueError, "b must be finite"),
    "diagonal nan in jax": (
        lambda: LinearAttention.diagonal(2, 1, jnp.array(jnp.nan)),
        ValueError,
        "b must be",
    ),
    "diagonal word": (lambda: LinearAttention.diagonal(2, "big", 1), ValueError, "is not a rational number"),
    "diagonal vector": (lambda: LinearAttention.diagonal(2, np.ones(2), 1), TypeError, "a must be a number"),
    "gaussian of dim -1": (
        lambda: LinearAttention.gaussian(-1, 1.0, key=KEY),
        ValueError,
        "dim must be at least 1",
    ),
    "gaussian scale 0": (
        lambda: LinearAttention.gaussian(2, 0.0, key=KEY),
        ValueError,
        "scale must be greater",
    ),
    "gaussian scale nan": (
        lambda: LinearAttention.gaussian(2, np.nan, key=KEY),
        ValueError,
        "scale must be finite",
    ),
    "no heads": (
        lambda: MultiHeadLinearAttention.gaussian(2, 0, 1.0, key=KEY),
        ValueError,
        "heads must be at least 1",
    ),
    "1.5 heads": (
        lambda: MultiHeadLinearAttention.gaussian(2, 1.5, 1.0, key=KEY),
        TypeError,
        "heads must be an int",
    ),
    "heads of scale -1": (
        lambda: MultiHeadLinearAttention.gaussian(2, 1, -1, key=KEY),
        ValueError,
        "scale must be",
    ),
    "factors of scale -1": (
        lambda: FactoredLinearAttention.gaussian(2, 1, -1, key=KEY),
        ValueError,
        "scale must be",
    ),
    "factors of no heads": (
        lambda: FactoredLinearAttention.gaussian(2, 0, 1, key=KEY),
        ValueError,
        "heads must be",
    ),
    "factors of dim 0": (
        lambda: FactoredLinearAttention.gaussian(0, 1, 1, key=KEY),
        ValueError,
        "dim must be",
    ),
    "keys of size 0": (
        lambda: FactoredLinearAttention.gaussian(2, 1, 1, key=KEY, key_size=0),
        ValueError,
        "key_size must be at least 1",
    ),
    "values of size 1.5": (
        lambda: FactoredLinearAttention.gaussian(2, 1, 1, key=KEY, value_size=1.5),
        TypeError,
        "value_size must be an integer",
    ),
    "unknown normalizer": (
        lambda: LinearAttention(KQ, PV, "t+1"),
        ValueError,
        r"'t\+1' is unknown; use one of t-1",
    ),
    "numeric normalizer": (lambda: LinearAttention(KQ, PV, 1), TypeError, "neither a name nor a function"),
    "no normalizer": (lambda: LinearAttention(KQ, PV, None), TypeError, "neither a name nor a function"),
    "unhashable normalizer": (lambda: LinearAttention(KQ, PV, Unhashable()), TypeError, "is not hashable"),
    "tokens of another dim": (
        lambda: LinearAttention(KQ, PV).predictions(np.ones((5, 3))),
        ValueError,
        r"tokens: expected shape \(…, t, 2\) for this model, got \(5, 3\)",
    ),
    "one token": (
        lambda: LinearAttention(KQ, PV).predictions(np.ones((1, 2))),
        ValueError,
        "at least 2 tokens",
    ),
    "one token in a call": (
        lambda: LinearAttention(KQ, PV)(np.ones((4, 1, 2))),
        ValueError,
        "at least 2 tokens",
    ),
    "a vector of tokens": (
        lambda: LinearAttention(KQ, PV).predictions(np.ones(2)),
        ValueError,
        "expected shape",
    ),
    "vanishing normalizer": (
        lambda: LinearAttention(KQ, PV, lambda t: t - 3.0).predictions(np.ones((5, 2))),
        ValueError,
        r"finite and positive, but is -1.0 at t = 2",
    ),
    "vanishing normalizer in a call": (
        lambda: LinearAttention(KQ, PV, lambda t: t - 3.0)(np.ones((3, 2))),
        ValueError,
        r"finite and positive, but is 0.0 at t = 3",
    ),
    "infinite normalizer": (
        lambda: normalizer_values(lambda t: np.inf * t, np.arange(2, 5)),
        ValueError,
        "finite and positive, but is inf at t = 2",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    build, error, message = REFUSED[case]
    with pytest.raises(error) as caught:
        build()
    assert re.search(message, str(caught.value)), str(caught.value)
    assert "\n" not in str(caught.value)
    assert type(caught.value) in (ValueError, TypeError)


def test_normalizers_are_values_at_context_lengths():
    t = np.arange(2, 6)
    np.testing.assert_array_equal(normalizer_values("t-1", t), [1, 2, 3, 4])
    np.testing.assert_array_equal(normalizer_values("t", t), [2, 3, 4, 5])
    np.testing.assert_array_equal(normalizer_values("1", t), [1, 1, 1, 1])
    np.testing.assert_array_equal(normalizer_values(lambda t: 2, t), [2, 2, 2, 2])
    assert check_normalizer(abs) is abs
