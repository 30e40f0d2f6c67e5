"""A function of two parameters, or a category for every pair of them, as coloured cells."""

from itertools import pairwise
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    FiniteFloat,
    StringConstraints,
    model_validator,
)

_Label = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


def _as_list(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else value


def _without_nan(value: Any) -> Any:
    rows = _as_list(value)
    return [[None if entry is None or entry != entry else entry for entry in row] for row in rows]


_Numbers = Annotated[tuple[FiniteFloat, ...], BeforeValidator(_as_list), Field(min_length=1)]
_Cells = Annotated[
    tuple[Annotated[tuple[FiniteFloat | None, ...], Field(min_length=1)], ...],
    BeforeValidator(_without_nan),
    Field(min_length=1),
]


class CellMap(BaseModel):
    """Coloured cells around (x_j, y_i), y upwards; cells without a value are hatched.

    Attributes:
        x: places of the columns, strictly increasing; on the axis of the panel, linear or logarithmic.
        y: places of the rows, the same.
        z: the entries, one tuple a row; None or NaN where there is none. With `kinds` they number these, from 0.
        colorlabel: what the colour means.
        kinds: names of what the entries number; None: they are values.
        scale: of the colours of values; a logarithmic one takes positive entries only.
        xnames: names of the columns where they have no numbers; None shows the places.
        ynames: names of the rows, the same.
        missing: what a cell without a value is, for the legend.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["cell-map"] = "cell-map"
    x: _Numbers
    y: _Numbers
    z: _Cells
    colorlabel: _Label
    kinds: tuple[str, ...] | None = None
    scale: Literal["linear", "log"] = "linear"
    xnames: tuple[str, ...] | None = None
    ynames: tuple[str, ...] | None = None
    missing: _Label = "no value"

    @property
    def known(self) -> list[float]:
        """The entries that are there."""
        return [entry for row in self.z for entry in row if entry is not None]

    @model_validator(mode="after")
    def _check(self) -> Self:
        if len(self.z) != len(self.y) or any(len(row) != len(self.x) for row in self.z):
            raise ValueError(
                f"cell map: z must have {len(self.y)} rows of {len(self.x)} entries, one for each y and x"
            )
        for name, places in (("x", self.x), ("y", self.y)):
            if any(a >= b for a, b in pairwise(places)):
                raise ValueError(f"cell map: {name} must increase; sort the places and the entries with them")
        for name, names, size in (("xnames", self.xnames, len(self.x)), ("ynames", self.ynames, len(self.y))):
            if names is not None and len(names) != size:
                raise ValueError(f"cell map: {len(names)} {name} for {size} places; give one to each")
        if self.kinds is not None and not all(e == int(e) and 0 <= e < len(self.kinds) for e in self.known):
            raise ValueError(f"cell map: entries must number the {len(self.kinds)} kinds, from 0")
        if self.scale == "log" and (self.kinds is not None or min(self.known, default=1.0) <= 0):
            raise ValueError("cell map: values ≤ 0 and kinds have no logarithmic colour; use scale='linear'")
        return self
