"""The caution with which a slack is learned: after late rows, and while few rows have come.

The *debt* of a channel is its late rows less those it was allowed. It determines the pressure on
the price of a late row (see :mod:`~lowwater.progress.lateness`), and the share of recent rows that
may be later than the slack. Without a debt that share is the allowed one; it shrinks as the debt
grows, and grows while there is credit. So the share of late rows over a whole run comes to the
allowed one, whatever the disorder was, once rows are no later than recent ones.

An old debt alone makes the share no smaller than ``LEAST`` of the allowed one, because a slack that
covers all rows would reduce the debt little sooner and cost much delay. Many late rows *now* may
make it smaller than that. If they are several times too many, or have been too many for a while and
the debt is large, lateness is growing, and the slack is longer than any that recent rows recommend.

A channel that has sent few rows is in its *warm-up*: its share of late rows is not known until
several of them could have come. Until then the slack is a multiple of the lateness seen, and at
least the time that the last few rows took. The warm-up goes on while the lateness seen is as long
as the time since the first rows, because later rows may follow.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from math import exp
from typing import Any

MEMORY = 30.0
"""Length of the long memory: the number of rows among which ``MEMORY`` late ones are allowed."""
LATELY = 5.0
"""Length of the short memory, which shows sudden disorder: the number of rows among which
``LATELY`` late ones are allowed."""
FORBEARANCE = 20.0
"""Late rows above the allowed number that raise the pressure by a factor of ``e``. If more rows
than this may be late between two choices of the slack, their number is used instead. A recent share
of late rows that is twice the allowed one raises the pressure by the same factor."""
EARLY = (2.0, 0.001)
"""The number in place of ``FORBEARANCE`` while few rows have come: the first value, or the second
times the number of rows if that is more."""
CREDIT, STRAIN = 3.0, 8.0
"""Exponents of ``e``: credit divides the pressure by at most ``e ** CREDIT``, and the greatest
pressure is ``e ** STRAIN``."""
LEAST = 0.5
"""The least part of the allowed share of late rows that an old debt alone leaves."""
SUDDEN = 2.0
"""Disorder is sudden if, over the short memory, more than ``1 + SUDDEN`` times the allowed share of
rows were late."""
BEYOND, FURTHEST = 0.25, 4.0
"""Too large a share of late rows lengthens the slack: by the part ``BEYOND`` for each multiple of
the allowed share, up to ``FURTHEST`` multiples."""

START = 16
"""Least number of rows before the first mark."""
KNOWN = 2.0
"""The warm-up lasts at least for the number of rows among which this many late ones are allowed."""
REACH = 0.05
"""During warm-up the slack covers the time in which the last rows came: the rows among which
``REACH`` late ones are allowed, and at least ``START`` rows."""
STRETCH = 2.0
"""During warm-up the slack is at least this multiple of the lateness seen."""


@dataclass(frozen=True, slots=True)
class Caution:
    """The caution that the next slack needs."""

    pressure: float
    """Factor on the price of a late row."""
    share: float
    """Share of recent rows that may be later than the slack."""
    factor: float
    """Number by which to multiply the slack that leaves this share."""


class Debt:
    """The late rows of a channel less those it was allowed.

    ``missing`` is the allowed share of late rows.
    """

    __slots__ = ("_lately", "_missing", "_owed", "_recent", "_unit")

    def __init__(self, missing: float):
        self._missing = missing
        self._owed = 0.0  # late rows, less those allowed
        self._unit = EARLY[0]  # late rows that raise the pressure by a factor of e
        self._recent = 0.0  # share of late rows, over MEMORY
        self._lately = 0.0  # share of late rows, over LATELY

    @property
    def recent(self) -> float:
        """Share of late rows over the long memory."""
        return self._recent

    def add(self, rows: int, late: int, before: int) -> None:
        """Count ``rows`` rows, ``late`` of them late; ``before`` is the number of earlier rows."""
        fewest, part = EARLY
        unit = min(FORBEARANCE, max(fewest, part * (before + rows)))
        self._unit = max(unit, self._missing * rows)
        owed = self._owed + late - self._missing * rows
        self._owed = max(owed, -CREDIT * self._unit)
        self._recent = self._faded(self._recent, rows, late, MEMORY)
        self._lately = self._faded(self._lately, rows, late, LATELY)

    def _faded(self, share: float, rows: int, late: int, memory: float) -> float:
        fading = exp(-rows * self._missing / memory)
        return share * fading + late / rows * (1 - fading)

    def caution(self) -> Caution:
        """Return the caution that the next slack needs."""
        owed = self._owed / self._unit
        excess = self._recent / self._missing - 1
        lately = self._lately / self._missing
        sudden = lately - 1 - SUDDEN
        share = max(LEAST, exp(-owed)) * exp(-max(0.0, excess, sudden))
        return Caution(
            exp(min(owed + excess, STRAIN)),
            self._missing * share,
            1 + BEYOND * min(FURTHEST, max(0.0, sudden, min(excess, owed, lately))),
        )

    def snapshot(self) -> dict[str, Any]:
        """Return the state that :meth:`restore` needs."""
        return {
            "owed": self._owed,
            "unit": self._unit,
            "recent": self._recent,
            "lately": self._lately,
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Set the state to that of a snapshot."""
        self._owed, self._unit = saved["owed"], saved["unit"]
        self._recent, self._lately = saved["recent"], saved["lately"]


class WarmUp:
    """The least slack of a channel that has sent few rows.

    ``missing`` is the allowed share of late rows.
    """

    __slots__ = ("_first", "_missing", "_reach", "_seen", "over")

    def __init__(self, missing: float):
        self._missing = missing
        self._reach = max(START, REACH / missing)
        self._first: int | None = None  # the newest time after the first rows
        self._seen: list[tuple[int, int]] = []  # number of rows, and the newest time then
        self.over = False
        """True once the lateness of the channel is known."""

    @property
    def has_mark(self) -> bool:
        """True if enough rows have come for a mark."""
        return self.over or (bool(self._seen) and self._seen[-1][0] >= self._reach)

    def slack(self, rows: int, newest: int, longest: int) -> int:
        """Return the least slack after ``rows`` rows, in ticks.

        ``newest`` is the newest time; ``longest`` is the lateness seen, in ticks.
        """
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
        """Return the state that :meth:`restore` needs."""
        seen = [list(each) for each in self._seen]
        return {"first": self._first, "seen": seen, "over": self.over}

    def restore(self, saved: dict[str, Any]) -> None:
        """Set the state to that of a snapshot."""
        self._first, self.over = saved["first"], saved["over"]
        self._seen = [(rows, newest) for rows, newest in saved["seen"]]
