"""Texts without passwords."""

import re

_USER = re.compile(r"(\w:?/+[^\s:@/]*):\S*@")
_OPTION = re.compile(r"((?:password|passfile|secret)=)[^&\s'\"]+", re.IGNORECASE)


def without_passwords(text: str) -> str:
    """A text in which the passwords of all URLs are hidden, also of misspelt ones."""
    return _OPTION.sub(r"\1***", _USER.sub(r"\1:***@", text))
