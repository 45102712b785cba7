"""One input of a window-oblivious join, measured: how scrambled it is, and what may still come.

By the definition of the scrambling factor ``k``, a row is greater than every row that came more
than ``k`` places before it. So what was the greatest value ``k`` rows ago bounds all rows to come.
``k`` is known, or it is measured: a row *needs* as many places as lie between it and the first row
before that is not less, and those are allowed that all but a small share of recent rows need. What
is measured is not counted in rows, but rows of one value that follow each other are one place.
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
        self._missing, self._known, self._per_second = missing, known, ticks_per_second
        self._seen, self._steady = Records(), Records()
        self._usually = Lateness(missing, MEMORY / missing)
        self._lately = Lateness(missing, LATELY)
        self._rate = Rate(ticks_per_second)
        self._last = 0  # the last place: rows, but where they are measured, those of a new value
        self._value = END_OF_TIME  # that the last row had
        self._chosen = 0  # rows by which the factor in force was chosen
        self._ended = False
        self.rows = 0
        self.scrambling = 0
        """The scrambling factor of all rows so far (Definition 2.2)."""
        self._places = known  # that rows to come may need; None before it is known
        self.bound = BEGINNING
        """No row still to come should be below this."""

    def fresh(self) -> Gauge:
        """A gauge that has measured nothing yet."""
        return Gauge(self._missing, self._known, self._per_second)

    def observe(self, ticks: Ticks, now: int) -> None:
        """Take rows in, in the order in which they came."""
        places = np.arange(self.rows + 1, self.rows + len(ticks) + 1)
        self.rows += len(ticks)
        self._rate.arrived(len(ticks), now, int(ticks.max()))
        top = self._seen.top
        self._seen.extend(ticks, places, now)
        self.scrambling = max(
            self.scrambling, int((places - self._seen.first_at_least(ticks, 0)).max())
        )
        self._seen.thin()
        needed = self._last + 1 - self._steady.first_at_least(ticks, self._last + 1)
        ascending = np.sort(ticks)  # whatever their order was, no more had passed than so
        if self._known is not None:
            self._steady.extend(ascending, places, now)
        else:
            places = self._last + np.cumsum(np.diff(ascending, prepend=self._value) != 0)
            self._steady.extend(_second_greatest(ascending, top), places, now)
        self._last, self._value = int(places[-1]), int(ascending[-1])
        self._steady.thin()
        if self._known is None:
            self._learn(needed)
        if self._places is not None:
            self.bound = max(self.bound, self._passed(self._places))

    def _passed(self, places: int) -> int:
        """What all rows to come are at or above, if they need no more places than this."""
        top = self._steady.top_at(self._last - places)
        return top + 1 if top > BEGINNING else BEGINNING

    @property
    def measures(self) -> bool:
        """Whether its marks are measured, and there is something to go by."""
        return self._known is None and self._places is not None

    @property
    def factor(self) -> int | None:
        """The scrambling factor in force, in rows; None before there is one."""
        if self._known is not None or self._places is None:
            return self._known
        if self.bound == BEGINNING:
            return self.rows
        reached = self._seen.first_at_least(np.array([self.bound]), self.rows)
        return self.rows - int(reached[0])

    def _learn(self, needed: Ticks) -> None:
        bins = bins_of(needed)
        self._usually.add(bins, None, len(needed))
        self._lately.add(bins, None, len(needed))
        if self.rows < START:
            return
        more = self._places is None or int(needed.max()) > self._places
        if more or self.rows - self._chosen >= STEP:
            measured = max(each.covering(self._missing) for each in (self._usually, self._lately))
            unsure = measured * BLOCKS * measured // self._last
            self._places = measured + unsure
            self._chosen = self.rows

    @property
    def top(self) -> int:
        """The greatest value so far; the end of time once there will be no more."""
        return END_OF_TIME if self._ended else self._seen.top

    @property
    def mostly_passed(self) -> int:
        """Few rows still to come should be below this."""
        if self._ended or self._places is None:
            return self.bound
        return max(self.bound, self._passed(self._places // 2))

    @property
    def expected(self) -> float:
        """The share of the rows now coming that should be above the bound."""
        if self._known is not None or self._places is None:
            return 1.0
        return self._usually.share_within(self._places)

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
            "place": (self._last, self._value),
            "chosen": self._chosen,
            "ended": self._ended,
            "rows": self.rows,
            "scrambling": self.scrambling,
            "places": self._places,
            "bound": self.bound,
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        self._seen.restore(saved["seen"])
        self._steady.restore(saved["steady"])
        self._usually.restore(saved["usually"])
        self._lately.restore(saved["lately"])
        self._rate.restore(saved["rate"])
        self._last, self._value = saved["place"]
        self._chosen, self._ended = saved["chosen"], saved["ended"]
        self.rows, self.scrambling = saved["rows"], saved["scrambling"]
        self._places, self.bound = saved["places"], saved["bound"]


def _second_greatest(ticks: Ticks, top: int) -> Ticks:
    """What each row adds to the second greatest value: itself, or the greatest before it."""
    tops = np.empty(len(ticks), dtype=np.int64)
    tops[0], tops[1:] = top, ticks[:-1]
    found: Ticks = np.minimum(ticks, np.maximum.accumulate(tops))
    return found
