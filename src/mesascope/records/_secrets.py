"""Texts without passwords."""

import re

_USER = re.compile(r"(\w:?/+[^\s:@/]*):\S*@")
_HTTP_USER = re.compile(r"(\bhttps?:/+)[^\s/@:]+@", re.IGNORECASE)  # it may be a token
_OPTION = re.compile(r"([\w.-]*(?:pass|secret|token|key|auth|cred|sig)[\w.-]*=)[^&\s'\"]+", re.IGNORECASE)


def without_passwords(text: str) -> str:
    """A text in which the passwords and tokens of all URLs are hidden, also of misspelt ones."""
    return _OPTION.sub(r"\1***", _HTTP_USER.sub(r"\1***@", _USER.sub(r"\1:***@", text)))
