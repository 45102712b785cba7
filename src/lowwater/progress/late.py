"""The account of rows that were not let in: how many, which channel, why, how late."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

LATE = "late"
NO_TIME = "no time"
BAD_TIME = "time out of range"
NO_CHANNEL = "no channel"
AHEAD = "dated far ahead"


@dataclass(frozen=True, slots=True)
class LateRows:
    """One line of the account."""

    stream: str
    channel: Hashable
    reason: str
    rows: int
    longest_seconds: float
    mean_seconds: float


class LateAccount:
    """Counts refused rows by channel and reason."""

    def __init__(self, stream: str):
        self._stream = stream
        self._lines: dict[tuple[Hashable, str], tuple[int, float, float]] = {}
        self.strays = 0
        self.backward_marks = 0

    def add(self, channel: Hashable, reason: str, rows: int, longest: float, total: float) -> None:
        """Count rows of one channel refused for one reason; lengths are seconds."""
        count, most, sums = self._lines.get((channel, reason), (0, 0.0, 0.0))
        self._lines[channel, reason] = (count + rows, max(most, longest), sums + total)

    @property
    def rows(self) -> int:
        """All refused rows."""
        return sum(count for count, _, _ in list(self._lines.values()))

    def lines(self) -> list[LateRows]:
        """The account, largest first."""
        lines = [
            LateRows(self._stream, channel, reason, count, most, total / count)
            for (channel, reason), (count, most, total) in list(self._lines.items())
        ]
        return sorted(lines, key=lambda line: -line.rows)
