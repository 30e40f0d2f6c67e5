"""Independent work on all cores; most of it is compilation, which uses one core per program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from mesascope.core import cores, in_this_precision

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_parallel(work: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
    """Yield the results in the order of the items, each as soon as it and all previous ones are finished.

    An error of one item is raised here, and items that have not started are cancelled.
    """
    pool = ThreadPoolExecutor(cores())
    try:
        yield from pool.map(in_this_precision(work), items)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
