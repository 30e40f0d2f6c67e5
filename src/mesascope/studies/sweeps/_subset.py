"""Some of the points of a study: drawn at random, or a coarser grid."""

import abc
import hashlib
from collections.abc import Iterator
from itertools import count
from typing import Annotated, TypeAlias

from mesascope.specs import Component, Seed, kind, one_of

from ._values import Length


class Subset(Component, family="subset"):
    """Some of the points of a study."""

    @abc.abstractmethod
    def thinned(self, length: int) -> range:
        """The places of an axis that may occur."""

    @abc.abstractmethod
    def chosen(self, size: int) -> Iterator[int]:
        """The points among `size`, in their order."""


@kind("random", count=10)
class RandomSubset(Subset):
    """Points drawn without repetition, every one as likely as any other; more of them contain fewer.

    Args:
        count: how many; at most all of them are taken.
        seed: of the draw, 0 when left out.
    """

    count: Length
    seed: Seed = 0

    def thinned(self, length: int) -> range:
        """The places of an axis that may occur: all."""
        return range(length)

    def chosen(self, size: int) -> Iterator[int]:
        """The points among `size`, in their order."""
        if self.count >= size:
            yield from range(size)
        else:
            yield from sorted(self._drawn(size))

    def _drawn(self, size: int) -> set[int]:
        """Some of 0 … size − 1, by digests: no library decides which, so that they stay the same for ever."""
        found: set[int] = set()
        for i in count():
            if len(found) == self.count:
                break
            digest = hashlib.sha256(f"mesascope subset {self.seed} {i}".encode()).digest()
            found.add(int.from_bytes(digest, "big") % size)
        return found


@kind("grid", every=2)
class GridSubset(Subset):
    """Every k-th value of every axis, the first included.

    Args:
        every: k.
    """

    every: Length

    def thinned(self, length: int) -> range:
        """The places of an axis that are left."""
        return range(0, length, self.every)

    def chosen(self, size: int) -> Iterator[int]:
        """The points among `size`: all, the axes being thinned."""
        yield from range(size)


SubsetField: TypeAlias = Annotated[Subset, *one_of("subset")]
