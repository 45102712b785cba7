"""Running maxima of an input: which value was reached with which row, and when.

Only rows at which the maximum rose are kept, and of old ones ever fewer: what is asked of them is
asked relative to how long ago they were.

Invariant: positions and values both rise. What :meth:`Records.top_at` says was true then: a record
that was thinned out makes it say less, never more.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lowwater.stream.element import BEGINNING

Ticks = NDArray[np.int64]
LIMIT = 512
"""When there are more records, old ones are thinned out."""
FINE = 16
"""Of old records so many are kept for each doubling of their age."""


class Records:
    """Where in a stream its maximum rose. The first row has position 1."""

    __slots__ = ("_at", "_values", "_when")

    def __init__(self) -> None:
        self._at: Ticks = np.empty(0, dtype=np.int64)
        self._values: Ticks = np.empty(0, dtype=np.int64)
        self._when: Ticks = np.empty(0, dtype=np.int64)

    @property
    def top(self) -> int:
        """The greatest value so far."""
        return int(self._values[-1]) if len(self._values) else BEGINNING

    def extend(self, values: Ticks, positions: Ticks, now: int) -> None:
        """Take rows in, each of which has a position; none is before the last one."""
        tops = np.empty(len(values) + 1, dtype=np.int64)
        tops[0], tops[1:] = self.top, values
        np.maximum.accumulate(tops, out=tops)
        rose = np.flatnonzero(tops[1:] > tops[:-1])
        if len(rose):
            self._at = np.concatenate([self._at, positions[rose]])
            self._values = np.concatenate([self._values, values[rose]])
            self._when = np.concatenate([self._when, np.full(len(rose), now, dtype=np.int64)])

    def thin(self) -> None:
        """Of old records keep ever fewer, so that they are as far apart as they are old."""
        if len(self._at) <= LIMIT:
            return
        old = len(self._at) - LIMIT // 4
        ages = self._at[-1] - self._at[:old]
        _, stay = np.unique(-np.floor(np.log2(ages) * FINE), return_index=True)
        stay = np.concatenate([stay, np.arange(old, len(self._at))])
        self._at, self._values = self._at[stay], self._values[stay]
        self._when = self._when[stay]

    def first_at_least(self, values: Ticks, none: int) -> Ticks:
        """For each value the position at which the maximum reached it, or ``none``."""
        found = np.searchsorted(self._values, values, side="left")
        return np.append(self._at, none)[found]

    def top_at(self, position: int) -> int:
        """The maximum of the rows up to a position, or less."""
        at = int(np.searchsorted(self._at, position, side="right"))
        return int(self._values[at - 1]) if at else BEGINNING

    def reached(self, value: int) -> int | None:
        """When the maximum reached a value; None if it has not."""
        at = int(np.searchsorted(self._values, value, side="left"))
        return int(self._when[at]) if at < len(self._when) else None

    def snapshot(self) -> Any:
        """All records."""
        return self._at.tolist(), self._values.tolist(), self._when.tolist()

    def restore(self, saved: Any) -> None:
        """Go on from a snapshot."""
        self._at, self._values, self._when = (np.array(each, dtype=np.int64) for each in saved)
