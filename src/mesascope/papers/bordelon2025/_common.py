"""What the claims share: the loss of layers that are steps, by the engine of this library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from mesascope.models import preconditioned_linear_transformer
from mesascope.objectives import ExactMoments
from mesascope.processes import FewShot, LinearRegression

PAPER = "bordelon2025"


def engine_error(eigenvalues: Sequence[float], examples: int, matrices: Sequence[Any]) -> float:
    """E(ŷ − y)² over that of the answer 0, of steps with these preconditioners, w ~ N(0, I)."""
    dim = len(eigenvalues)
    process = LinearRegression(dim, covariance=np.diag(eigenvalues))
    objective = ExactMoments().objective(process, FewShot(examples))
    model = preconditioned_linear_transformer(dim, len(matrices), key=jax.random.key(0), start=matrices)
    return 2 * float(objective(model).value) / float(np.sum(eigenvalues))
