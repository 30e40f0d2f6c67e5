"""The layers of the authors' program whose streams are clipped."""

import jax
import numpy as np

from mesascope.models import LinearAttentionStack, prompt_linear_transformer
from mesascope.papers.vonoswald2023._five_layers import _FiveLayers, _start

KEY = jax.random.key(0)


def test_streams_stay_within_the_limit_and_are_else_those_of_linear_attention():
    stream = 3 * np.random.default_rng(0).normal(size=(4, 7, 3))
    plain = prompt_linear_transformer(2, 5, key=KEY).network
    for limit in (0.5, 1e9):
        clipped = _start(_FiveLayers(dim=2, limit=limit), KEY).network
        assert isinstance(clipped, LinearAttentionStack)
        last = np.asarray(clipped(stream))
        np.testing.assert_allclose(np.asarray(clipped.last(stream)), last[:, -1:], rtol=1e-12)
        if limit == 0.5:
            assert np.abs(last).max() <= 0.5 + 1e-12 < np.abs(np.asarray(plain(stream))).max()
        else:
            np.testing.assert_allclose(
                last, np.asarray(plain(stream)), rtol=1e-6
            )  # changes are differences of streams, which round
