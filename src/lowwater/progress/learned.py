"""A channel whose slack is learned from the lateness of its rows.

The slack in force is one that the rows so far recommend (:mod:`~lowwater.progress.lateness`). It is
chosen again at fixed *numbers of rows of the channel*, never at the ends of chunks, so the cut of a
stream into chunks changes no verdict. Late rows are learned from like all others.

The caution of a channel follows from its late rows so far and from the number of its rows
(:mod:`~lowwater.progress.slack`), so that over the run the share of rows on time comes to the
target. The slack is the longer of two lengths of time. With the first one, the cost of waiting and
of late rows together is least; it does not cover the few rows that are extremely late. The second
one leaves as large a share of recent rows late as the debt allows; so the target is reached even if
the late rows are much later than most. Rows that are late by a floor, such as an enabling
timestamp, count like any late row. A channel that falls short all the same has a shortfall with its
reason (:mod:`~lowwater.progress.completeness`).

Invariant: the mark never decreases, and no row judged on time is below the mark that held when it
arrived. The result of a batch without order does not depend on how the batch was read.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lowwater.progress.channel import Channel, ConfirmedTimes, LeapFilter, Ticks, Verdict
from lowwater.progress.completeness import UNSEEN_FACTOR, Completeness, Shortfall, ShortfallWatch
from lowwater.progress.lateness import Lateness, bins_of, longest_in, merge_counts
from lowwater.progress.slack import LEAST, MEMORY, STRETCH, Debt, WarmUp
from lowwater.stream.element import BEGINNING

STEPS = (8, 64)
"""The fewest and the most rows between two choices of the slack, which otherwise come after an
eighth of all rows."""
MOST_LATE = 0.99
"""The greatest share of recent rows that the slack may leave late."""


class LearnedChannel(Channel):
    """A channel that derives its mark from measured lateness.

    ``completeness`` is the share of rows that must be on time; ``jump`` is the least distance of a
    leap in ticks, or None to look for none.
    """

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
    )

    def __init__(self, completeness: float, jump: int | None):
        self._missing = 1 - completeness
        self._lateness = Lateness(self._missing, MEMORY / self._missing)
        self._jump = jump
        # A later row at most ``jump`` below a leap confirms it; the slack, which changes, does not
        # bound how far below it may be.
        self._leaps = None if jump is None else LeapFilter(jump, jump)
        self._top = BEGINNING  # the newest confirmed time
        self._own = BEGINNING  # the mark that was learned
        self._slack: int | None = None
        self._studied = 0  # rows that the slack was chosen by
        self._bins: Ticks = np.empty(0, dtype=np.int64)  # of the rows since then
        self._missed = 0  # late ones among these
        self._behind = 0  # late ones among all studied rows
        self._debt = Debt(self._missing)
        self._warm_up = WarmUp(self._missing)
        self._watch = ShortfallWatch(self._missing)
        self._rows = self._late = 0
        self.floor = BEGINNING

    @property
    def row_mark(self) -> int:
        """The mark that follows from the rows alone."""
        return self._own

    @property
    def newest(self) -> int:
        """The newest confirmed time; of a channel that has sent one row, that row's time."""
        suspect = self._leaps.suspect if self._leaps is not None else None
        return suspect if self._top == BEGINNING and suspect is not None else self._top

    @property
    def contract_mark(self) -> int:
        """The newest time less the slack; before there is one, less a multiple of the lateness."""
        if self._slack is not None:
            return self.newest - self._slack
        waiting = longest_in(self._bins.max(initial=0, keepdims=True))
        return self.newest - int(STRETCH * max(self._lateness.longest, int(waiting[0])))

    @property
    def completeness(self) -> Completeness:
        """The completeness of the channel."""
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
        """The present episode below the target completeness; None if there is none."""
        return self._watch.now

    @property
    def latest_shortfall(self) -> Shortfall | None:
        """The latest episode below the target, ended or not; None if there was none."""
        return self._watch.latest

    # ---- rows in order ---------------------------------------------------------------------

    def observe(self, times: Ticks, marks: Ticks) -> Verdict:
        """Judge rows in arrival order, move the mark, and learn; ``marks`` is not used."""
        found = self._confirm(times)
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
            before = np.maximum(held[at:until], self.floor)
            self._missed += int((times[at:until] < before).sum())
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

    def _confirm(self, times: Ticks) -> ConfirmedTimes:
        if self._leaps is None:
            return ConfirmedTimes(times)
        found = self._leaps.confirm(times, self._top)
        if found.earlier is not None:
            self._top = found.earlier
        return found

    def _step(self) -> int:
        """Return the number of rows between two choices of the slack."""
        least, most = STEPS
        return min(most, max(least, self._studied // 8))

    def _learn(
        self, bins: Ticks, counts: Ticks | None, rows: int, missed: int, newest: int
    ) -> None:
        """Count ``rows`` rows, ``missed`` of them late, and choose the slack again."""
        unseen = missed > 0 and self._lateness.is_far(bins, UNSEEN_FACTOR)
        self._lateness.add(bins, counts, rows)
        self._debt.add(rows, missed, self._studied)
        self._studied += rows
        self._behind += missed
        self._choose(newest)
        self._watch.update(
            rows=self._studied,
            late=self._behind,
            recent=self._debt.recent,
            newest=newest,
            known=self._warm_up.over,
            unseen=unseen,
        )

    def _choose(self, newest: int) -> None:
        least, warm_up = 0, self._warm_up
        if not warm_up.over:
            longest = self._lateness.covering(LEAST * self._missing)
            least = warm_up.slack(self._studied, newest, longest)
        if warm_up.has_mark:
            caution = self._debt.caution()
            share = int(caution.factor * self._lateness.covering(min(MOST_LATE, caution.share)))
            self._slack = max(self._lateness.slack(caution.pressure), share, least)

    # ---- rows without order ----------------------------------------------------------------

    def absorb(self, times: Ticks, counts: Ticks) -> Verdict:
        """Take in the digest of a batch.

        An entry whose count is ``BEGINNING`` is a time that may move the mark; the others are all
        times of the batch, coarsely, with the number of rows that have them. Lateness is measured
        from the newest time before the batch. Nothing can be learned from the first batch.
        """
        plain = counts == BEGINNING
        all_times, many = merge_counts(times[~plain], counts[~plain], self._jump)
        rows = int(many.sum())
        mark, before = self.mark, self._top
        if before > BEGINNING and rows:
            missed = int(many[all_times < mark].sum())
            bins = bins_of(_lateness(all_times, np.full(len(all_times), before)))
            self._learn(bins, many, rows, missed, before)
        found = self._confirm(times[plain])
        self._top = max(self._top, int(found.times.max(initial=BEGINNING)))
        if self._slack is not None:
            self._own = max(self._own, self._top - self._slack)
        self._rows += rows
        self._late += int(many[all_times < mark].sum())
        marks = np.full(len(times), mark, dtype=np.int64)
        return Verdict(marks, np.full(len(times), self.mark), found.leaps, found.strays)

    # ---- saving ----------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        """Return the state that :meth:`restore` needs."""
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
        """Set the state to that of a snapshot."""
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
    """Return the ticks that times are below the newest before them; 0 if there was none."""
    return np.maximum(np.where(tops > BEGINNING, tops - times, 0), 0)
