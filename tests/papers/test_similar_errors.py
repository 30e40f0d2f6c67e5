"""How alike errors are, which two claims of fu2024 are judged by."""

import numpy as np
import pytest

from mesascope.papers.fu2024._newton import similarities


def test_steps_that_diverge_have_the_direction_of_their_errors():
    """After 400 steps the squares of the errors leave double precision, after 100 they do not."""
    settings = {"dim": 2, "examples": 4, "prompts": 3, "seed": 0, "step_size": 1.0}
    early, late = similarities(settings, "0", np.arange(2), np.array([100, 400])).T
    assert late == pytest.approx(early, rel=1e-6)  # one eigenvector's part outgrows all others
