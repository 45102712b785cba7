"""How many rows to take on at once: what one costs, learned from what the last ones took.

In batches the question is how long to work before results are shown and new rows are read. With
``n`` rows waiting that cost ``c`` each, a batch of ``b`` seconds of work and ``o`` seconds of
everything else, a key shows rows that are ``b + o`` old and is updated every ``n c (1 + o / b)``
seconds. Its staleness is about the first and half of the second, which is least at
``b = sqrt(n c o / 2)``.
"""

from __future__ import annotations

from math import sqrt

FIRST = 32
"""Rows taken on while nobody knows what one costs."""
FASTER = 8
"""A portion has at most so many times the rows of the one before."""
MOST = 1_000_000_000
"""Nanoseconds of work in a batch at most, unless somebody says otherwise."""
LEARNING = 0.3
"""How much the last portion counts in what a row is believed to cost."""


class Pace:
    """The cost of a row, and how many fit into a stretch of time."""

    __slots__ = ("_began", "_last", "_worked", "cost", "overhead")

    def __init__(self) -> None:
        self.cost = 0.0
        """Nanoseconds a row, about; 0 before the first."""
        self.overhead = 0.0
        """Nanoseconds that a batch takes beside the work in it, about; 0 if nobody knows."""
        self._last = 0
        self._began: int | None = None
        self._worked = 0

    def learn(self, rows: int, nanoseconds: int) -> None:
        """So many rows took so long."""
        if rows:
            each = nanoseconds / rows
            self.cost += (each - self.cost) * (LEARNING if self._last else 1.0)
            self._last = rows
        self._worked += nanoseconds

    def fitting(self, nanoseconds: int) -> int:
        """How many rows to take on in this time; one at least."""
        if not self._last:
            return FIRST
        fits = int(nanoseconds / self.cost) if self.cost > 0 else self._last * FASTER
        return max(1, min(fits, max(FIRST, self._last * FASTER)))

    def begin(self, now: int) -> None:
        """A batch begins: the time since the last one that was not work is what batches cost."""
        if self._began is not None and self._last:
            beside = min(max(now - self._began - self._worked, 0), MOST)
            self.overhead += (beside - self.overhead) * (LEARNING if self.overhead else 1.0)
        self._began, self._worked = now, 0

    def best(self, waiting: int) -> int:
        """How long to work in a batch so that what is shown is freshest."""
        if not self.overhead:
            return MOST
        return min(MOST, round(sqrt(waiting * self.cost * self.overhead / 2)))

    def saved(self) -> tuple[float, float, int, int | None, int]:
        """What it takes to go on."""
        return self.cost, self.overhead, self._last, self._began, self._worked

    def restore(self, saved: tuple[float, float, int, int | None, int]) -> None:
        """Go on from what :meth:`saved` gave."""
        self.cost, self.overhead, self._last, self._began, self._worked = saved
