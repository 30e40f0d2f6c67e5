"""The population loss as a formula."""

from ._formula import Formula, formula

__all__ = ["Formula", "formula"]
