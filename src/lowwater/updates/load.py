"""The load of a queue: the work that arrives, as a multiple of the work that can be done.

Rows arrive at a rate that is measured with exponential decay. Shedding (the baseline AQ-RLS,
UpStream §5.2) drops rows at random, so that a load of one is left. The random numbers are a
function of a counter, so every run drops the same rows.
"""

from __future__ import annotations

from math import exp, expm1
from typing import Any

from lowwater.updates.pace import Pace

RECENT = 20
"""Number of rows over whose work, in time, the rate of arrivals is measured."""
MASK = 2**64 - 1


def random_share(number: int) -> float:
    """Return a number between 0 and 1 that depends on the bits of another only."""
    mixed = (number * 0x9E3779B97F4A7C15 + 0x632BE59BD9B4E019) & MASK
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & MASK
    return ((mixed ^ (mixed >> 31)) >> 11) / 2**53


class Load:
    """The load of a queue, from the arrivals and the cost of a row in ``pace``.

    Each row that arrives is worked on ``rows`` times. The rate is measured over ``least``
    nanoseconds or more.
    """

    __slots__ = ("_count", "_decided", "_first", "_last", "_least", "_pace", "_rows")

    def __init__(self, pace: Pace, rows: int = 1, least: int = 0):
        self._pace, self._rows, self._least = pace, rows, float(least)
        self._count = 0.0  # recent rows, older ones counting less
        self._first = 0
        self._last: int | None = None
        self._decided = 0

    @property
    def _span(self) -> float:
        """The time over which the rate is measured, in nanoseconds."""
        return max(RECENT * self._rows * self._pace.cost, self._least, 1.0)

    def arrived(self, rows: int, now: int) -> None:
        """Count rows that arrived; the first do not count, as their period is unknown."""
        if self._last is None:
            self._first = self._last = now
            return
        self._count = self._decayed(now) + rows
        self._last = max(now, self._last)

    def _decayed(self, now: int) -> float:
        since = now if self._last is None else self._last
        return self._count * exp(min(0.0, since - now) / self._span)

    def now(self, now: int) -> float:
        """Return the work that arrives, as a multiple of the work that can be done."""
        length = max(now - self._first, 1)
        return self._decayed(now) / (self._span * -expm1(-length / self._span)) * self._pace.cost

    def drops_next(self, load: float) -> bool:
        """Return true if the next row or window is to be dropped, at a load."""
        self._decided += 1
        return load > 1 and random_share(self._decided) >= 1 / load

    def saved(self) -> tuple[Any, ...]:
        """Return the snapshot."""
        return self._count, self._first, self._last, self._decided

    def restore(self, saved: tuple[Any, ...]) -> None:
        """Continue from a snapshot."""
        self._count, self._first, self._last, self._decided = saved
