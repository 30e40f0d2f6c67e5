"""The drawings that move, and what they draw."""

from __future__ import annotations

from typing import Any

import numpy as np
from nicegui.element import Element

from mesascope.records import settled_window

_BINS = 40
_BETWEEN = 4  # spaces between drawn points for each space between saved ones
Results = dict[str, Any]


class Drawing(Element, esm={"mesascope-motion": "motion"}):
    """A drawing that the browser moves by itself."""

    def show(self, data: Results) -> None:
        """Draw these data; the browser keeps its place in time."""
        self.props["data"] = data
        self.update()


class TokenDrawing(Drawing, component="token.js"):
    """One token on its circle."""


class RideDrawing(Drawing, component="ride.js"):
    """Training on the plane of a and b."""


class RatioDrawing(Drawing, component="ratio.js"):
    """The answer beside the truth."""


class PoolDrawing(Drawing, component="pool.js"):
    """Errors on a pool of tasks and on new ones, with a slider for the number of tasks."""


def token_data(facts: Results) -> Results:
    """Of every sequence the first coordinate that is not 0."""
    sequences = []
    for sequence in facts["sequences"]:
        j = int(np.argmax(np.abs(sequence[0]) > 0))
        sequences.append({"re": np.real(sequence[:, j]).tolist(), "im": np.imag(sequence[:, j]).tolist()})
    return {"sequences": sequences, "scale": _typical(facts) * 1.3 or 1.0}


def ride_data(flow: Results, reach: float) -> Results:
    """The path of a_j and b_j while anything moves, and the loss of a I, b I: a quadratic function of ab."""
    shown = settled_window(flow["times"], flow["products"], flow["loss"][:, None])
    surface, times = flow["surface"], flow["times"][shown]
    a, b, products, loss = (_smooth(times, flow[name][shown]) for name in ("a", "b", "products", "loss"))
    return {
        "times": _smooth(times, times).tolist(),
        "a": a.T.tolist(),
        "b": b.T.tolist(),
        "ab": products.mean(1).tolist(),
        "loss": loss.tolist(),
        "limit": flow["end"]["limit_product"],
        "surface": surface.tolist(),
        "best": float(-surface[1] / (2 * surface[2])),
        "reach": reach,
        "start": {"a": float(a[0].mean()), "b": float(b[0].mean())},
    }


def _smooth(times: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Values along axis 0 with more between them, on cubics through neighbours: solvers take few steps, polygons show them."""
    times, first = np.unique(times, return_index=True)
    values = values[first]
    if len(times) < 3:
        return values
    slopes = np.gradient(values, times, axis=0)
    share = np.arange(_BETWEEN).reshape(-1, *[1] * values.ndim) / _BETWEEN
    steps = np.diff(times).reshape(-1, *[1] * (values.ndim - 1))
    low, high = values[:-1], values[1:]
    rise = share * share * (3 - 2 * share)
    bend = share * (1 - share) * ((1 - share) * slopes[:-1] - share * slopes[1:]) * steps
    cubics = (1 - rise) * low + rise * high + bend  # by share, step, …
    return np.concatenate([np.moveaxis(cubics, 0, 1).reshape(-1, *values.shape[1:]), values[-1:]])


def ratio_data(facts: Results, flow: Results, behaviour: Results) -> Results:
    """The step, and how answers divided by truths are distributed."""
    ratios, product = behaviour["ratios"], float(np.mean(flow["end"]["product"]))
    low, high = np.quantile(ratios, [0.01, 0.99])
    counts, edges = np.histogram(ratios, np.linspace(min(low, -0.1), max(high, 1.3), _BINS + 1))
    typical = _typical(facts)
    right = 1 / np.sqrt(abs(product)) if product else typical
    plain = behaviour["expected_ratio"][0] is not None and flow["normalizer"] == "t-1"
    return {
        "ab": product if plain else None,
        "most": float(f"{max(1.6 * right, 2 * typical):.2g}"),
        "typical": float(f"{typical:.2g}"),
        "counts": counts.tolist(),
        "edges": edges.tolist(),
        "mean": behaviour["ratio"][0],
        "theory": behaviour["expected_ratio"][0],
        "sequences": behaviour["sequences"],
    }


def _typical(facts: Results) -> float:
    """The root mean square of the entries that are not 0."""
    tokens = facts["tokens"]
    return float(np.sqrt(np.mean(tokens[tokens != 0] ** 2))) if tokens.any() else 0.0
