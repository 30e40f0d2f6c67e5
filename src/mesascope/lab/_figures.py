"""The page's figures: results of `_compute` as traces, which every renderer draws."""

from typing import Any

import numpy as np

from mesascope.records import (
    LOSS_LABEL,
    MAX_CURVES,
    Band,
    Figure,
    Heatmap,
    Histogram,
    Line,
    Panel,
    Points,
    Rule,
    coordinates_agree,
    product_curves,
    settled_window,
)

from ._sizes import FIRST_TOKENS

Result = dict[str, Any]


def _one_panel(title: str, xlabel: str, ylabel: str, *traces: Any, caption: str) -> Figure:
    panel = Panel(title=title, xlabel=xlabel, ylabel=ylabel, traces=tuple(t for t in traces if t is not None))
    return Figure(title=title, panels=(panel,), caption=caption)


# Data


def law_figure(facts: Result) -> Figure:
    """How the entries of the initial token are distributed."""
    tokens = facts["tokens"].ravel()
    low, high = np.quantile(tokens, [0.001, 0.999])
    kept = tokens[(tokens >= low) & (tokens <= high)]
    ends = kept.min(), kept.max()
    if ends[0] == ends[1]:
        ends = ends[0] - 0.5, ends[0] + 0.5
    return _one_panel(
        "The law of the initial token",
        "entry $x_{1j}$",
        "density",
        Histogram.of(kept, np.linspace(*ends, 41), f"{tokens.size} entries drawn", density=True),
        caption=f"Density of the entries of the initial token under {facts['law']}, from a sample.",
    )


def sequence_figure(facts: Result) -> Figure:
    """One sequence, every coordinate in the complex plane."""
    sequence = facts["sequences"][0]
    count = min(sequence.shape[1], MAX_CURVES)
    traces = [
        Points(
            x=np.real(sequence[:, j]), y=np.imag(sequence[:, j]), label=f"coordinate $j = {j + 1}$", series=j
        )
        for j in range(count)
    ]
    return _one_panel(
        "One sequence in the complex plane",
        "Re $x_{tj}$",
        "Im $x_{tj}$",
        *traces,
        caption=f"The first {len(sequence)} tokens of one sequence: every coordinate rotates by its own angle.",
    )


def paths_figure(facts: Result) -> Figure:
    """Several sequences, one coordinate of each, from token to token."""
    sequences = facts["sequences"][:, :FIRST_TOKENS]
    traces: list[Any] = []
    for number, sequence in enumerate(sequences):
        j = int(np.argmax(sequence[0] != 0))  # the first that is not 0
        path = {"x": np.real(sequence[:, j]), "y": np.imag(sequence[:, j]), "series": number}
        label = f"sequence {number + 1}, $j = {j + 1}$"
        traces += [Line(**path, label=label, style="solid"), Points(**path, label=label)]
    return _one_panel(
        "Several sequences from token to token",
        "Re $x_{tj}$",
        "Im $x_{tj}$",
        *traces,
        caption=f"The first {sequences.shape[1]} tokens of {len(sequences)} sequences, of each the first coordinate that is "
        "not 0. They begin on the real axis, and each rotates by its own angle.",
    )


# Training


def product_figure(flow: Result, sampled: Result | None = None) -> Figure:
    """Products a_j b_j along the flow, with theory."""
    shown = _window(flow)
    times, products = flow["times"][shown], flow["products"][shown]
    traces: list[Any] = list(product_curves(times, products))
    if flow["theory"] is not None:
        exact = flow["theory"]["product"][shown]
        traces.append(
            Line(x=times, y=exact, label="closed form (zheng2024)", style="dotted", series="theory")
        )
    if sampled is not None:
        inside = sampled["times"] <= times[-1]
        x, each = sampled["times"][inside], sampled["products"][inside]
        label = f"descent, {sampled['arguments']['samples']} sequences: mean, range"
        traces.append(Line(x=x, y=each.mean(1), label=label, style="dashed", series=1))
        traces.append(Band(x=x, low=each.min(1), high=each.max(1), label=label, series=1))
    limit = flow["end"]["limit_product"]
    if limit is not None:
        traces.append(Rule(value=limit, label=f"limit of theory, {limit:.6g}"))
    return _one_panel(
        "Product ab along training",
        "flow time $s$",
        "product $a_j b_j$",
        *traces,
        caption="Products of the diagonals of W^KQ and W^PV along the exact gradient flow, and where theory says they end.",
    )


