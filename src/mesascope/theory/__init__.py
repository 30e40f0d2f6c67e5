"""Closed forms of the literature, one module per paper: pure formulas, derived and not fitted."""

from . import zheng2024 as zheng2024
