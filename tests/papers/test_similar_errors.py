"""How alike errors are, and the loss of linear attention, by which claims of fu2024 are judged."""

import numpy as np
import pytest

from mesascope.core import named_key
from mesascope.papers.fu2024._depth import layers_of, log_loss, regression, spectra
from mesascope.papers.fu2024._similar import Compared, similarities


@pytest.mark.slow
def test_steps_that_diverge_have_the_direction_of_their_errors():
    """After 400 steps the squares of the errors leave double precision, after 100 they do not."""
    settings = Compared(dim=2, examples=4, prompts=3, step_size=0.6)
    early, late = similarities(settings, "0", np.arange(2), np.array([100, 400])).T
    assert late == pytest.approx(early, rel=0.1)  # not 0: one prompt's parts still shift between the two


@pytest.mark.slow
def test_the_loss_in_eigenvalues_is_that_of_the_layers():
    couplings = np.array([[-0.3, -0.4], [-1.8, -2.4], [0.2, -5.0]])
    x, y = regression(3).sample(named_key(0, "prompts"), 6, 5)
    left = np.asarray(layers_of(3, couplings)(x, y[:, :-1])) - np.asarray(y)[:, -1]
    found, _ = log_loss(couplings.reshape(-1), *spectra(x, y))
    assert float(np.exp(found)) == pytest.approx((left**2).mean() / 2, rel=1e-10)