def loss_figure(flow: Result, sampled: Result | None = None) -> Figure:
    """The population loss along the flow."""
    shown = _window(flow)
    times = flow["times"][shown]
    traces: list[Any] = [
        Line(x=times, y=flow["loss"][shown], label="flow, exact loss", style="solid", series=0)
    ]
    if sampled is not None:
        inside = sampled["times"] <= times[-1]
        x, population, loss, error = (
            sampled[name][inside] for name in ("times", "population", "loss", "loss_se")
        )
        traces.append(Line(x=x, y=population, label="descent, exact loss", style="dashed", series=1))
        label = f"descent, its {sampled['arguments']['samples']} sequences, 95 %"
        traces.append(Line(x=x, y=loss, label=label, style="dotted", series=2))
        traces.append(Band(x=x, low=loss - 1.96 * error, high=loss + 1.96 * error, label=label, series=2))
    return _one_panel(
        "Loss along training",
        "flow time $s$",
        LOSS_LABEL,
        *traces,
        caption="The population loss, summed over the context lengths, along the flow"
        + (
            "."
            if sampled is None
            else " and along descent on samples, which minimizes the loss on its own sequences (with an interval of "
            "1.96 standard errors); the exact loss of the same weights differs."
        ),
    )


def _window(flow: Result) -> slice:
    return settled_window(flow["times"], flow["products"], flow["loss"][:, None])


def phase_reach(flow: Result) -> float:
    """Return the limit of both axes of the (a, b) plane."""
    limit = flow["end"]["limit_product"]
    largest = max(np.abs(flow["a"]).max(), np.abs(flow["b"]).max(), np.sqrt(abs(limit or 0.0)))
    return float(max(0.5, np.ceil(1.3 * largest * 4) / 4))


def phase_figure(flow: Result) -> Figure:
    """The flow on the plane of a and b, with what it conserves and where the loss is least."""
    reach = phase_reach(flow)
    traces: list[Any] = []
    limit = flow["end"]["limit_product"]
    conserved = ""
    if flow["theory"] is not None:
        conserved = (
            "Every path stays on its hyperbola of constant a² − b² until it meets the curve of minima. "
        )
        # the hyperbola of the start and its neighbours
        levels = flow["theory"]["conserved"] + 0.3 * reach**2 * np.arange(-6, 7)
        for level in levels[np.abs(levels) < 0.95 * reach**2]:
            traces += _hyperbola(level, reach, "conserved $a^2 - b^2$", "dotted")
    if limit:
        traces += _product_curve(limit, reach, f"minima $ab = {limit:.4g}$")
    traces += [
        Line(x=flow["a"][:, j], y=flow["b"][:, j], label="flow", style="solid", series=0)
        for j in (range(1 if coordinates_agree(flow["a"]) else flow["a"].shape[1]))
    ]
    traces.append(Points(x=flow["a"][0], y=flow["b"][0], label="start", series=1))
    traces.append(Points(x=flow["a"][-1], y=flow["b"][-1], label="end", series=2))
    return _one_panel(
        "The plane of a and b",
        "$a$, diagonal of $W^{KQ}$",
        "$b$, diagonal of $W^{PV}$",
        *traces,
        caption=f"Paths of the diagonals. {conserved}Press or drag in the picture to choose another "
        "start, or move it with the arrow keys.",
    )


def _hyperbola(level: float, reach: float, label: str, style: str) -> list[Line]:
    """Both branches of a² − b² = level inside the square."""
    root = np.sqrt(abs(level))
    if root > reach:
        return []
    along = np.linspace(-np.sqrt(reach**2 - root**2), np.sqrt(reach**2 - root**2), 41)
    far = np.sqrt(along**2 + root**2)
    pairs = ((far, along), (-far, along)) if level >= 0 else ((along, far), (along, -far))
    if level == 0:
        pairs = ((along, along), (along, -along))
    return [Line(x=x, y=y, label=label, style=style, series=4) for x, y in pairs]


def _product_curve(product: float, reach: float, label: str) -> list[Line]:
    """Both branches of ab = product inside the square."""
    if abs(product) >= reach**2:
        return []
    a = np.geomspace(abs(product) / reach, reach, 61)
    return [
        Line(x=s * a, y=s * product / a, label=label, style="dashed", series="theory") for s in (1.0, -1.0)
    ]


# of a matrix of weights: its letters, and the axes of its columns and rows
_SIDES = {
    "w_kq": ("KQ", "column: query $(x_t; x_{t-1})$", "row: key $(x_i; x_{i-1})$"),
    "w_pv": ("PV", "column: value $(x_i; x_{i-1})$", "row: prediction $\\hat y_t$"),
}


