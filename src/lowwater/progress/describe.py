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
        return Demand.any_value() if (1, 0) in grids else Demand(grids)

    def shifted(self, by: int) -> Demand:
        """The demand on an attribute that is ``by`` ticks less than this one."""
        return Demand(frozenset((step, (offset - by) % step) for step, offset in self.grids))

    def roll(self, mark: int) -> int:
        """The greatest useful mark not above ``mark``."""
        if not self.grids:
            return BEGINNING
        return max((mark - offset) // step * step + offset for step, offset in self.grids)
