"""Line breaks in texts."""

import re
import textwrap
from collections.abc import Sequence


def letters_across(inches: float) -> int:
    """The approximate number of letters in a line of a label."""
    return int(inches * 16.0)


def names_across(names: Sequence[str]) -> float:
    """About how many inches the longest of some names takes."""
    return max(map(len, names)) / 18.0


def wrap(text: str, letters: int) -> str:
    """Break a text into lines of about so many letters, never inside `$…$`."""
    formulas = re.findall(r"\$[^$]*\$", text)
    stand_ins = []
    for number, formula in enumerate(formulas):
        # A formula is one word, about as long as what is left of it without its commands and braces.
        length = max(len(re.sub(r"\\[A-Za-z]+|[{}^_$\\ ]", "", formula)), 1)
        stand_ins.append(chr(0xE000 + number) * length)  # a private character, which no text contains
        text = text.replace(formula, stand_ins[-1], 1)
    wrapped = textwrap.fill(text, max(letters, 8), break_long_words=False, break_on_hyphens=False)
    for stand_in, formula in zip(stand_ins, formulas, strict=True):
        wrapped = wrapped.replace(stand_in, formula, 1)
    return wrapped
