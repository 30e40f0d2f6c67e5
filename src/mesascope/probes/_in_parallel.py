"""Independent work on all cores; most of it is compilation, which uses one core per program."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import jax

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_parallel(work: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
    """Yield the results in the order of the items, each as soon as it and all previous ones are finished.

    An error of one item is raised here, and items that have not started are cancelled.
    """
    x64 = jax.config.jax_enable_x64  # type: ignore[attr-defined]  # defined at run time

    def in_same_mode(item: Item) -> Result:
        with jax.enable_x64(x64):  # a mode that was set by `with` does not apply to other threads
            return work(item)

    pool = ThreadPoolExecutor(os.cpu_count())
    try:
        yield from pool.map(in_same_mode, items)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
