"""Plugins of one test are not known to the next."""

import pytest

from mesascope.specs import families, known_kinds
from mesascope.specs._registry import FAMILIES


@pytest.fixture(autouse=True)
def known_before():
    """The registry as it was."""
    known_kinds(*families())  # all modules are imported before the registry is copied
    before = {family: dict(kinds) for family, kinds in FAMILIES.items()}
    yield
    FAMILIES.clear()
    FAMILIES.update(before)
