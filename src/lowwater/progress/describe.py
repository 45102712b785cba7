"""Describe: which punctuation consumers can use, and nothing finer (OOP A.1.1).

A demand is the set of grids whose points some consumer can act on. A window aggregate can act at
multiples of its slide (shifted by its range's remainder), a sort at any value. Sources roll their
mark down to the demanded grid and stay silent until that moves, so no promise is told twice.
"""

from __future__ import annotations

from dataclasses import dataclass

from lowwater.stream.element import BEGINNING


@dataclass(frozen=True, slots=True)
class Demand:
    """Grids ``(step, offset)`` of useful marks; a step of 1 means every value is useful."""

    grids: frozenset[tuple[int, int]] = frozenset()

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
        return Demand(frozenset(each for each in grids if not any(_within(each, o) for o in grids)))

    def shifted(self, by: int) -> Demand:
        """The demand on an attribute that is ``by`` ticks less than this one."""
        return Demand(frozenset((step, (offset - by) % step) for step, offset in self.grids))

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
        return demand

    def roll(self, mark: int) -> int:
        """The greatest useful mark not above ``mark``."""
        if not self.grids:
            return BEGINNING
        return max((mark - offset) // step * step + offset for step, offset in self.grids)


def _within(grid: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether all points of a grid are points of another, which has more."""
    (step, offset), (finer, start) = grid, other
    return grid != other and step % finer == 0 and (offset - start) % finer == 0
