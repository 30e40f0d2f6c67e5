"""The fields of a setting: the data, and where training starts."""

from __future__ import annotations

from nicegui import ui

from ._form import (
    LAW_FIELDS,
    LAWS,
    MASKS,
    NORMALIZERS,
    OBJECTIVES,
    SOLVERS,
    START_FIELDS,
    STARTS,
    Form,
)
from ._widgets import Changed, Choice, Field


class FormPanel:
    """All fields; those that the choices leave out are hidden."""

    def __init__(self, form: Form, changed: Changed) -> None:
        self._fields: dict[str, Field | Choice] = {}
        self._sections: list[ui.expansion] = []
        with self._section("Data", "dataset", opened=True):
            self._choice("law.kind", "law of the initial token", LAWS, changed)
            self._field("law.df", "degrees of freedom (above 6)", changed, slider=(6.5, 30, 0.5))
            self._field("law.scale", "scale", changed, slider=(0.1, 3, 0.05))
            self._field("law.value", "value, or one for every coordinate", changed)
            hint = "one part a line: probability, law, parameters"
            self._field("law.parts", "parts", changed, lines=True, hint=hint)
            self._field(
                "law.samples", "samples", changed, lines=True, hint="numbers, or tokens on lines of their own"
            )
            self._choice(
                "law.joint", "what is drawn", {"": "each coordinate", "true": "whole tokens"}, changed
            )
            self._field("law.moments", "E x⁰ … E x⁶", changed, hint="seven numbers")
            self._field("dim", "token dimension d", changed, slider=(1, 10, 1))
            self._field("horizon", "horizon T, tokens", changed, slider=(3, 200, 1))
            self._choice("objective", "objective", OBJECTIVES, changed)
            self._field("weights", "weights", changed, lines=True, hint="t: weight, e.g. 2: 1, 5: 1/2")
            self._choice("rho", "normalizer", NORMALIZERS, changed)
        with self._section("Start of training", "flag", opened=True):
            self._choice("init.kind", "start", STARTS, changed)
            self._field("init.a", "a₀, of W^KQ", changed, slider=(-3, 3, 0.02))
            self._field("init.b", "b₀, of W^PV", changed, slider=(-3, 3, 0.02))
            self._field("init.scale", "σ_w", changed, slider=(0.01, 1, 0.01))
            self._field("init.seed", "seed", changed)
            self._field("init.w_kq", "W^KQ, 2d rows of 2d numbers", changed, lines=True)
            self._field("init.w_pv", "W^PV, d rows of 2d numbers", changed, lines=True)
            self._choice("mask", "gradient mask", MASKS, changed)
        with self._section("Solver", "tune", opened=False):
            self._choice("solver", "solver", SOLVERS, changed)
            self._field("until", "until (flow time)", changed, hint="a time; steady-state if empty")
            self._field("tolerance", "tolerance of the steady state", changed, hint="1e-10 if empty")
            self._field("max_steps", "most steps", changed, hint="100 000 if empty")
        self.show(form, {})

    def _section(self, title: str, icon: str, *, opened: bool) -> ui.expansion:
        section = ui.expansion(title, icon=icon, value=opened).classes("w-full lab-section")
        self._sections.append(section)
        return section

    def fold(self) -> None:
        """Close all sections: a phone shows the panels below them."""
        for section in self._sections:
            section.close()

    def _field(self, name: str, label: str, changed: Changed, **more: object) -> None:
        self._fields[name] = Field(name, label, changed, **more)  # type: ignore[arg-type]

    def _choice(self, name: str, label: str, options: dict[str, str], changed: Changed) -> None:
        self._fields[name] = Choice(name, label, options, changed)

    def show(self, form: Form, wrong: dict[str, str]) -> None:
        """Show the texts of a form, what its choices ask for, and what is wrong."""
        asked = _asked(form)
        for name, field in self._fields.items():
            field.show(form[name])
            field.box.set_visibility(name in asked)
        self.complain(wrong)

    def complain(self, wrong: dict[str, str]) -> None:
        """Show what is wrong at its field."""
        for name, field in self._fields.items():
            field.complain(wrong.get(name))


def _asked(form: Form) -> set[str]:
    """The fields that the choices of a form leave to be filled in."""
    choices = {"law.kind", "dim", "horizon", "objective", "rho", "init.kind", "mask"}
    numbers = {"solver", "until", "tolerance", "max_steps"}
    weights = {"weights"} if form["objective"] == "given" else set()
    return choices | numbers | weights | {*LAW_FIELDS[form["law.kind"]], *START_FIELDS[form["init.kind"]]}
