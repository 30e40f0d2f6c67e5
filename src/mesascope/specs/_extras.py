"""Optional packages: what `pip install 'mesascope[EXTRA]'` adds."""

from collections.abc import Iterator
from contextlib import contextmanager


class MissingExtraError(ModuleNotFoundError):
    """A package of an extra is not installed."""


@contextmanager
def extra(name: str) -> Iterator[None]:
    """Import packages that only an extra installs.

    Args:
        name: the extra, as in pyproject.toml.

    Raises:
        MissingExtraError: one of them is not installed; says which, and how to install the extra.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        if package == "mesascope" or isinstance(error, MissingExtraError):
            raise
        fix = f"pip install 'mesascope[{name}]' (in a clone: make setup)"
        raise MissingExtraError(f"this needs the package {package}: {fix}", name=error.name) from error