def weight_figure(flow: Result, name: str, frame: int) -> Figure:
    """W^KQ or W^PV at one time of the flow."""
    frames = flow[name]
    reach = float(np.abs(frames).max()) or 1.0
    time = flow["frame_times"][frame]
    letters, *sides = _SIDES[name]
    dim = frames.shape[1] if name == "w_pv" else frames.shape[1] // 2
    return _one_panel(
        f"$W^{{{letters}}}$ at flow time {time:.4g}",
        *sides,
        Heatmap(
            z=frames[frame],
            colorlabel=f"entry of $W^{{{letters}}}$",
            center=0.0,
            limits=(-reach, reach),
            block=dim,
            rows=_numbers(frames.shape[1]),
            columns=_numbers(frames.shape[2]),
        ),
        caption=f"Entries of W^{letters} at flow time {time:.4g}; lines separate its blocks of {dim} × {dim}. Colours are the "
        "same at all times.",
    )


def _numbers(count: int) -> tuple[str, ...] | None:
    """Labels of rows or columns, where all of them fit."""
    return tuple(str(k + 1) for k in range(count)) if count <= 12 else None


# In-context behaviour


def error_figure(behaviour: Result) -> Figure:
    """Squared error by context length."""
    lengths, error = behaviour["lengths"], behaviour["error"]
    half = 1.96 * behaviour["error_se"]
    label = f"on {behaviour['sequences']} sequences, 95 % interval"
    gap, risk = behaviour["gap"][0], behaviour["risk"]
    return _one_panel(
        "Error by context length",
        "context length $t$",
        "squared error per coordinate",
        Line(x=lengths, y=error, label=label, style="solid", series=0),
        Band(x=lengths, low=error - half, high=error + half, label=label, series=0),
        None
        if risk is None
        else Line(x=lengths, y=risk, label="exact, by theory", style="dotted", series="theory"),
        None if gap is None else Rule(value=gap, label=f"capability gap {gap:.4g}, $T, t \\to \\infty$"),
        Rule(value=behaviour["power"], label=f"predicting 0, measured: {behaviour['power']:.4g}", series=1),
        caption="Mean squared error of the prediction of the next token after t tokens, and what remains however long the "
        "contexts of training and test are.",
    )


def scatter_figure(behaviour: Result) -> Figure:
    """Predictions beside the truth after the longest context."""
    truth, predicted = behaviour["truth"], behaviour["predicted"]
    slope, ends = behaviour["correlation"][0], np.array([truth.min(), truth.max()])
    return _one_panel(
        f"Predictions after {behaviour['lengths'][-1]} tokens",
        "truth, Re $x_{t+1,1}$",
        "prediction, Re $\\hat y_{t,1}$",
        Points(x=truth, y=predicted, label="one sequence each", series=0),
        Line(x=ends, y=ends, label="prediction = truth", style="dotted", series="theory"),
        Line(x=ends, y=slope * ends, label=f"slope {slope:.3g} of all coordinates", style="dashed", series=1),
        caption="The first coordinate of the prediction beside the truth, on new sequences.",
    )


def ratio_figure(behaviour: Result) -> Figure:
    """The quotient of prediction and truth."""
    ratios = behaviour["ratios"]
    low, high = np.quantile(ratios, [0.01, 0.99])
    if high - low < 1e-9:
        low, high = low - 0.5, high + 0.5
    kept = ratios[(ratios >= low) & (ratios <= high)]
    expected = behaviour["expected_ratio"][0]
    return _one_panel(
        "Ratio of prediction and truth",
        "Re $\\hat y_{tj} / x_{t+1,j}$",
        "density",
        Histogram.of(kept, np.linspace(low, high, 41), "measured, middle 98 %", density=True, series=0),
        Rule(value=behaviour["ratio"][0], axis="x", label=f"mean {behaviour['ratio'][0]:.4g}", series=1),
        None if expected is None else Rule(value=expected, axis="x", label=f"mean by theory {expected:.4g}"),
        caption="Elementwise quotient of prediction and truth after the longest context; Proposition 4.1 gives its mean.",
    )


def sensitivity_figure(behaviour: Result) -> Figure:
    """How much every entry of the context moves the prediction."""
    sizes = behaviour["sensitivity"]["sizes"]
    return _one_panel(
        "What the prediction depends on",
        "coordinate $k$",
        "token $x_i$",
        Heatmap(
            z=sizes,
            colorlabel="mean size of $\\partial \\hat y_{t1} / \\partial x_{ik}$",
            rows=_numbers(len(sizes)),
            columns=_numbers(sizes.shape[1]),
        ),
        caption=f"Root mean square derivatives of the first coordinate of the prediction in every entry of a context of "
        f"{len(sizes)} tokens.",
    )


OF_FACTS = {"law": law_figure, "paths": paths_figure, "sequence": sequence_figure}
OF_BEHAVIOUR = {
    "error": error_figure,
    "predictions": scatter_figure,
    "ratio": ratio_figure,
    "sensitivity": sensitivity_figure,
}
"""Figures of the data, and of the in-context behaviour, by the names under which the page offers them."""
