"""A channel whose promise is learned: how late its rows were says how late the next may be.

The lateness of a row is how far it is below the newest time before it in its channel. The slack in
force is one that the rows so far recommend (see ``lateness``), and it is chosen anew at fixed
*numbers of rows of the channel*, never at the ends of chunks: how a stream is cut cannot change a
verdict. A late row is learned from like any other.

How careful a channel is goes by how many late rows it owes (see ``debt``), so that the share of
rows on time comes to the one asked for, over the run; and by how few rows it has sent (see
``warm_up``). Of two slacks the longer one is taken: the one at which waiting costs more than the
late rows it would spare, and the one that leaves as large a share of recent rows late as the debt
allows. The first does not wait for rows that no waiting helps with. The second reaches the share
where the late rows are so much later than most that no price pays for them. Rows that are late by a
mark made by other means, an enabling timestamp for example, count like any. A channel that falls
short all the same says so, and why (see ``shortfall``).

Invariant: the mark never decreases, and no row judged on time is below the mark that held when it
arrived. What is learned of a batch without order does not depend on how it was read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lowwater.progress.channel import Verdict
from lowwater.progress.debt import LEAST, MEMORY, Debt
from lowwater.progress.lateness import Lateness, bins_of, longest_in
from lowwater.progress.leaps import Believed, Leaps, Ticks
from lowwater.progress.shortfall import FAR, Shortfall, Watch
from lowwater.progress.spread import coarsened
from lowwater.progress.warm_up import STRETCH, WarmUp
from lowwater.stream.element import BEGINNING

STEPS = (8, 64)
"""The least and the most rows between two choices of the slack; early on an eighth of all rows."""
ALL = 0.99
"""The share of recent rows beyond which the slack does not matter."""


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
    reason: str | None = None
    """Why it falls short of the target, as in :mod:`~lowwater.progress.shortfall`; None if not."""
    since: int | None = None
    """The newest time when it began to, in ticks."""

    @property
    def achieved(self) -> float:
        """Of all rows so far."""
        return 1 - self.late / self.rows if self.rows else 1.0


def together(parts: Sequence[Completeness]) -> Completeness:
    """How complete several channels of a stream are."""
    rows = sum(each.rows for each in parts)
    slacks = [each.slack for each in parts if each.slack is not None]
    short = min((each for each in parts if each.since is not None), key=_begun, default=None)
    return Completeness(
        rows,
        sum(each.late for each in parts),
        parts[0].target,
        sum(each.rows * each.expected for each in parts) / rows if rows else 1.0,
        sum(each.rows * each.recent for each in parts) / rows if rows else 1.0,
        max(slacks, default=None),
        None if short is None else short.reason,
        None if short is None else short.since,
    )


def _begun(part: Completeness) -> int:
    assert part.since is not None
    return part.since


class LearnedChannel:
    """A channel that derives its mark from measured lateness."""

    __slots__ = (
        "_behind",
        "_bins",
        "_debt",
        "_jump",
        "_late",
        "_lateness",
        "_leaps",
        "_missed",
        "_missing",
        "_own",
        "_rows",
        "_slack",
        "_studied",
        "_top",
        "_warm_up",
        "_watch",
        "floor",
    )

    def __init__(self, completeness: float, jump: int | None):
        self._missing = 1 - completeness
        self._lateness = Lateness(self._missing, MEMORY / self._missing)
        self._jump = jump
        # A leap is confirmed by any row up there: what slack there is now cannot tell.
        self._leaps = None if jump is None else Leaps(jump, jump)
        self._top = BEGINNING  # the newest time believed
        self._own = BEGINNING  # the mark that was learned
        self._slack: int | None = None
        self._studied = 0  # rows the slack was chosen by
        self._bins: Ticks = np.empty(0, dtype=np.int64)  # of the rows since then
        self._missed = 0  # how many of these were late
        self._behind = 0  # how many of all studied were
        self._debt = Debt(self._missing)
        self._warm_up = WarmUp(self._missing)
        self._watch = Watch(self._missing)
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
        if self._slack is not None:
            return self.newest - self._slack
        waiting = longest_in(self._bins.max(initial=0, keepdims=True))
        return self.newest - int(STRETCH * max(self._lateness.longest, int(waiting[0])))

    @property
    def completeness(self) -> Completeness:
        """How complete the channel is."""
        expected = 1.0 if self._slack is None else self._lateness.share_within(self._slack)
        short = self._watch.now
        return Completeness(
            self._rows,
            self._late,
            1 - self._missing,
            expected,
            1 - self._debt.recent,
            self._slack,
            None if short is None else short.reason,
            None if short is None else short.since,
        )

    @property
    def shortfall(self) -> Shortfall | None:
        """Since when and why the channel is less complete than it should be; None if it is not."""
        return self._watch.now

    @property
    def latest_shortfall(self) -> Shortfall | None:
        """The last episode in which it was, over or not."""
        return self._watch.latest

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
            met = np.maximum(held[at:until], self.floor)
            self._missed += int((times[at:until] < met).sum())
            fresh = bins[at:until]
            self._bins = np.concatenate([self._bins, fresh]) if len(self._bins) else fresh
            if len(self._bins) == self._step():
                self._learn(self._bins, None, len(self._bins), self._missed, int(tops[until]))
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

    def _learn(
        self, bins: Ticks, counts: Ticks | None, rows: int, missed: int, newest: int
    ) -> None:
        """Take rows into account, and choose the slack anew."""
        unseen = missed > 0 and self._lateness.is_far(bins, FAR)
        self._lateness.add(bins, counts, rows)
        self._debt.add(rows, missed, self._studied)
        self._studied += rows
        self._behind += missed
        self._choose(newest)
        self._watch.look(
            self._studied, self._behind, self._debt.recent, newest, self._warm_up.over, unseen
        )

    def _choose(self, newest: int) -> None:
        least, warm_up = 0, self._warm_up
        if not warm_up.over:
            longest = self._lateness.covering(LEAST * self._missing)
            least = warm_up.slack(self._studied, newest, longest)
        if warm_up.begun:
            need = self._debt.need()
            share = int(need.beyond * self._lateness.covering(min(ALL, need.share)))
            self._slack = max(self._lateness.slack(need.pressure), share, least)

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
            missed = int(many[all_times < mark].sum())
            bins = bins_of(_lateness(all_times, np.full(len(all_times), before)))
            self._learn(bins, many, rows, missed, before)
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
            "behind": self._behind,
            "debt": self._debt.snapshot(),
            "warm_up": self._warm_up.snapshot(),
            "watch": self._watch.snapshot(),
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
        self._behind = saved["behind"]
        self._debt.restore(saved["debt"])
        self._warm_up.restore(saved["warm_up"])
        self._watch.restore(saved["watch"])
        self._rows, self._late, self.floor = saved["rows"], saved["late"], saved["floor"]
        self._lateness.restore(saved["lateness"])
        if self._leaps is not None:
            self._leaps.restore(saved["suspect"], saved["patience"])


def _lateness(times: Ticks, tops: Ticks) -> Ticks:
    """How far times are below the newest before them; none is, if there was none."""
    return np.maximum(np.where(tops > BEGINNING, tops - times, 0), 0)
