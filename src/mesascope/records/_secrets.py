"""Texts without passwords."""

import re

_USER = re.compile(r"(\w:?/+[^\s:@/]*):\S*@")
_TOKEN = re.compile(
    r"(\b(?!postgres|mysql|mariadb|mssql|oracle)[a-z]\w*:/+)[^\s/@:]+@", re.IGNORECASE
)  # a user may be one
_OPTION = re.compile(r"((?:password|passfile|secret)=)[^&\s'\"]+", re.IGNORECASE)
_QUERY = re.compile(
    r"([?&;#][\w.-]{0,40}(?:pass|pwd|secret|token|key|auth|credential|sig)[\w.-]{0,40}=)[^&;#\s'\"]+",
    re.IGNORECASE,
)


def without_passwords(text: str) -> str:
    """A text in which the passwords and tokens of all URLs are hidden, also of misspelt ones."""
    text = _QUERY.sub(r"\1***", text)
    return _OPTION.sub(r"\1***", _TOKEN.sub(r"\1***@", _USER.sub(r"\1:***@", text)))
