"""What a silence says: ``t + τ - δ`` of ETS §5, or the clock for internal timestamps.

What the contract still allows is allowed after a silence too: ``t - δ`` is no later than the
contract's own mark.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lowwater.stream.duration import SECOND
from lowwater.stream.element import BEGINNING


@dataclass(frozen=True, slots=True)
class Silence:
    """How a stream's silence is turned into a timestamp."""

    rate: int
    """Ticks a second."""
    skew: int
    """The largest skew between two arrivals, in ticks."""
    internal: bool
    """Whether the clock itself stamps rows."""

    def stamp(self, newest: int, settled: int, seen: int | None, now: int) -> int:
        """The timestamp of a channel that was last heard of at ``seen``."""
        if self.internal:
            return now * self.rate // SECOND
        if seen is None or newest == BEGINNING:
            return BEGINNING
        return min(newest - self.skew, settled) + (now - seen) * self.rate // SECOND

    def stamps(
        self,
        newest: NDArray[np.int64],
        settled: NDArray[np.int64],
        seen: NDArray[np.int64],
        now: int,
    ) -> NDArray[np.int64]:
        """The same of many channels; ``seen`` is ``BEGINNING`` for those never heard of."""
        spoken = (seen != BEGINNING) & (newest != BEGINNING)
        seconds, rest = np.divmod(now - np.where(spoken, seen, now), SECOND)
        passed = seconds * self.rate + rest * self.rate // SECOND
        start = np.minimum(newest - self.skew, settled)
        return np.where(spoken, start + passed, BEGINNING)

    def reached(self, newest: int, settled: int, seen: int | None, mark: int) -> int | None:
        """The clock time at which :meth:`stamp` comes to a mark; None if it never does."""
        if self.internal:
            return -(-mark * SECOND // self.rate)
        if seen is None or newest == BEGINNING:
            return None
        return seen + self.until(mark - min(newest - self.skew, settled))

    def until(self, missing: int) -> int:
        """How many nanoseconds it takes to make up for missing ticks."""
        return -(-max(0, missing) * SECOND // self.rate)
