"""Addresses as they may be told."""

import re

_USER = re.compile(r"(\w:?/+[^\s:@/]*):\S*@")
_OPTION = re.compile(r"((?:password|passfile|secret)=)[^&\s'\"]+", re.IGNORECASE)


def without_passwords(text: str) -> str:
    """A text with the passwords hidden of all URLs in it, also of those that are not quite URLs."""
    return _OPTION.sub(r"\1***", _USER.sub(r"\1:***@", text))
