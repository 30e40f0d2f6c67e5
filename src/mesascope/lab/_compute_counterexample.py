"""Laws for which a property of the theory fails, searched in a worker's process."""

from __future__ import annotations

from typing import Any

from mesascope.dynamics import counterexample
from mesascope.dynamics.counterexamples import PROPERTIES

from ._jobs import Report

Result = dict[str, Any]


def properties(progress: Report) -> dict[str, str]:
    """What may hold for all laws: a sentence by name."""
    return {name: one.statement for name, one in PROPERTIES.items()}


def broken(stated: str, progress: Report) -> Result:
    """What the search for a law that breaks the property found: a `table` by name, and the `setting` or None."""
    progress("searching")
    search = counterexample(stated, progress=lambda now: progress(now.describe()))
    found = search.found
    _, table = (search if found is None else found)._printed()
    return {"table": table, "setting": None if found is None else found.specification()}
