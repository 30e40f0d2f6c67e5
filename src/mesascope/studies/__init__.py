"""Specifications of computations, from TOML and JSON files or mappings, checked before anything runs.

Reading one imports no jax: jax and the rooms that need it are imported when it is built or run.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
