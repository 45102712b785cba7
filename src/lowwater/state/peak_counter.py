"""A counter that keeps its greatest value."""

from __future__ import annotations


class PeakCounter:
    """A number that goes up and down; ``peak`` is the greatest it has been."""

    __slots__ = ("now", "peak")

    def __init__(self, now: int = 0, peak: int = 0):
        self.now, self.peak = now, peak

    def add(self, amount: int) -> None:
        """Add an amount, which may be below 0."""
        self.now += amount
        if self.now > self.peak:  # noqa: PLR1730 (max() costs more, and this runs per element)
            self.peak = self.now

    def saved(self) -> tuple[int, int]:
        """Return the arguments that build an equal counter."""
        return self.now, self.peak
