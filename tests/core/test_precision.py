import jax
import pytest

from mesascope.core import require_x64


def test_passes_in_64_bit_mode():
    require_x64("ExactMoments")


def test_32_bit_mode_is_refused_with_the_fix():
    message = r"^ExactMoments needs 64-bit precision.*enable_x64"
    with jax.enable_x64(False), pytest.raises(ValueError, match=message):
        require_x64("ExactMoments")
