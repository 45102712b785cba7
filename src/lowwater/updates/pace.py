"""The pace of a queue and its load, both from the cost of a row in the last portions.

The pace gives the number of rows in a portion and, in batches, the time to work before results are
shown and new rows are read. With ``n`` waiting rows that cost ``c`` each, a batch of ``b`` seconds
of work and ``o`` seconds of everything else, the rows shown of a key are ``b + o`` old and it is
updated every ``n c (1 + o / b)`` seconds. Its staleness is about the first plus half of the second,
which is least at ``b = sqrt(n c o / 2)``.

The load is the work that arrives, as a multiple of the work that can be done. The rate at which
rows arrive is measured with exponential decay. Shedding (the baseline AQ-RLS, UpStream §5.2) drops
rows at random, so that a load of one is left. The random numbers are a function of a counter, so
every run drops the same rows.
"""

from __future__ import annotations

from math import exp, expm1, sqrt
from typing import Any

FASTER = 8
"""A portion has at most this many times the rows of the largest before it; the first has one
row."""
MOST = 1_000_000_000
"""The most nanoseconds of work in a batch without ``budget=``."""
ROUNDING = 1e-6
"""Tolerance, in rows, for rounding errors in sums of costs when the rows that fit are counted."""
FORGETTING = 0.7
"""Weight that a measurement keeps after each later portion."""
RECENT = 20
"""Number of rows over whose work, in time, the rate of arrivals is measured."""
MASK = 2**64 - 1


class Pace:
    """The cost of a row, and the number of rows that fit into a time."""

    __slots__ = ("_began", "_largest", "_rows", "_time", "_worked", "overhead")

    def __init__(self) -> None:
        self._rows = self._time = 0.0  # of the last portions, older ones counting less
        self._largest = 0
        self.overhead = 0.0
        """Approximate nanoseconds that a batch takes beside the work in it; 0 before the second
        batch."""
        self._began: int | None = None
        self._worked = 0

    @property
    def cost(self) -> float:
        """Approximate nanoseconds of work that a row costs; 0 before the first."""
        return self._time / self._rows if self._rows else 0.0

    @property
    def learned(self) -> bool:
        """True after the first portion."""
        return self._rows > 0

    def learn(self, rows: int, nanoseconds: int) -> None:
        """Update the cost of a row by a portion of ``rows`` rows that took ``nanoseconds``."""
        self._rows = self._rows * FORGETTING + rows
        self._time = self._time * FORGETTING + nanoseconds
        self._largest = max(self._largest, rows)
        self._worked += nanoseconds

    def fitting(self, nanoseconds: int) -> int:
        """Return the number of rows that fit into a time, at least one."""
        most = self._largest * FASTER
        fits = min(most, int(nanoseconds / self.cost + ROUNDING)) if self.cost > 0 else most
        return max(1, fits)

    def begin(self, now: int) -> None:
        """Record the start of a batch, and update the overhead by the batch before it."""
        if self._began is not None and self._worked:
            beside = min(max(now - self._began - self._worked, 0), MOST)
            known = FORGETTING if self.overhead else 0.0
            self.overhead = self.overhead * known + beside * (1 - known)
        self._began, self._worked = now, 0

    def best(self, waiting: float) -> int:
        """Return the nanoseconds of work in a batch that make the results freshest, where
        ``waiting`` rows wait."""
        if not self.overhead:
            return MOST
        return min(MOST, round(sqrt(waiting * self.cost * self.overhead / 2)))

    def saved(self) -> dict[str, Any]:
        """Return the snapshot."""
        return {name: getattr(self, name) for name in self.__slots__}

    def restore(self, saved: dict[str, Any]) -> None:
        """Set the state to that of a snapshot."""
        for name, value in saved.items():
            setattr(self, name, value)


def random_share(number: int) -> float:
    """Return a number between 0 and 1 that looks random and follows from ``number`` alone."""
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

    def value(self, now: int) -> float:
        """Return the load at clock time ``now``: the work that arrives, as a multiple of the work
        that can be done."""
        length = max(now - self._first, 1)
        return self._decayed(now) / (self._span * -expm1(-length / self._span)) * self._pace.cost

    def drops_next(self, load: float) -> bool:
        """Return true if the next row or window is dropped, so that a load of one is left."""
        self._decided += 1
        return load > 1 and random_share(self._decided) >= 1 / load

    def saved(self) -> tuple[Any, ...]:
        """Return the snapshot."""
        return self._count, self._first, self._last, self._decided

    def restore(self, saved: tuple[Any, ...]) -> None:
        """Set the state to that of a snapshot."""
        self._count, self._first, self._last, self._decided = saved
