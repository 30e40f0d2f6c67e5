import re

import pytest

from mesascope.records._cite import _entries, cite, known_keys

PAPERS = [
    "zheng2024",
    "sander2024",
    "vonoswald2023",
    "ahn2023",
    "zhang2024",
    "mahankali2024",
    "gatmiry2024",
    "fu2024",
    "giannou2024",
    "vladymyrov2024",
    "vonoswald2024",
    "huang2024",
    "nichani2024",
    "kim2024",
]


def test_every_paper_and_library_that_the_project_leans_on_is_known():
    assert set(PAPERS) <= set(known_keys())
    assert {"jax", "equinox", "diffrax", "optax", "optimistix", "lineax"} <= set(known_keys())


def test_no_entry_of_the_file_escapes_the_reader():
    from importlib.resources import files

    text = files("mesascope").joinpath("references.bib").read_text(encoding="utf-8")
    opened = re.findall(r"^\s*@\w+\s*\{\s*([^,\s]+)", text, flags=re.MULTILINE)
    assert opened == list(known_keys())  # also: no key twice


@pytest.mark.parametrize("key", known_keys())
def test_entries_are_well_formed(key):
    entry = cite(key)
    assert entry.startswith("@") and entry.endswith("}")
    depth = 0
    for character in re.sub(r"\\[{}]", "", entry):
        depth += (character == "{") - (character == "}")
        assert depth >= 0
    assert depth == 0
    fields = dict(re.findall(r"^  (\w+)\s*= \{(.*?)\}(?:,$|$)", entry, flags=re.MULTILINE | re.DOTALL))
    assert {"author", "title", "year"} <= set(fields)
    if key in PAPERS:
        assert re.fullmatch(r"\d{4}\.\d{5}", fields["eprint"]) and fields["archiveprefix"] == "arXiv"
        surname = re.sub(r"[^a-z]", "", fields["author"].split(",")[0].lower())
        assert key.startswith(surname)


def test_keys_are_printed_in_the_order_asked_for_and_once():
    both = cite("kim2024", "zheng2024", "kim2024")
    assert both == cite("kim2024") + "\n\n" + cite("zheng2024")
    assert cite() == "\n\n".join(_entries().values())


def test_unknown_key_names_the_nearest():
    with pytest.raises(ValueError, match=r"unknown reference 'zeng2024'; did you mean 'zheng2024'\?"):
        cite("zheng2024", "zeng2024")
    with pytest.raises(ValueError, match="use one of zheng2024"):
        cite("#")
