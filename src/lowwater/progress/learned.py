"""A channel whose promise is learned: how late its rows were says how late the next may be.

The lateness of a row is how far it is below the newest time before it in its channel. The slack in
force is one that the rows so far recommend (see ``lateness``), and it is chosen anew at fixed
*numbers of rows of the channel*, never at the ends of chunks: how a stream is cut cannot change a
verdict. A late row is learned from like any other.

How careful a channel is goes by the share of recent rows that were late, and by its *debt*: rows
that were late, less those that were allowed to be. So the share of rows on time comes to the one
wanted, over the run, whatever the disorder does. Credit is not saved up without end, or a quiet
time would pay for a careless one.

Invariant: the mark never decreases, and no row judged on time is below the mark that held when it
arrived. What is learned of a batch without order does not depend on how it was read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lowwater.progress.channel import Verdict
from lowwater.progress.lateness import Lateness, bins_of
from lowwater.progress.leaps import Believed, Leaps, Ticks
from lowwater.progress.spread import coarsened
from lowwater.stream.element import BEGINNING

START = 16
"""Rows to learn from before the first mark."""
STEPS = (8, 64)
"""The least and the most rows between two choices of the slack; early on an eighth of all rows."""
MEMORY = 30.0
"""The memory of a channel: as many rows as may have so many late ones among them."""
FORBEARANCE = 20.0
"""So many late rows too many (or as many as are allowed between two choices of the slack) are worth
one more ``e`` of pressure; so is a recent share of late rows that is twice the allowed one."""
CREDIT, STRAIN = 3.0, 8.0
"""The most that credit takes away from the pressure, and the most there is, as powers of ``e``."""


@dataclass(frozen=True, slots=True)
class Completeness:
    """How complete a channel is, expects to be and was meant to be; shares of its rows."""

    rows: int
    late: int
    target: float
    expected: float
    """Of the rows now coming, by what is known of recent ones."""
    recent: float
    """Of the rows that the channel remembers."""
    slack: int | None
    """In ticks; None before the first mark."""

    @property
    def achieved(self) -> float:
        """Of all rows so far."""
        return 1 - self.late / self.rows if self.rows else 1.0


def together(parts: Sequence[Completeness]) -> Completeness:
    """How complete several channels of a stream are."""
    rows = sum(each.rows for each in parts)
    slacks = [each.slack for each in parts if each.slack is not None]
    return Completeness(
        rows,
        sum(each.late for each in parts),
        parts[0].target,
        sum(each.rows * each.expected for each in parts) / rows if rows else 1.0,
        sum(each.rows * each.recent for each in parts) / rows if rows else 1.0,
        max(slacks, default=None),
    )


class LearnedChannel:
    """A channel that derives its mark from measured lateness."""

    __slots__ = (
        "_bins",
        "_debt",
        "_jump",
        "_late",
        "_lateness",
        "_leaps",
        "_memory",
        "_missed",
        "_missing",
        "_own",
        "_recent",
        "_rows",
        "_slack",
        "_studied",
        "_top",
        "floor",
    )

    def __init__(self, completeness: float, jump: int | None):
        self._missing = 1 - completeness
        self._memory = MEMORY / self._missing
        self._lateness = Lateness(self._missing, self._memory)
        self._jump = jump
        # A leap is confirmed by any row up there: what slack there is now cannot tell.
        self._leaps = None if jump is None else Leaps(jump, jump)
        self._top = BEGINNING  # the newest time believed
        self._own = BEGINNING  # the mark that was learned
        self._slack: int | None = None
        self._studied = 0  # rows the slack was chosen by
        self._bins: Ticks = np.empty(0, dtype=np.int64)  # of the rows since then
        self._missed = 0  # how many of these were late
        self._debt = 0.0
        self._recent = 0.0  # the share of late rows, of those remembered
        self._rows = self._late = 0
        self.floor = BEGINNING

    @property
    def mark(self) -> int:
        """No row still to come should be below this."""
        return max(self.floor, self._own)

    @property
    def own(self) -> int:
        """The mark that follows from its rows alone."""
        return self._own

    @property
    def newest(self) -> int:
        """The newest time believed; of a channel that has sent one row, that row's."""
        suspect = self._leaps.suspect if self._leaps is not None else None
        return suspect if self._top == BEGINNING and suspect is not None else self._top

    @property
    def settled(self) -> int:
        """What would be promised of the newest time, by all that is known."""
        return self.newest - (self._lateness.longest if self._slack is None else self._slack)

    @property
    def completeness(self) -> Completeness:
        """How complete the channel is."""
        expected = 1.0 if self._slack is None else self._lateness.share_within(self._slack)
        return Completeness(
            self._rows,
            self._late,
            1 - self._missing,
            expected,
            1 - self._recent,
            self._slack,
        )

    # ---- rows in order ---------------------------------------------------------------------

    def observe(self, times: Ticks, marks: Ticks) -> Verdict:
        """Judge rows in arrival order, move the mark, and learn."""
        found = self._believe(times)
        tops = np.empty(len(times) + 1, dtype=np.int64)
        tops[0], tops[1:] = self._top, found.times
        np.maximum.accumulate(tops, out=tops)
        bins = bins_of(_lateness(times, tops[:-1]))
        held = np.empty(len(times) + 1, dtype=np.int64)
        held[0] = self._own
        at = 0
        while at < len(times):
            until = min(len(times), at + self._step() - len(self._bins))
            part = slice(at + 1, until + 1)
            held[part] = held[at]
            if self._slack is not None:
                np.maximum(tops[part] - self._slack, held[at], out=held[part])
            self._missed += int((times[at:until] < held[at:until]).sum())
            fresh = bins[at:until]
            self._bins = np.concatenate([self._bins, fresh]) if len(self._bins) else fresh
            if len(self._bins) == self._step():
                self._learn(self._bins, None, len(self._bins), self._missed)
                self._bins, self._missed = self._bins[:0], 0
            at = until
        self._top, self._own = int(tops[-1]), int(held[-1])
        if self.floor > BEGINNING:
            held = np.maximum(held, self.floor)
        self._rows += len(times)
        self._late += int((times < held[:-1]).sum())
        after = held[1:].copy()
        if found.in_doubt is not None:
            after[found.in_doubt] = self.floor
        return Verdict(held[:-1], after, found.leaps, found.strays)

    def _believe(self, times: Ticks) -> Believed:
        if self._leaps is None:
            return Believed(times)
        found = self._leaps.believe(times, self._top)
        if found.earlier is not None:
            self._top = found.earlier
        return found

    def _step(self) -> int:
        """How many rows are learned from at once, by how many there were."""
        least, most = STEPS
        return min(most, max(least, self._studied // 8))

    def _learn(self, bins: Ticks, counts: Ticks | None, rows: int, missed: int) -> None:
        """Take rows into account, and choose the slack anew."""
        self._lateness.add(bins, counts, rows)
        self._studied += rows
        forbearance = max(FORBEARANCE, self._missing * rows)
        debt = self._debt + missed - self._missing * rows
        self._debt = max(debt, -CREDIT * forbearance)
        fading = float(np.exp(-rows / self._memory))
        self._recent = self._recent * fading + missed / rows * (1 - fading)
        if self._studied >= START:
            strain = self._debt / forbearance + self._recent / self._missing - 1
            self._slack = self._lateness.slack(float(np.exp(min(strain, STRAIN))))

    # ---- rows without order ----------------------------------------------------------------

    def absorb(self, times: Ticks, counts: Ticks) -> Verdict:
        """Take in the digest of a batch: times to believe, and below them all times, counted.

        The lateness of its rows is measured from the newest time before the batch. Of the first
        batch nothing can be learned.
        """
        plain = counts == BEGINNING
        all_times, many = coarsened(times[~plain], counts[~plain], self._jump)
        rows = int(many.sum())
        mark, before = self.mark, self._top
        if before > BEGINNING and rows:
            missed = int(many[all_times < self._own].sum())
            bins = bins_of(_lateness(all_times, np.full(len(all_times), before)))
            self._learn(bins, many, rows, missed)
        found = self._believe(times[plain])
        self._top = max(self._top, int(found.times.max(initial=BEGINNING)))
        if self._slack is not None:
            self._own = max(self._own, self._top - self._slack)
        self._rows += rows
        self._late += int(many[all_times < mark].sum())
        marks = np.full(len(times), mark, dtype=np.int64)
        return Verdict(marks, np.full(len(times), self.mark), found.leaps, found.strays)

    # ---- saving ----------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        """Everything needed to go on elsewhere."""
        return {
            "top": self._top,
            "own": self._own,
            "slack": self._slack,
            "studied": self._studied,
            "bins": self._bins.tolist(),
            "missed": self._missed,
            "debt": self._debt,
            "recent": self._recent,
            "rows": self._rows,
            "late": self._late,
            "floor": self.floor,
            "lateness": self._lateness.snapshot(),
            **({} if self._leaps is None else self._leaps.snapshot()),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        self._top, self._own, self._slack = saved["top"], saved["own"], saved["slack"]
        self._studied, self._missed = saved["studied"], saved["missed"]
        self._bins = np.array(saved["bins"], dtype=np.int64)
        self._debt, self._recent = saved["debt"], saved["recent"]
        self._rows, self._late, self.floor = saved["rows"], saved["late"], saved["floor"]
        self._lateness.restore(saved["lateness"])
        if self._leaps is not None:
            self._leaps.restore(saved["suspect"], saved["patience"])


def _lateness(times: Ticks, tops: Ticks) -> Ticks:
    """How far times are below the newest before them; none is, if there was none."""
    return np.maximum(np.where(tops > BEGINNING, tops - times, 0), 0)
