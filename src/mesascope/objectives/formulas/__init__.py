"""The population loss as a formula."""

from ._contractions import Contraction, Factor, contractions
from ._formula import Formula, formula

__all__ = ["Contraction", "Factor", "Formula", "contractions", "formula"]
