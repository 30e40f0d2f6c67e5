"""HTML in which all text is escaped, except markup made here."""

from html import escape

_VOID = {"meta", "br", "hr"}


class Markup(str):
    """Text that is HTML already."""


def text(content: object) -> Markup:
    """Anything as HTML: markup unchanged, all else escaped."""
    return content if isinstance(content, Markup) else Markup(escape(str(content)))


def join(*parts: object) -> Markup:
    """Parts joined; None and "" are skipped."""
    return Markup("".join(text(part) for part in parts if part is not None))


def tag(name: str, /, *content: object, **attributes: object) -> Markup:
    """An element.

    Args:
        name: of the element.
        *content: markup and texts.
        **attributes: `class_` is class, `data_x` data-x; None and False leave an attribute out, True writes its name.
    """
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{join(*content)}</{name}>")


def _attribute(key: str, value: object) -> str:
    key = key.rstrip("_").replace("_", "-")
    if value is None or value is False:
        return ""
    return f" {key}" if value is True else f' {key}="{escape(str(value))}"'
