"""What every room shares: numbers and their checks, results, random keys, the precision guard."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
