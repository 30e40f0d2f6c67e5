"""The fields of a setting: the data, and where training starts."""

from __future__ import annotations

from nicegui import ui

from mesascope.report import tex_to_html
from mesascope.specs import known_kinds, summary

from ._form import FAMILIES, OBJECTIVES, Form, FormField, kind_fields, kind_title, setting_fields, texts
from ._widgets import Changed, Choice, Field

_SECTIONS = (
    ("Data", "dataset", True, ("law", "dim", "horizon", "weights", "rho")),
    ("Start of training", "flag", True, ("init", "mask")),
    ("Solver", "tune", False, ("solver", "until", "tolerance", "max_steps")),
)
"""Title, icon, whether it is open, and fields of a setting."""


class FormPanel:
    """All fields of a form that its choices leave to be filled in."""

    def __init__(self, form: Form, changed: Changed) -> None:
        self._changed = changed
        self._fields: dict[str, Field | Choice] = {}
        self._kinds: dict[str, ui.column] = {}
        self._shown: dict[str, str] = {}
        self._sections: list[ui.expansion] = []
        for title, icon, opened, names in _SECTIONS:
            with ui.expansion(title, icon=icon, value=opened).classes("w-full lab-section") as section:
                self._sections.append(section)
                for name in names:
                    self._add(name)
        self.show(form, {})

    def _add(self, name: str) -> None:
        field = setting_fields()[name]
        if name in FAMILIES:
            kind, titles = f"{name}.kind", {one: kind_title(cls) for one, cls in known_kinds(name).items()}
            self._fields[kind] = Choice(kind, field.label, titles, self._changed)
            self._kinds[name] = ui.column().classes("w-full gap-2")
        elif name == "weights":
            self._fields["objective"] = Choice("objective", "objective", OBJECTIVES, self._changed)
            hint = "t: weight, e.g. 2: 1, 5: 1/2"
            self._fields[name] = Field(name, name, self._changed, lines=True, hint=hint)
        else:
            self._fields[name] = _widget(field, self._changed)

    def fold(self) -> None:
        """Close all sections: a phone shows the panels below them."""
        for section in self._sections:
            section.close()

    def show(self, form: Form, errors: dict[str, str]) -> None:
        """Show the texts of a form, the fields that its choices ask for, and errors."""
        for family in FAMILIES:
            if self._shown.get(family) != form[f"{family}.kind"]:
                self._show_kind(family, form[f"{family}.kind"])
        shown = texts(form)
        for name, field in self._fields.items():
            field.show(shown[name])
        self._fields["weights"].box.set_visibility(form["objective"] == "given")
        self.show_errors(errors)

    def _show_kind(self, family: str, kind: str) -> None:
        """Put the fields of one kind in the place of those of another."""
        if family in self._shown:
            for field in kind_fields(family, self._shown[family]):
                del self._fields[field.name]
        self._shown[family] = kind
        self._kinds[family].clear()
        with self._kinds[family]:
            about = tex_to_html(summary(known_kinds(family)[kind]))
            ui.html(about, sanitize=False).classes("text-caption lab-caption")
            for field in kind_fields(family, kind):
                self._fields[field.name] = _widget(field, self._changed)

    def show_errors(self, errors: dict[str, str]) -> None:
        """Show errors at their fields."""
        for name, field in self._fields.items():
            field.show_error(errors.get(name))


def _widget(field: FormField, changed: Changed) -> Field | Choice:
    name, label, editor = field.name, field.label, field.editor
    if editor.options is not None:
        return Choice(name, label, dict(editor.options), changed, about=field.about)
    more = {"slider": editor.slider(field.example), "lines": editor.lines, "hint": field.hint}
    return Field(name, label, changed, about=field.about, **more)  # type: ignore[arg-type]
