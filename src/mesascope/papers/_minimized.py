"""Minima that a claim may be judged by: searches that came to their end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.optimize import minimize

from ._claim import UnsettledError


class Minimum(NamedTuple):
    """Where a search ended: the point, shape (n,), and the value there."""

    point: np.ndarray
    value: float


def minimized(
    function: Callable[[np.ndarray], tuple[float, np.ndarray]],
    start: Any,
    largest_slope: float,
    *,
    method: Literal["BFGS", "L-BFGS-B"] = "BFGS",
    **options: Any,
) -> Minimum:
    """The local minimum that quasi-Newton descent finds.

    It is judged by the gradient where it stops and not by what it says of itself: where rounding hides further progress it
    reports a failure.

    Args:
        function: from a point to its value and its gradient.
        start: shape (n,).
        largest_slope: most that an entry of the gradient may be at the end.
        method: the limited-memory form for many variables.
        **options: those of the method in `scipy.optimize.minimize`.

    Raises:
        UnsettledError: it stops where the gradient is larger, or is not a number.
    """
    found = minimize(function, start, jac=True, method=method, options=options)
    slope = float(np.abs(found.jac).max())
    if not slope <= largest_slope:
        raise UnsettledError(
            f"{method} ended with a gradient of {slope:.1e}, above {largest_slope:.1e}: {found.message}"
        )
    return Minimum(np.asarray(found.x), float(found.fun))


def minimized_by_values(function: Callable[[np.ndarray], float], start: Any, **options: Any) -> Minimum:
    """The local minimum that Nelder and Mead's search finds, for few variables.

    Args:
        function: from a point to its value.
        start: shape (n,).
        **options: `xatol`, `fatol`, `maxiter` … of `scipy.optimize.minimize`.

    Raises:
        UnsettledError: it hits a limit before its simplex is as small as asked.
    """
    found = minimize(function, start, method="Nelder-Mead", options=options)
    if not (found.success and np.isfinite(found.fun)):
        raise UnsettledError(f"Nelder-Mead ended at {float(found.fun):.3g}: {found.message}")
    return Minimum(np.asarray(found.x), float(found.fun))
