"""Reports of records: figures from traces, and one HTML file. Nothing is computed; jax is not imported."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
