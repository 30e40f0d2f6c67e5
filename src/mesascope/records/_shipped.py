"""The records of claims in the package: the last check of every claim, for each preset."""

from pathlib import Path

SHIPPED = Path(__file__).parent / "shipped"
"""Their folder: a run directory for each preset, `small` and `full`."""
