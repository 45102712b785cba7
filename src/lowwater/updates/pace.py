"""The number of rows in a portion, from the cost of a row in the last portions.

In batches the pace also gives the time to work before results are shown and new rows are read. With
``n`` waiting rows that cost ``c`` each, a batch of ``b`` seconds of work and ``o`` seconds of
everything else, the rows shown of a key are ``b + o`` old and it is updated every ``n c (1 + o /
b)`` seconds. Its staleness is about the first plus half of the second, which is least at ``b =
sqrt(n c o / 2)``.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

FASTER = 8
"""A portion has at most this many times the rows of the largest before it; the first has one
row."""
MOST = 1_000_000_000
"""Nanoseconds of work in a batch at most, without ``budget=``."""
ROUNDING = 1e-6
"""Tolerance, in rows, for a last row that fits only almost: sums of costs are rounded."""
FORGETTING = 0.7
"""Weight that a measurement keeps after each later portion."""


class Pace:
    """The cost of a row, and the number of rows that fit into a time."""

    __slots__ = ("_began", "_largest", "_rows", "_time", "_worked", "overhead")

    def __init__(self) -> None:
        self._rows = self._time = 0.0  # of the last portions, older ones counting less
        self._largest = 0
        self.overhead = 0.0
        """Nanoseconds that a batch takes beside the work in it, about; 0 before the second
        batch."""
        self._began: int | None = None
        self._worked = 0

    @property
    def cost(self) -> float:
        """Nanoseconds of work that a row costs, about; 0 before the first."""
        return self._time / self._rows if self._rows else 0.0

    def learn(self, rows: int, nanoseconds: int) -> None:
        """Learn the cost of a row from a portion that took some time."""
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
        """Note the start of a batch; learn the overhead of the one before it."""
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
        """Continue from a snapshot."""
        for name, value in saved.items():
            setattr(self, name, value)
