import numpy as np
import pytest

from mesascope.core import embed, embed_full, full_from_reduced, named_key, reduced_from_full
from mesascope.processes import (
    DiagonalUnitary,
    Gaussian,
)


@pytest.fixture
def tokens():
    return DiagonalUnitary(Gaussian(), 3).sample(named_key(0), 5, 2)


@pytest.mark.slow
def test_rows_are_the_token_and_its_predecessor(tokens):
    embedded = embed(tokens)
    assert embedded.shape == (2, 5, 6)
    for i in range(5):
        np.testing.assert_array_equal(embedded[:, i, :3], tokens[:, i])
        np.testing.assert_array_equal(embedded[:, i, 3:], tokens[:, i - 1] if i else 0)


def test_the_papers_embedding_has_a_zero_block_in_front(tokens):
    full = embed_full(tokens)
    assert full.shape == (2, 5, 9)
    np.testing.assert_array_equal(full[..., :3], 0)
    np.testing.assert_array_equal(full[..., 3:], embed(tokens))


def test_conversions_are_inverse(tokens):
    np.testing.assert_array_equal(reduced_from_full(embed_full(tokens)), embed(tokens))
    np.testing.assert_array_equal(full_from_reduced(embed(tokens)), embed_full(tokens))


def test_any_leading_axes_and_real_tokens():
    tokens = np.arange(12.0).reshape(4, 3)
    np.testing.assert_array_equal(embed(tokens)[0], [0, 1, 2, 0, 0, 0])
    np.testing.assert_array_equal(embed(np.broadcast_to(tokens, (2, 5, 4, 3)))[1, 2], embed(tokens))


def test_widths_are_checked():
    with pytest.raises(
        ValueError, match="a reduced embedding has 2 blocks of d entries, but the last axis has 5"
    ):
        full_from_reduced(np.zeros((4, 5)))
    with pytest.raises(
        ValueError, match="a full embedding has 3 blocks of d entries, but the last axis has 4"
    ):
        reduced_from_full(np.zeros((4, 4)))
