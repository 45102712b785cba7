"""How far a stream has come, and when what let it come so far did.

A window is complete from the arrival of what completed it. A promise follows a chunk, and what of
the chunk would have been promised sooner is worked out from the rows: a promise stays as far from
the greatest time seen as it is at the end of the chunk. That is exact where order, or disorder
within a bound, is promised, or every row says what comes after it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lowwater.stream.element import BEGINNING, END_OF_TIME
from lowwater.updates.windows.open_windows import Ticks


class Progress:
    """The mark of a stream, and the arrivals since the mark before."""

    def __init__(self) -> None:
        self.mark = BEGINNING
        self._top = BEGINNING
        self._tops: list[int] = []
        self._when: list[int] = []
        self._moved = np.empty(0, np.int64), np.empty(0, np.int64)
        self._ahead = 0
        self._now = self._last = 0

    def came(self, ticks: Ticks, when: Ticks) -> None:
        """Rows came; those count that are later than all before."""
        tops = np.maximum.accumulate(ticks)
        later = np.flatnonzero(np.diff(tops, prepend=self._top) > 0)
        self._tops += tops[later].tolist()
        self._when += when[later].tolist()
        self._top = max(self._top, int(tops[-1]))
        self._last = int(when[-1])

    def promised(self, mark: int, now: int) -> None:
        """Nothing below a mark comes any more."""
        if mark == END_OF_TIME:
            self._tops, self._when = [], []
        self.mark, self._now = mark, now
        self._ahead = mark - self._top
        self._moved = np.array(self._tops, np.int64), np.array(self._when, np.int64)
        self._tops, self._when = [], []

    def heard(self, now: int) -> int:
        """Something is promised of some keys: when the last row came, if one did since the promise
        before."""
        came = self._last if self._tops else now
        self._tops, self._when = [], []
        return came

    def when(self, mark: int) -> int:
        """When a mark was reached that the last promise reached first."""
        tops, when = self._moved
        if not len(tops):
            return self._now
        return int(when[min(int(np.searchsorted(tops, mark - self._ahead)), len(when) - 1)])

    def saved(self) -> tuple[Any, ...]:
        """What it takes to go on."""
        return self.mark, self._top, self._last, tuple(self._tops), tuple(self._when)

    def restore(self, saved: tuple[Any, ...]) -> None:
        """Go on from what :meth:`saved` gave."""
        self.mark, self._top, self._last, tops, when = saved
        self._tops, self._when = list(tops), list(when)
