"""The disorder of one input of a window-oblivious join, measured or known (WO-Join §2.2).

By the definition of the scrambling factor ``k``, a row is greater than every row that came more
than ``k`` positions before it. So the greatest value ``k`` rows ago is a lower bound on all rows to
come. ``k`` is given by the user or measured.

The *displacement* of a row is the number of positions between it and the first row before it that
is not less. The measured ``k`` is the least displacement that all but a small share of recent rows
do not exceed. For measuring, consecutive rows with one value have one position.

The rows of one batch are treated as if they had come in ascending order. This is safe, because they
match the same rows in any order. A single row far ahead of all others does not move a measured
bound, because the bound follows the second greatest value.

Invariant: the bound never goes back; if a given ``k`` is true, no row comes below the bound.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lowwater.joins.ordered.strategy import ArrivalRate
from lowwater.progress.lateness import Lateness, bins_of
from lowwater.stream.element import BEGINNING, END_OF_TIME

Ticks = NDArray[np.int64]
LIMIT = 512
"""Number of maxima above which old ones are dropped."""
FINE = 16
"""Number of old maxima kept for each doubling of their age."""


class RunningMaxima:
    """The positions and times at which the maximum of a stream rose; the first row has position 1.

    Old maxima are dropped so that the distance between those that stay grows with their age,
    because a lookup far back needs less precision.

    Invariant: positions and values both rise, and :meth:`top_at` never exceeds the true maximum.
    """

    __slots__ = ("_at", "_values", "_when")

    def __init__(self) -> None:
        self._at: Ticks = np.empty(0, dtype=np.int64)
        self._values: Ticks = np.empty(0, dtype=np.int64)
        self._when: Ticks = np.empty(0, dtype=np.int64)

    @property
    def top(self) -> int:
        """The greatest value so far."""
        return int(self._values[-1]) if len(self._values) else BEGINNING

    def extend(self, values: Ticks, positions: Ticks, now: int) -> None:
        """Append rows with their positions, which are not below those of earlier rows.

        ``now`` is in clock nanoseconds.
        """
        tops = np.empty(len(values) + 1, dtype=np.int64)
        tops[0], tops[1:] = self.top, values
        np.maximum.accumulate(tops, out=tops)
        rose = np.flatnonzero(tops[1:] > tops[:-1])
        if len(rose):
            self._at = np.concatenate([self._at, positions[rose]])
            self._values = np.concatenate([self._values, values[rose]])
            self._when = np.concatenate([self._when, np.full(len(rose), now, dtype=np.int64)])

    def thin(self) -> None:
        """Drop old maxima so that the distance between them is proportional to their age."""
        if len(self._at) <= LIMIT:
            return
        old = len(self._at) - LIMIT // 4
        ages = self._at[-1] - self._at[:old]
        _, stay = np.unique(-np.floor(np.log2(ages) * FINE), return_index=True)
        stay = np.concatenate([stay, np.arange(old, len(self._at))])
        self._at, self._values = self._at[stay], self._values[stay]
        self._when = self._when[stay]

    def first_at_least(self, values: Ticks, none: int) -> Ticks:
        """Return the position at which the maximum reached each value; ``none`` if it has not."""
        found = np.searchsorted(self._values, values, side="left")
        return np.append(self._at, none)[found]

    def top_at(self, position: int) -> int:
        """Return a value that is at most the maximum of the rows up to a position."""
        at = int(np.searchsorted(self._at, position, side="right"))
        return int(self._values[at - 1]) if at else BEGINNING

    def reached(self, value: int) -> int | None:
        """Return the clock time at which the maximum reached a value; None if it has not."""
        at = int(np.searchsorted(self._values, value, side="left"))
        return int(self._when[at]) if at < len(self._when) else None

    def snapshot(self) -> Any:
        """Return all maxima."""
        return self._at.tolist(), self._values.tolist(), self._when.tolist()

    def restore(self, saved: Any) -> None:
        """Set the state to that of a snapshot."""
        self._at, self._values, self._when = (np.array(each, dtype=np.int64) for each in saved)


START = 256
"""Number of rows observed before an estimate is used."""
UNCERTAINTY = 1
"""An estimate ``k`` from ``n`` rows is raised by ``UNCERTAINTY * k * k / n``, because a few rows
show less disorder than there is."""
SURE = 8
"""An estimate is certain from ``SURE`` times as many rows as its displacement on."""
LONG_MEMORY = 10.0
"""The memory of the long-term histogram, in rows, is this number divided by the allowed share of
rows beyond the estimate."""
SHORT_MEMORY = 2_048.0
"""Memory of the short-term histogram, in rows. It is short, so that a rising factor shows at once.
"""
STEP = 32
"""Number of rows after which the factor is chosen again, unless a row exceeds it before."""


class DisorderEstimate:
    """The disorder of one input, from the ticks of its rows' join attribute.

    ``missing`` is the allowed share of rows beyond the estimate; ``known`` is the scrambling factor
    that the user gave, None to measure it.
    """

    def __init__(self, missing: float, known: int | None, ticks_per_second: int):
        self._missing, self._known, self._per_second = missing, known, ticks_per_second
        self._seen, self._steady = RunningMaxima(), RunningMaxima()
        self._long_term = Lateness(missing, LONG_MEMORY / missing)
        self._short_term = Lateness(missing, SHORT_MEMORY)
        self._rate = ArrivalRate(ticks_per_second)
        self._last = 0  # the last position; if measured, rows of one value have one
        self._value = END_OF_TIME  # of the last row
        self._chosen = 0  # rows seen when the factor in force was chosen
        self._ended = False
        self.rows = 0
        self.scrambling = 0
        """Scrambling factor of all rows so far (Definition 2.2), in positions."""
        self._displacement = known  # the greatest one allowed; None before there is an estimate
        self.bound = BEGINNING
        """Lower bound on the ticks of rows to come."""

    def fresh(self) -> DisorderEstimate:
        """Return an estimate with the same settings and no observations."""
        return DisorderEstimate(self._missing, self._known, self._per_second)

    def observe(self, ticks: Ticks, now: int) -> None:
        """Observe rows in the order in which they came; ``now`` is in clock nanoseconds."""
        positions = np.arange(self.rows + 1, self.rows + len(ticks) + 1)
        self.rows += len(ticks)
        self._rate.arrived(len(ticks), now, int(ticks.max()))
        top = self._seen.top
        self._seen.extend(ticks, positions, now)
        self.scrambling = max(
            self.scrambling, int((positions - self._seen.first_at_least(ticks, 0)).max())
        )
        self._seen.thin()
        needed = self._last + 1 - self._steady.first_at_least(ticks, self._last + 1)
        ascending = np.sort(ticks)  # the order in which the rows of a batch are taken
        if self._known is not None:
            self._steady.extend(ascending, positions, now)
        else:
            positions = self._last + np.cumsum(np.diff(ascending, prepend=self._value) != 0)
            self._steady.extend(_second_greatest(ascending, top), positions, now)
        self._last, self._value = int(positions[-1]), int(ascending[-1])
        self._steady.thin()
        if self._known is None:
            self._learn(needed)
        if self._displacement is not None:
            self.bound = max(self.bound, self._passed(self._displacement))

    def _passed(self, positions: int) -> int:
        """Return the lower bound on rows to come whose displacement is at most ``positions``."""
        top = self._steady.top_at(self._last - positions)
        return top + 1 if top > BEGINNING else BEGINNING

    @property
    def measures(self) -> bool:
        """True if the factor is measured and there is an estimate."""
        return self._known is None and self._displacement is not None

    @property
    def certain(self) -> bool:
        """True if the factor is known, or raised by one part in ``SURE`` at most because few rows
        were seen (``UNCERTAINTY``)."""
        if self._known is not None:
            return True
        return self._displacement is not None and self._last >= SURE * self._displacement

    @property
    def factor(self) -> int | None:
        """The scrambling factor in force, in rows; None before there is an estimate."""
        if self._known is not None or self._displacement is None:
            return self._known
        if self.bound == BEGINNING:
            return self.rows
        reached = self._seen.first_at_least(np.array([self.bound]), self.rows)
        return self.rows - int(reached[0])

    def _learn(self, needed: Ticks) -> None:
        bins = bins_of(needed)
        self._long_term.add(bins, None, len(needed))
        self._short_term.add(bins, None, len(needed))
        if self.rows < START:
            return
        more = self._displacement is None or int(needed.max()) > self._displacement
        if more or self.rows - self._chosen >= STEP:
            measured = max(
                each.covering(self._missing) for each in (self._long_term, self._short_term)
            )
            unsure = measured * UNCERTAINTY * measured // self._last
            self._displacement = measured + unsure
            self._chosen = self.rows

    @property
    def top(self) -> int:
        """The greatest value so far; END_OF_TIME once the input has ended."""
        return END_OF_TIME if self._ended else self._seen.top

    @property
    def mostly_passed(self) -> int:
        """The bound that half the displacement gives: few rows to come are below it."""
        if self._ended or self._displacement is None:
            return self.bound
        return max(self.bound, self._passed(self._displacement // 2))

    @property
    def expected(self) -> float:
        """The share of rows to come that are expected at or above the bound, from 0 to 1."""
        if self._known is not None or self._displacement is None:
            return 1.0
        return self._long_term.share_within(self._displacement)

    def quantiles(self, steps: int) -> tuple[float, ...]:
        """Return the displacements of recent rows at evenly spaced quantiles, as parts of the
        factor in force; evenly spread ones if they are not measured."""
        factor = self.factor
        if not self.measures or not factor:
            return (0.0, 1.0)
        shares = (at / (steps - 1) for at in range(steps))
        found = (self._long_term.covering(1 - share) / factor for share in shares)
        return tuple(min(1.0, each) for each in found)

    def rate(self, now: int) -> float | None:
        """Return recent rows a second; None if too few rows came, or no time has passed."""
        return self._rate.value(now, self._seen.top)

    def reached(self, value: int) -> int | None:
        """Return the clock time, in nanoseconds, of the first row at or above a value; None if no
        row is."""
        return self._seen.reached(value)

    def rows_since(self, value: int) -> int:
        """Return the rows that came from the first one at or above a value on."""
        first = self._seen.first_at_least(np.array([value]), self.rows + 1)
        return self.rows + 1 - int(first[0])

    def end(self) -> None:
        """Record that no more rows will come."""
        self._ended, self.bound = True, END_OF_TIME

    def snapshot(self) -> dict[str, Any]:
        """Return all estimates."""
        return {
            "seen": self._seen.snapshot(),
            "steady": self._steady.snapshot(),
            "long term": self._long_term.snapshot(),
            "short term": self._short_term.snapshot(),
            "rate": self._rate.snapshot(),
            "place": (self._last, self._value),
            "chosen": self._chosen,
            "ended": self._ended,
            "rows": self.rows,
            "scrambling": self.scrambling,
            "places": self._displacement,
            "bound": self.bound,
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Set the state to that of a snapshot."""
        self._seen.restore(saved["seen"])
        self._steady.restore(saved["steady"])
        self._long_term.restore(saved["long term"])
        self._short_term.restore(saved["short term"])
        self._rate.restore(saved["rate"])
        self._last, self._value = saved["place"]
        self._chosen, self._ended = saved["chosen"], saved["ended"]
        self.rows, self.scrambling = saved["rows"], saved["scrambling"]
        self._displacement, self.bound = saved["places"], saved["bound"]


def _second_greatest(ticks: Ticks, top: int) -> Ticks:
    """Return the lesser of each row and the greatest value before it.

    ``top`` is the greatest value before the first row. Over all rows of an input, the greatest of
    these results is the second greatest value.
    """
    tops = np.empty(len(ticks), dtype=np.int64)
    tops[0], tops[1:] = top, ticks[:-1]
    found: Ticks = np.minimum(ticks, np.maximum.accumulate(tops))
    return found
