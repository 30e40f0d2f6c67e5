"""Citations for reading, from `references.bib`."""

import re
import unicodedata

from mesascope.records import cite, known_keys

_ACCENTS = dict(zip("'`^\"~=.", "\u0301\u0300\u0302\u0308\u0303\u0304\u0307", strict=True))
_FIELD = re.compile(r"^\s*(\w+)\s*=\s*\{(.*?)\},?\s*$(?=\s*^\s*\w+\s*=|\s*^\}$)", re.MULTILINE | re.DOTALL)


def reference(key: str) -> dict[str, str]:
    """Title, authors, place, year and link of a paper, "" where there is none; of an unknown one its key as title."""
    if key not in known_keys():
        return {"title": key}
    found = {name.lower(): _plain(value) for name, value in _FIELD.findall(cite(key))}
    place = next(
        (found[name] for name in ("booktitle", "journal", "howpublished", "school") if name in found), ""
    )
    volume = f" {found['volume']}" if "volume" in found else ""
    if "eprint" in found:
        label, link = f"arXiv:{found['eprint']}", f"https://arxiv.org/abs/{found['eprint']}"
    elif "doi" in found:
        label, link = f"doi:{found['doi']}", f"https://doi.org/{found['doi']}"
    else:
        label, link = "", ""
    return {
        "title": found.get("title", key),
        "authors": _authors(found.get("author", "")),
        "place": f"{place}{volume}, " if place and "://" not in place else "",
        "year": found.get("year", ""),
        "label": label,
        "link": link,
    }


def _plain(tex: str) -> str:
    tex = re.sub(r"\\url\{(.*?)\}", r"\1", tex)
    tex = re.sub(
        r"\\([`'^\"~=.])\{?(\w)\}?", lambda m: unicodedata.normalize("NFC", m[2] + _ACCENTS[m[1]]), tex
    )
    return " ".join(re.sub(r"[{}]", "", tex).replace("--", "–").split())


def _authors(names: str) -> str:
    """Several authors, each with the first name first."""
    people = (one.split(",", 1) for one in names.split(" and "))
    return ", ".join(" ".join(part.strip() for part in reversed(parts)) for parts in people)
