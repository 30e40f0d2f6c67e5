"""Every run begins as if it were the first of its process: what it changes there is undone before the next one."""

import os
import random
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any


@contextmanager
def isolated(run: str) -> Iterator[None]:
    """Undo, after the block, what it has changed of the process.

    That is: environment variables, the current folder, filters of warnings, NumPy's handling of floating-point errors, JAX's
    configuration, and the global random number generators of Python, NumPy and PyTorch. These are seeded with the id of the
    run, so that they do not depend on the runs before it.
    """
    import jax
    import numpy as np

    with ExitStack() as undone:
        undone.callback(_restore_environment, dict(os.environ))
        with suppress(OSError):  # it was removed
            undone.callback(_go_back, os.getcwd())
        undone.callback(_restore_configuration, dict(jax.config.values))
        undone.enter_context(warnings.catch_warnings())
        undone.enter_context(np.errstate())
        _seed(run, undone)
        yield


def _seed(run: str, undone: ExitStack) -> None:
    import numpy as np

    seed = int(run, 16)
    undone.callback(random.setstate, random.getstate())
    undone.callback(np.random.set_state, np.random.get_state())
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch: Any = sys.modules.get("torch")
    if torch is not None:  # no dependency: a function of the user may have imported it
        undone.callback(_quietly, torch.set_rng_state, torch.get_rng_state())
        torch.manual_seed(seed % 2**63)


def _restore_environment(before: dict[str, str]) -> None:
    """One variable at a time: other threads read the environment at the same time."""
    for name in os.environ.keys() - before.keys():
        del os.environ[name]
    for name, value in before.items():
        if os.environ.get(name) != value:
            os.environ[name] = value


def _go_back(folder: str) -> None:
    with suppress(OSError):
        os.chdir(folder)


def _restore_configuration(before: dict[str, Any]) -> None:
    import jax

    for name, value in jax.config.values.items():
        if name in before and value != before[name]:
            jax.config.update(name, before[name])


def _quietly(restore: Callable[[Any], None], state: Any) -> None:
    with suppress(RuntimeError, TypeError):
        restore(state)
