"""Claims that two computations agree: their largest difference, and the finding over all cases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mesascope.records import Figure

from ._claim import Finding


def relative_error(found: Any, expected: Any) -> float:
    """max|found − expected| / max|expected|, NaN where either holds one.

    Args:
        found: numbers of any shape.
        expected: as many, not all 0.
    """
    right = np.asarray(expected)
    return float(np.max(np.abs(np.asarray(found) - right)) / np.max(np.abs(right)))


def identity(
    errors: Mapping[str, float], tolerance: float, figures: Mapping[str, Figure] | None = None, **details: Any
) -> Finding:
    """The finding on an identity: its largest error against 0, met within the tolerance.

    Args:
        errors: case → error, at least one; NaN does not meet the criterion.
        tolerance: largest error that still meets the criterion.
        figures: as in `Finding`.
        **details: what else belongs to the errors.
    """
    worst = float(np.max(np.abs(list(errors.values()))))
    return Finding.of_error(worst, tolerance, {"errors": dict(errors), **details}, figures or {})


def identities(errors: Mapping[str, Mapping[str, float]], tolerance: float, **details: Any) -> Finding:
    """The finding on several identities, the parts of a statement: the largest error of each against 0.

    Args:
        errors: part → case → error, at least one each; NaN does not meet the criterion.
        tolerance: largest error that still meets the criterion.
        **details: what else belongs to the errors.
    """
    worst = {part: float(np.max(np.abs(list(cases.values())))) for part, cases in errors.items()}
    return Finding.of_errors(worst, tolerance, {"errors": dict(errors), **details})
