"""Laws of initial tokens, processes of sequences and of prompts, and tasks."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
