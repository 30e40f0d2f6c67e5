"""Independent work on all cores: most of it is compilation, which one core does at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import jax

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_parallel(work: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
    """The results in the order of the items, each as soon as it and all before it are there.

    What one raises is raised here; what has not begun by then is not begun.
    """
    wide = jax.config.jax_enable_x64  # type: ignore[attr-defined]  # defined at run time

    def alone(item: Item) -> Result:
        with jax.enable_x64(wide):  # a mode entered by `with` does not reach other threads
            return work(item)

    pool = ThreadPoolExecutor(os.cpu_count())
    try:
        yield from pool.map(alone, items)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
