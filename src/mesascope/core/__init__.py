"""Checks of numbers, results with standard errors, random keys, and the check of the precision, for all rooms."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
