"""Demand: the marks that consumers can use; no finer punctuation is made (OOP A.1.1).

A demand is a set of grids. A window aggregate can use the multiples of its slide (shifted by the
remainder of its range), a sort every value. A source rounds its mark down to these grids and emits
punctuation only when the rounded mark has moved, so no punctuation is emitted twice.

A consumer that keeps groups apart can use punctuation on single groups. If all consumers do, no
punctuation is made on the whole stream, and a group that appears later loses no rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lowwater.stream.element import BEGINNING


@dataclass(frozen=True, slots=True)
class Demand:
    """The marks that are useful to consumers.

    Invariant: no grid lies within another.
    """

    grids: frozenset[tuple[int, int]] = frozenset()
    """Grids ``(step, offset)`` in ticks; a step of 1 makes every value useful."""
    linear: bool = True
    """True if a consumer needs punctuation on the whole stream, not only on its groups."""

    @classmethod
    def any_value(cls) -> Demand:
        """Return the demand for which every mark is useful."""
        return cls(frozenset({(1, 0)}))

    @classmethod
    def grid(cls, step: int, offset: int = 0) -> Demand:
        """Return the demand for multiples of ``step`` plus ``offset``, in ticks."""
        return cls(frozenset({(step, offset % step)}))

    def __or__(self, other: Demand) -> Demand:
        grids = self.grids | other.grids
        thinned = frozenset(each for each in grids if not any(_is_coarser(each, o) for o in grids))
        return Demand(thinned, self.linear or other.linear)

    def with_linear(self, linear: bool) -> Demand:
        """Return the demand with the same grids and this value of :attr:`linear`."""
        return self if linear == self.linear else Demand(self.grids, linear)

    def shifted(self, by: int) -> Demand:
        """Return the same demand on an attribute that is ``by`` ticks less than this one."""
        grids = frozenset((step, (offset - by) % step) for step, offset in self.grids)
        return Demand(grids, self.linear)

    def unrounded(self, bucket: int, numbered: bool = False) -> Demand:
        """Return the same demand on the attribute that this one is rounded down from.

        This attribute is the other one rounded down to multiples of ``bucket`` ticks, so it moves
        only where a bucket begins. If ``numbered`` it is the number of the bucket.
        """
        demand = Demand()
        for step, offset in self.grids:
            if numbered:
                demand |= Demand.grid(step * bucket, offset * bucket)
            elif step % bucket:
                demand |= Demand.grid(bucket)
            else:
                demand |= Demand.grid(step, -(-offset // bucket) * bucket)
        return demand.with_linear(self.linear)

    def unscaled(self, scale: int) -> Demand:
        """Return the same demand on an attribute of which one tick is ``scale`` of this one's."""
        demand = Demand()
        for step, offset in self.grids:
            whole = step % scale == 0
            demand |= Demand.grid(step // scale if whole else 1, -(-offset // scale))
        return demand.with_linear(self.linear)

    def round_down(self, mark: int) -> int:
        """Return the greatest useful mark not above ``mark``."""
        if not self.grids:
            return BEGINNING
        return max((mark - offset) // step * step + offset for step, offset in self.grids)

    def round_all_down(self, marks: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the greatest useful mark not above each mark; ``BEGINNING`` stays as it is."""
        rolled = np.full(len(marks), BEGINNING, np.int64)
        for step, offset in self.grids:
            np.maximum(rolled, (marks - offset) // step * step + offset, out=rolled)
        return np.where(marks > BEGINNING, rolled, BEGINNING)


def _is_coarser(grid: tuple[int, int], other: tuple[int, int]) -> bool:
    """Return true if all points of a grid are points of another, finer one."""
    (step, offset), (finer, start) = grid, other
    return grid != other and step % finer == 0 and (offset - start) % finer == 0
