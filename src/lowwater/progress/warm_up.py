"""The slack of a channel that has sent few rows, whose lateness is not known yet.

A share of late rows is known when several of them could have come. Until then the slack is a
multiple of the lateness seen, and at least the time that the last few rows took. This goes on while
the lateness seen is as long as the time since the first rows: later rows may follow.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

START = 16
"""Rows to learn from before the first mark."""
KNOWN = 2.0
"""Lateness is known from as many rows as may have so many late ones among them."""
REACH = 0.05
"""The slack covers the time of as many rows as may have this part of a late one among them, and of
``START`` rows."""
STRETCH = 2.0
"""The slack is this many times the lateness seen."""


class WarmUp:
    """The least slack of a channel that begins; ``missing`` is the allowed share of late rows."""

    __slots__ = ("_first", "_missing", "_reach", "_seen", "over")

    def __init__(self, missing: float):
        self._missing = missing
        self._reach = max(START, REACH / missing)
        self._first: int | None = None  # the newest time when the first rows had come
        self._seen: list[tuple[int, int]] = []  # rows, and the newest time then
        self.over = False

    @property
    def begun(self) -> bool:
        """Whether there were enough rows for a mark."""
        return self.over or (bool(self._seen) and self._seen[-1][0] >= self._reach)

    def slack(self, rows: int, newest: int, longest: int) -> int:
        """The least slack after so many rows; ``longest`` is the lateness seen."""
        if self._first is None:
            self._first = newest
        self._seen.append((rows, newest))
        at = bisect_right(self._seen, rows - self._reach, key=lambda each: each[0]) - 1
        del self._seen[: max(0, at)]
        least = max(newest - self._seen[0][1], int(longest * STRETCH))
        if rows >= KNOWN / self._missing and newest - self._first >= longest:
            self.over, self._seen = True, []
        return least

    def snapshot(self) -> dict[str, Any]:
        """Everything needed to go on elsewhere."""
        seen = [list(each) for each in self._seen]
        return {"first": self._first, "seen": seen, "over": self.over}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        self._first, self.over = saved["first"], saved["over"]
        self._seen = [(rows, newest) for rows, newest in saved["seen"]]
