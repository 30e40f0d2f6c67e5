"""Records of results: claims, figures as data, trajectories, and their provenance.

Nothing in here imports jax: records can be written, read and drawn where no accelerator library is installed.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
