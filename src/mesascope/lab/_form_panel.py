"""The fields of a specification, in sections that can be folded."""

from __future__ import annotations

from nicegui import ui

from mesascope.report import tex_to_html
from mesascope.specs import known_kinds, summary

from ._form import Form, FormField, Layout, fields_of_kinds, kind_fields, kind_title
from ._widgets import Changed, Choice, Field


class FormPanel:
    """All fields of a form that its choices leave to be filled in."""

    def __init__(self, layout: Layout, form: Form, changed: Changed) -> None:
        self._layout, self._changed = layout, changed
        self._fields: dict[str, Field | Choice] = {}
        self._kinds: dict[str, ui.column] = {}
        self._shown: dict[str, str] = {}
        self._sections: list[ui.expansion] = []
        for one in layout.sections:
            with ui.expansion(one.title, icon=one.icon, value=one.opened).classes(
                "w-full lab-section"
            ) as section:
                self._sections.append(section)
                section.on_value_change(lambda event: event.value and event.sender.classes("lab-opened"))
                for name in one.names:
                    self._add(name, form)
        self.show(form, {})

    def _add(self, name: str, form: Form) -> None:
        if name in self._layout.families:
            label = self._layout.label(name)
            self._fields[f"{name}.kind"] = Choice(
                f"{name}.kind", label, self._titles(name, form), self._changed
            )
            self._kinds[name] = ui.column().classes("w-full gap-2")
        else:
            self._fields[name] = _widget(self._layout.fields[name], form, self._changed)

    def _titles(self, family: str, form: Form) -> dict[str, str]:
        known = known_kinds(family)
        return {kind: kind_title(known[kind]) for kind in self._layout.kinds(family, form)}

    def begin(self, narrow: bool) -> None:
        """On a phone close all sections, which are hidden there until they are opened: the panels stand below them."""
        for section in self._sections:
            if narrow:
                section.close()
            else:
                section.classes("lab-opened")

    def show(self, form: Form, errors: dict[str, str]) -> None:
        """Show the texts of a form, the fields that its choices ask for, and errors."""
        for family in self._layout.families:
            choice = self._fields[f"{family}.kind"]
            assert isinstance(choice, Choice)
            choice.offer(self._titles(family, form))
            if self._shown.get(family) != form[f"{family}.kind"]:
                self._show_kind(family, form)
        known = [*fields_of_kinds(self._layout.families, form), *self._layout.fields.values()]
        shown = {field.name: field.text(form) for field in known} | form
        hidden = set(self._layout.hidden(form))
        for name, field in self._fields.items():
            field.show(shown[name])
            field.box.set_visibility(name not in hidden)
        self.show_errors(errors)

    def _show_kind(self, family: str, form: Form) -> None:
        """Put the fields of the kind that is chosen in the place of those of another."""
        kind = form[f"{family}.kind"]
        if family in self._shown:
            for field in kind_fields(family, self._shown[family]):
                del self._fields[field.name]
        self._shown[family] = kind
        self._kinds[family].clear()
        with self._kinds[family]:
            about = tex_to_html(summary(known_kinds(family)[kind]))
            ui.html(about, sanitize=False).classes("text-caption lab-caption")
            for field in kind_fields(family, kind):
                self._fields[field.name] = _widget(field, form, self._changed)

    def show_errors(self, errors: dict[str, str]) -> None:
        """Show errors at their fields."""
        for name, field in self._fields.items():
            field.show_error(errors.get(name))


def _widget(field: FormField, form: Form, changed: Changed) -> Field | Choice:
    name, label, editor = field.name, field.label, field.editor
    if editor.options is not None:
        return Choice(name, label, dict(editor.options), changed, about=field.about)
    more = {"slider": editor.slider(field.example), "lines": editor.lines, "hint": field.hint}
    return Field(name, label, field.text(form), changed, about=field.about, **more)  # type: ignore[arg-type]
