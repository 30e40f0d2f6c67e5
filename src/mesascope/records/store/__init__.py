"""The store of runs: folders that are the truth, and an index that finds runs in them."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
