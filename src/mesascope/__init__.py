"""mesascope: a laboratory for mesa-optimization.

It trains sequence models on tasks that must be learned in context, solves their training dynamics exactly
where mathematics allows, and says which optimizer the trained forward pass runs.

Every public name is imported on first use (PEP 562), so that ``import mesascope`` costs milliseconds and loads no jax; a
command that needs no arrays never pays for them. The stub beside this file lists the names.
"""

import lazy_loader as _lazy

_public_name, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    """Import a public name, or a room, the first time it is asked for."""
    if name == "__version__":
        from importlib.metadata import version

        return version(__name__)
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _public_name(name)
