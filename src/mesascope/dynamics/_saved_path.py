"""What flows and descents have in common: points that were saved along the way."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from mesascope.core import over_rows
from mesascope.models import LinearAttention
from mesascope.processes import Task
from mesascope.records import Figure, path_figure

from ._outcome import Outcome


class SavedPath(Protocol):
    """A flow or descent."""

    model: Any
    trajectory: Any
    result: Outcome
    gradient_norm: float

    @property
    def task(self) -> Task:
        """Which predictions count."""

    @property
    def loss(self) -> np.ndarray:
        """The loss at every saved point, shape (n,)."""


def products_along(path: SavedPath) -> np.ndarray:
    """a_j b_j of linear attention at every saved point, shape (n, d).

    Raises:
        AttributeError: other models have no such products.
    """
    if not isinstance(path.model, LinearAttention):
        raise AttributeError(
            f"products: only LinearAttention has a_j b_j, not {type(path.model).__name__}; look at trajectory"
        )
    found: np.ndarray = over_rows(lambda rows: rows.products(), path.trajectory)
    return found


def draw_path(path: SavedPath, label: str, x: np.ndarray) -> Figure:
    """The loss and, for linear attention, the products, until both are settled.

    Args:
        path: a flow or descent with n saved points.
        label: what is along the horizontal axis.
        x: its values, shape (n,).
    """
    products = products_along(path) if isinstance(path.model, LinearAttention) else None
    return path_figure(type(path).__name__, (label, x), np.asarray(path.loss), products)


def describe_path(path: SavedPath, end: str) -> tuple[str, dict[str, str]]:
    """A title, and the values at the end: how it ended, loss, gradient and products."""
    values = {
        path.result.value: f"at {end}",
        "loss": path.task.loss_text(f"{path.loss[-1]:.10g}"),
        "gradient norm": f"{path.gradient_norm:.2e}",
    }
    if isinstance(path.model, LinearAttention):
        values["a_j b_j"] = _range(np.asarray(path.model.products()))
    return f"{type(path).__name__} of {type(path.model).__name__}", values


def _range(values: np.ndarray) -> str:
    if np.iscomplexobj(values):
        if np.abs(values.imag).max() > 1e-9 * np.abs(values).max():
            return f"of modulus {_range(np.abs(values))}"
        values = values.real
    low, high = float(values.min()), float(values.max())
    return f"{high:.10g}" if high - low <= 1e-9 * abs(high) else f"{low:.6g} to {high:.6g}"
