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
        """The places of an axis that can be chosen."""

    @abc.abstractmethod
    def chosen(self, size: int) -> Iterator[int]:
        """The chosen points among 0 … size − 1, in increasing order."""


@kind("random", count=10)
class RandomSubset(Subset):
    """Points drawn without repetition, all equally likely; a larger subset contains the smaller ones of its seed.

    Args:
        count: how many; at most all of them are taken.
        seed: of the draw, 0 when left out.
    """

    count: Length
    seed: Seed = 0

    def thinned(self, length: int) -> range:
        """The places of an axis that can be chosen: all."""
        return range(length)

    def chosen(self, size: int) -> Iterator[int]:
        """The chosen points among 0 … size − 1, in increasing order."""
        if self.count >= size:
            yield from range(size)
        else:
            yield from sorted(self._drawn(size))

    def _drawn(self, size: int) -> set[int]:
        """Drawn by digests, not by the generator of a library: the points must stay the same forever."""
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
        """The places of an axis that can be chosen: every k-th."""
        return range(0, length, self.every)

    def chosen(self, size: int) -> Iterator[int]:
        """The chosen points: all, since the axes are thinned."""
        yield from range(size)


SubsetField: TypeAlias = Annotated[Subset, *one_of("subset")]
