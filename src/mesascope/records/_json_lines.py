"""The line of every value in a JSON text, for messages."""

from __future__ import annotations

import re

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')


def json_lines(text: str) -> dict[tuple[str, ...], int]:
    """The line of every value of a valid JSON text, counted from 1, by its path: names and indices as strings.

    The line of a value is that of its name; if a name occurs twice, that of the second.
    """
    lines: dict[tuple[str, ...], int] = {(): 1}
    path: list[str] = []
    names: list[bool] = []  # of the objects and lists that are open: whether an object
    awaited = False  # a value follows, its path and line being known
    for token in _TOKEN.finditer(text):
        word, line = token.group(), 1 + text.count("\n", 0, token.start())
        if word in "}]":
            names.pop()
            path.pop()
            awaited = False
        elif word == ",":
            path[-1] = path[-1] if names[-1] else str(int(path[-1]) + 1)
            awaited = False
        elif word == ":":
            awaited = True
        elif names and names[-1] and not awaited:
            path[-1] = word[1:-1]
            lines[tuple(path)] = line
        else:
            lines.setdefault(tuple(path), line)
            awaited = False
            if word in "{[":
                names.append(word == "{")
                path.append("" if word == "{" else "0")
    return lines
