"""BibTeX entries: `references.bib` has every key that a docstring, a claim or a figure names."""

import re
from functools import cache
from importlib.resources import files

from mesascope.specs import unknown

# In this file an entry begins in the first column, and its closing brace is alone on a line.
_ENTRY = re.compile(r"^@\w+\{([^,\s]+),\n.*?^\}$", re.MULTILINE | re.DOTALL)


@cache
def _entries() -> dict[str, str]:
    text = files("mesascope").joinpath("references.bib").read_text(encoding="utf-8")
    return {match.group(1): match.group(0) for match in _ENTRY.finditer(text)}


def known_keys() -> tuple[str, ...]:
    """Every bib key that `cite` knows, papers first, in the order of `references.bib`."""
    return tuple(_entries())


def cite(*keys: str) -> str:
    """BibTeX entries of the given keys, in the order asked for; without a key, every entry.

    Args:
        *keys: bib keys such as `"zheng2024"` (first author and year, or a library's name); see `known_keys`.
            A key asked for twice is printed once.

    Returns:
        The entries as one BibTeX text, one blank line between two, without a newline at the end.

    Raises:
        ValueError: a key is not in `references.bib`; the message names the nearest one that is.
    """
    entries = _entries()
    for key in keys:
        if key not in entries:
            raise ValueError(f"cite: {unknown('reference', key, list(entries))}")
    return "\n\n".join(entries[key] for key in dict.fromkeys(keys or entries))
