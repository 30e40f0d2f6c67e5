"""The table of how long a newcomer waits has a row for everything that is measured."""

import pytest
from doors import DOORS, README, stored, table, written


def test_the_page_has_the_table():
    page = README.read_text(encoding="utf-8")
    assert written(page, stored()) == page, "run `python3 benchmarks/doors.py` after a change of its rows"
    assert all(f"**{name}**" in page for name in DOORS)


@pytest.mark.parametrize(("factor", "missed"), [(0.5, False), (2, True)])
def test_a_row_says_whether_its_bar_is_missed(factor, missed):
    for name, one in DOORS.items():
        for what, bars in one.rows:
            told = {bar: factor * limit for bar, limit in bars.items()}
            lines = table({what: {"seconds": 1.0, **told, "when": "2026-01-01"}}).splitlines()
            (line,) = (line for line in lines if line.startswith(f"| {what} (`{name}`) "))
            assert "2026-01-01" in line and ("**missed**" in line) == (missed and bool(bars))
