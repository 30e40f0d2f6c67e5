"""Models of sequences and prompts: linear and softmax attention, mesa layers, transformers, looped transformers."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
