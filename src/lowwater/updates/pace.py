"""How many rows to take on at once: what one costs, learned from what the last ones took.

In batches the question is how long to work before results are shown and new rows are read. With
``n`` rows waiting that cost ``c`` each, a batch of ``b`` seconds of work and ``o`` seconds of
everything else, a key shows rows that are ``b + o`` old and is updated every ``n c (1 + o / b)``
seconds. Its staleness is about the first and half of the second, which is least at
``b = sqrt(n c o / 2)``.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

FASTER = 8
"""A portion has at most so many times the rows of the largest before it; the first has one row."""
MOST = 1_000_000_000
"""Nanoseconds of work in a batch at most, unless somebody says otherwise."""
ROUNDING = 1e-6
"""A row that fits but for this is taken on: sums of costs are rounded."""
FORGETTING = 0.7
"""How much what was measured counts after another portion."""


class Pace:
    """The cost of a row, and how many fit into a stretch of time."""

    __slots__ = ("_began", "_largest", "_rows", "_time", "_worked", "overhead")

    def __init__(self) -> None:
        self._rows = self._time = 0.0  # of the last portions, older ones counting less
        self._largest = 0
        self.overhead = 0.0
        """Nanoseconds that a batch takes beside the work in it, about; 0 if nobody knows."""
        self._began: int | None = None
        self._worked = 0

    @property
    def cost(self) -> float:
        """Nanoseconds a row, about; 0 before the first."""
        return self._time / self._rows if self._rows else 0.0

    def learn(self, rows: int, nanoseconds: int) -> None:
        """So many rows took so long."""
        self._rows = self._rows * FORGETTING + rows
        self._time = self._time * FORGETTING + nanoseconds
        self._largest = max(self._largest, rows)
        self._worked += nanoseconds

    def fitting(self, nanoseconds: int) -> int:
        """How many rows to take on in this time; one at least."""
        most = self._largest * FASTER
        fits = min(most, int(nanoseconds / self.cost + ROUNDING)) if self.cost > 0 else most
        return max(1, fits)

    def begin(self, now: int) -> None:
        """A batch begins: the time since the last one that was not work is what batches cost."""
        if self._began is not None and self._worked:
            beside = min(max(now - self._began - self._worked, 0), MOST)
            known = FORGETTING if self.overhead else 0.0
            self.overhead = self.overhead * known + beside * (1 - known)
        self._began, self._worked = now, 0

    def best(self, waiting: float) -> int:
        """How long to work in a batch so that what is shown is freshest."""
        if not self.overhead:
            return MOST
        return min(MOST, round(sqrt(waiting * self.cost * self.overhead / 2)))

    def saved(self) -> dict[str, Any]:
        """Return the snapshot."""
        return {name: getattr(self, name) for name in self.__slots__}

    def restore(self, saved: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        for name, value in saved.items():
            setattr(self, name, value)
