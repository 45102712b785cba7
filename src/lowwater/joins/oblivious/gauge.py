"""One input of a window-oblivious join, measured: how scrambled it is, and what may still come.

By the definition of the scrambling factor ``k``, a row is greater than every row that came more
than ``k`` places before it. So what was the greatest value ``k`` rows ago bounds all rows to come.
``k`` is known, or it is measured: a row *needs* as many places as lie between it and the first row
before that is not less; the factor in force covers what all but a small share of recent rows need.
Rows that are taken in together are taken to come in ascending order: that is safe whatever their
order was, and they meet the same rows in any. Where the factor is measured, a single row far ahead
of all others moves nothing: what counts is the second greatest value.

Invariant: the bound never goes back; with ``k`` known and true, no row comes below it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lowwater.joins.oblivious.records import Records, Ticks
from lowwater.joins.ordered.strategy import Rate
from lowwater.progress.lateness import Lateness, bins_of
from lowwater.stream.element import BEGINNING, END_OF_TIME

START = 256
"""Rows to measure before anything is concluded."""
BLOCKS = 1
"""A factor measured over few times as many rows as itself is thought larger, by this over these."""
MEMORY = 10.0
"""What usually is: as many rows as may have so many among them that need more."""
LATELY = 2_048.0
"""What is now: the memory of the last rows, by which a factor that rises is noticed at once."""
STEP = 32
"""Rows between two choices of the factor, unless a row needed more."""


class Gauge:
    """Measures one input by the ticks of its rows' join attribute."""

    def __init__(self, missing: float, known: int | None, ticks_per_second: int):
        self._missing, self._known = missing, known
        self._seen, self._steady = Records(), Records()
        self._usually = Lateness(missing, MEMORY / missing)
        self._lately = Lateness(missing, LATELY)
        self._rate = Rate(ticks_per_second)
        self._chosen = 0  # rows by which the factor in force was chosen
        self._ended = False
        self.rows = 0
        self.scrambling = 0
        """The scrambling factor of all rows so far (Definition 2.2)."""
        self.factor: int | None = known
        """The factor in force; None before there is one."""
        self.bound = BEGINNING
        """No row still to come should be below this."""

    def observe(self, ticks: Ticks, now: int) -> None:
        """Take rows in, in the order in which they came."""
        before, first = self.rows, self.rows + 1
        self.rows += len(ticks)
        self._rate.arrived(len(ticks), now, int(ticks.max()))
        top = self._seen.top
        self._seen.extend(ticks, first, now)
        places = np.arange(first, self.rows + 1)
        self.scrambling = max(
            self.scrambling, int((places - self._seen.first_at_least(ticks, 0)).max())
        )
        self._seen.thin()
        needed = before + 1 - self._steady.first_at_least(ticks, before + 1)
        ascending = np.sort(ticks)  # whatever their order was, no more had passed than so
        counted = ascending if self._known is not None else _second_greatest(ascending, top)
        self._steady.extend(counted, first, now)
        self._steady.thin()
        if self._known is None:
            self._learn(needed)
        if self.factor is not None:
            self.bound = max(self.bound, self._passed(self.factor))

    def _passed(self, factor: int) -> int:
        """What all rows to come are at or above, if they are scrambled by no more than this."""
        top = self._steady.top_at(self.rows - factor)
        return top + 1 if top > BEGINNING else BEGINNING

    def _learn(self, needed: Ticks) -> None:
        bins = bins_of(needed)
        self._usually.add(bins, None, len(needed))
        self._lately.add(bins, None, len(needed))
        if self.rows < START:
            return
        more = self.factor is None or int(needed.max()) > self.factor
        if more or self.rows - self._chosen >= STEP:
            measured = max(each.covering(self._missing) for each in (self._usually, self._lately))
            self.factor = measured + measured * BLOCKS * measured // self.rows
            self._chosen = self.rows

    @property
    def top(self) -> int:
        """The greatest value so far; the end of time once there will be no more."""
        return END_OF_TIME if self._ended else self._seen.top

    @property
    def mostly_passed(self) -> int:
        """Few rows still to come should be below this."""
        if self._ended or self.factor is None:
            return self.bound
        return max(self.bound, self._passed(self.factor // 2))

    @property
    def expected(self) -> float:
        """The share of the rows now coming that should be above the bound."""
        if self._known is not None or self.factor is None:
            return 1.0
        return self._usually.share_within(self.factor)

    def rate(self, now: int) -> float | None:
        """Rows a second lately; None if too few came, or no time has passed."""
        return self._rate.value(now, self._seen.top)

    def reached(self, value: int) -> int | None:
        """When a value was reached first; None if it has not been."""
        return self._seen.reached(value)

    def end(self) -> None:
        """No more rows will come."""
        self._ended, self.bound = True, END_OF_TIME

    def snapshot(self) -> dict[str, Any]:
        """Everything needed to go on elsewhere."""
        return {
            "seen": self._seen.snapshot(),
            "steady": self._steady.snapshot(),
            "usually": self._usually.snapshot(),
            "lately": self._lately.snapshot(),
            "rate": self._rate.snapshot(),
            "chosen": self._chosen,
            "ended": self._ended,
            "rows": self.rows,
            "scrambling": self.scrambling,
            "factor": self.factor,
            "bound": self.bound,
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        self._seen.restore(saved["seen"])
        self._steady.restore(saved["steady"])
        self._usually.restore(saved["usually"])
        self._lately.restore(saved["lately"])
        self._rate.restore(saved["rate"])
        self._chosen, self._ended = saved["chosen"], saved["ended"]
        self.rows, self.scrambling = saved["rows"], saved["scrambling"]
        self.factor, self.bound = saved["factor"], saved["bound"]


def _second_greatest(ticks: Ticks, top: int) -> Ticks:
    """What each row adds to the second greatest value: itself, or the greatest before it."""
    tops = np.empty(len(ticks), dtype=np.int64)
    tops[0], tops[1:] = top, ticks[:-1]
    found: Ticks = np.minimum(ticks, np.maximum.accumulate(tops))
    return found
