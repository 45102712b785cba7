"""Describe: which punctuation consumers can use, and nothing finer (OOP A.1.1).

A demand is the set of grids whose points some consumer can act on. A window aggregate can act at
multiples of its slide (shifted by its range's remainder), a sort at any value. Sources roll their
mark down to the demanded grid and stay silent until that moves, so no promise is told twice.

A consumer that keeps groups apart can act on the promises of single groups. If all of them can, the
promise on the whole stream serves nobody and is not made: a group that appears later has then
broken nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lowwater.stream.element import BEGINNING


@dataclass(frozen=True, slots=True)
class Demand:
    """Grids ``(step, offset)`` of useful marks; a step of 1 means every value is useful."""

    grids: frozenset[tuple[int, int]] = frozenset()
    linear: bool = True
    """Whether somebody needs the promise on the whole stream, not only those on its groups."""

    @classmethod
    def any_value(cls) -> Demand:
        """Every new mark is useful."""
        return cls(frozenset({(1, 0)}))

    @classmethod
    def grid(cls, step: int, offset: int = 0) -> Demand:
        """Marks at multiples of ``step`` plus ``offset`` are useful."""
        return cls(frozenset({(step, offset % step)}))

    def __or__(self, other: Demand) -> Demand:
        grids = self.grids | other.grids
        thinned = frozenset(each for each in grids if not any(_within(each, o) for o in grids))
        return Demand(thinned, self.linear or other.linear)

    def made(self, linear: bool) -> Demand:
        """The same grids, for the promise on the whole stream or for groups alone."""
        return self if linear == self.linear else Demand(self.grids, linear)

    def shifted(self, by: int) -> Demand:
        """The demand on an attribute that is ``by`` ticks less than this one."""
        grids = frozenset((step, (offset - by) % step) for step, offset in self.grids)
        return Demand(grids, self.linear)

    def unrounded(self, bucket: int, numbered: bool = False) -> Demand:
        """The demand on an attribute that this one is, rounded down to multiples of ``bucket``.

        This one moves only where a bucket begins. If ``numbered`` it counts buckets.
        """
        demand = Demand()
        for step, offset in self.grids:
            if numbered:
                demand |= Demand.grid(step * bucket, offset * bucket)
            elif step % bucket:
                demand |= Demand.grid(bucket)
            else:
                demand |= Demand.grid(step, -(-offset // bucket) * bucket)
        return demand.made(self.linear)

    def roll(self, mark: int) -> int:
        """The greatest useful mark not above ``mark``."""
        if not self.grids:
            return BEGINNING
        return max((mark - offset) // step * step + offset for step, offset in self.grids)

    def roll_all(self, marks: NDArray[np.int64]) -> NDArray[np.int64]:
        """The same of many marks at once; those that promise nothing stay where they are."""
        rolled = np.full(len(marks), BEGINNING, np.int64)
        for step, offset in self.grids:
            np.maximum(rolled, (marks - offset) // step * step + offset, out=rolled)
        return np.where(marks > BEGINNING, rolled, BEGINNING)


def _within(grid: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether all points of a grid are points of another, which has more."""
    (step, offset), (finer, start) = grid, other
    return grid != other and step % finer == 0 and (offset - start) % finer == 0
