"""The list of faults that `make faults` puts into the core is up to date."""

import ast
from pathlib import Path

import pytest

from harness.core_faults import FAULTS

PACKAGE = Path(__file__).parents[2] / "src" / "mesascope"


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.what)
def test_a_fault_changes_one_place_and_leaves_a_program(fault):
    text = (PACKAGE / fault.file).read_text(encoding="utf-8")
    assert text.count(fault.right) == 1
    ast.parse(text.replace(fault.right, fault.wrong))


def test_there_are_twenty_in_different_places():
    assert len({(fault.file, fault.right) for fault in FAULTS}) == len(FAULTS) == 20
