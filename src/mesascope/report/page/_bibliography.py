"""Citations for reading, from `references.bib`."""

import re
import unicodedata

from mesascope.records import cite, known_keys

from ._html import Markup, join, tag

_ACCENTS = {
    "'": "\u0301",
    "`": "\u0300",
    "^": "\u0302",
    '"': "\u0308",
    "~": "\u0303",
    "=": "\u0304",
    ".": "\u0307",
}
_FIELD = re.compile(r"^\s*(\w+)\s*=\s*\{(.*?)\},?\s*$(?=\s*^\s*\w+\s*=|\s*^\}$)", re.MULTILINE | re.DOTALL)


def fields(key: str) -> dict[str, str]:
    """The fields of an entry as text; none for a key that is not known."""
    if key not in known_keys():
        return {}
    return {name.lower(): _plain(value) for name, value in _FIELD.findall(cite(key))}


def _plain(tex: str) -> str:
    tex = re.sub(r"\\url\{(.*?)\}", r"\1", tex)
    tex = re.sub(
        r"\\([`'^\"~=.])\{?(\w)\}?", lambda m: unicodedata.normalize("NFC", m[2] + _ACCENTS[m[1]]), tex
    )
    return " ".join(re.sub(r"[{}]", "", tex).replace("--", "–").split())


def title_of(key: str) -> str:
    """The title of a paper, or its key where none is known."""
    return fields(key).get("title", key)


def citation(key: str) -> Markup:
    """Authors, title, where and when; with a link where there is an address. The key alone where it is not known."""
    found = fields(key)
    if not found:
        return join(key)
    where = found.get("booktitle") or found.get("journal") or found.get("howpublished") or found.get("school")
    volume = found.get("volume")
    return join(
        _authors(found.get("author", "")),
        ". ",
        tag("cite", found.get("title", key)),
        ". ",
        join(where, f" {volume}" if volume else "", ", ") if where and "://" not in where else None,
        found.get("year", ""),
        ".",
        join(" ", _link(found)) if _link(found) else None,
    )


def _authors(names: str) -> str:
    people = [
        " ".join(reversed([part.strip() for part in one.split(",", 1)])) for one in names.split(" and ")
    ]
    return ", ".join(people)


def _link(found: dict[str, str]) -> Markup | None:
    if "eprint" in found:
        return tag(
            "a", f"arXiv:{found['eprint']}", href=f"https://arxiv.org/abs/{found['eprint']}", rel="noreferrer"
        )
    if "doi" in found:
        return tag("a", f"doi:{found['doi']}", href=f"https://doi.org/{found['doi']}", rel="noreferrer")
    return None
