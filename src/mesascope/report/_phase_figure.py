"""The figure of a phase diagram: the critical point reached, the time to reach it, and its risk."""

from collections import Counter
from typing import TYPE_CHECKING, Any, Literal

from mesascope.records import CellMap, Figure, Panel

if TYPE_CHECKING:
    import xarray

_MAX_KINDS = 7
_ASIDE = "not at an end"


def phase_figure(
    diagram: "xarray.Dataset",
    title: str,
    *,
    xscale: Literal["linear", "log"] = "linear",
    yscale: Literal["linear", "log"] = "linear",
    up_to_symmetry: bool = False,
) -> Figure:
    """The maps of a phase diagram, its first axis along x: the critical point reached, the time to reach it, the risk.

    Beyond seven critical points the rarer ones are drawn as one. Without tests the loss at the end, relative to its theoretical
    limit where that is known, takes the place of the risk. Where a flow did not end, the cell is hatched.

    Args:
        diagram: as `phase_diagram` returns it.
        title: what it shows.
        xscale: of the first axis.
        yscale: of the second axis.
        up_to_symmetry: treat critical points as one if signs and an order of coordinates map them to each other.

    Raises:
        ValueError: for a data set of another kind.
    """
    missing = {"critical_point", "up_to_symmetry", "time_to_reach", "risk", "relative_loss", "loss"} - set(
        diagram
    )
    if missing:
        raise ValueError(f"diagram: has no {', '.join(sorted(missing))}; pass what phase_diagram returned")
    which = "up_to_symmetry" if up_to_symmetry else "critical_point"
    numbers, kinds = _kinds(diagram[which].values, diagram["name"].values)
    panels: list[tuple[str, Any, dict[str, Any]]] = [
        ("Critical point reached", numbers, {"colorlabel": "critical point", "kinds": kinds})
    ]
    fraction = f"{100 * diagram['time_to_reach'].attrs.get('fraction', 0.99):g} %"
    times = diagram["time_to_reach"]
    panels.append((f"Time to {fraction} of the way", times.where(times > 0).values, _log("flow time")))
    panels.append(_goodness(diagram))
    grid = _grid(diagram, which, {"x": xscale, "y": yscale})
    return Figure(title=title, panels=tuple(_panel(name, z, how, grid) for name, z, how in panels), across=3)


def _log(label: str) -> dict[str, Any]:
    return {"colorlabel": label, "scale": "log"}


def _goodness(diagram: "xarray.Dataset") -> tuple[str, Any, dict[str, Any]]:
    for name, title, label in (
        ("risk", "Test risk", "test risk"),
        ("relative_loss", "Loss at the end", "loss / theoretical limit"),
    ):
        if diagram[name].notnull().any():
            return title, diagram[name].values, {"colorlabel": label}
    return "Loss at the end", diagram["loss"].values, {"colorlabel": "loss"}


def _kinds(numbers: Any, names: Any) -> tuple[Any, tuple[str, ...]]:
    """Entries renumbered by frequency, with the rarest joined, and the names of the categories."""
    counts = Counter(int(n) for row in numbers for n in row if n == n)
    common = [number for number, _ in counts.most_common()]
    if len(common) > _MAX_KINDS:
        common = common[: _MAX_KINDS - 1]
    place = {number: at for at, number in enumerate(common)}
    kinds = [str(names[number]) for number in common]
    if len(counts) > len(common):
        kinds.append(f"{len(counts) - len(common)} others")
    cells = [[None if n != n else place.get(int(n), len(common)) for n in row] for row in numbers]
    return cells, tuple(kinds) or ("none",)


def _grid(diagram: "xarray.Dataset", which: str, scales: dict[str, Any]) -> dict[str, Any]:
    """Places, names, labels and scales of both axes."""
    grid: dict[str, Any] = {}
    for axis, name in zip("xy", diagram[which].dims, strict=True):
        coordinate = diagram[name]
        values = coordinate.values.tolist()
        numeric = all(isinstance(value, int | float) for value in values)
        order = sorted(range(len(values)), key=values.__getitem__) if numeric else list(range(len(values)))
        grid[axis] = {
            "order": order,
            "places": [float(values[n]) for n in order] if numeric else [float(n + 1) for n in order],
            "names": None if numeric else tuple(str(value) for value in values),
            "label": str(coordinate.attrs.get("long_name", str(name).replace("_", " "))),
            "scale": scales[axis] if numeric else "linear",
        }
    return grid


def _panel(title: str, z: Any, how: dict[str, Any], grid: dict[str, Any]) -> Panel:
    x, y = grid["x"], grid["y"]
    cells = [[z[column][row] for column in x["order"]] for row in y["order"]]
    trace = CellMap(
        x=x["places"], y=y["places"], z=cells, xnames=x["names"], ynames=y["names"], missing=_ASIDE, **how
    )
    return Panel(
        title=title,
        xlabel=x["label"],
        ylabel=y["label"],
        xscale=x["scale"],
        yscale=y["scale"],
        traces=(trace,),
    )
