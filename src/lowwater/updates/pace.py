"""How many rows to take on at once: what one costs, learned from what the last ones took."""

from __future__ import annotations

FIRST = 32
"""Rows taken on while nobody knows what one costs."""
FASTER = 8
"""A portion has at most so many times the rows of the one before."""
LEARNING = 0.3
"""How much the last portion counts in what a row is believed to cost."""


class Pace:
    """The cost of a row, and how many fit into a stretch of time."""

    __slots__ = ("_last", "cost")

    def __init__(self) -> None:
        self.cost = 0.0
        """Nanoseconds a row, about; 0 before the first."""
        self._last = 0

    def learn(self, rows: int, nanoseconds: int) -> None:
        """So many rows took so long."""
        if rows:
            each = nanoseconds / rows
            self.cost += (each - self.cost) * (LEARNING if self._last else 1.0)
            self._last = rows

    def fitting(self, nanoseconds: int) -> int:
        """How many rows to take on in this time; one at least."""
        if not self._last:
            return FIRST
        fits = int(nanoseconds / self.cost) if self.cost > 0 else self._last * FASTER
        return max(1, min(fits, max(FIRST, self._last * FASTER)))

    def saved(self) -> tuple[float, int]:
        """What it takes to go on."""
        return self.cost, self._last

    def restore(self, saved: tuple[float, int]) -> None:
        """Go on from what :meth:`saved` gave."""
        self.cost, self._last = saved
