"""The marks of a stream's groups in columns, for groups too many to follow one by one.

This serves the contracts under which a mark is always the newest time less a fixed slack
(``ordered``, ``within``). The rows of all groups of a chunk are judged together. Only groups whose
rows may be dated too far ahead are judged one by one, by a :class:`MeasuredChannel`.

If an operator needs punctuation on the whole stream, a group that is not announced joins as a
channel does in :mod:`lowwater.progress.tracker`. Otherwise it joins with no mark, and none of its
first rows is late.

Invariant: every group has the mark and the verdicts that a :class:`MeasuredChannel` of its own has.
Cost: that of a chunk follows the groups in it, not all groups.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lowwater.progress.channel import MeasuredChannel, Ticks
from lowwater.progress.completeness import Completeness
from lowwater.progress.demand import Demand
from lowwater.progress.idle import EnablingRule
from lowwater.progress.judgement import ChannelRows, Judgement, Mask, StreamMarkSweep
from lowwater.progress.marks import ChannelSummary, FrameMarks, TableMarks
from lowwater.progress.stale import StaleChanges
from lowwater.state.group_table import GroupTable, Numbers
from lowwater.state.store import ChunkStore
from lowwater.stream.element import BEGINNING, END_OF_TIME, MARK, Chunk

TOP, FLOOR, SUSPECT, SEEN = "__top", "__floor", "__suspect", "__seen"
HELD, PROMISED = "__held", "__promised"
"""Columns with a group's mark, and with the mark in its last punctuation."""
NONE = np.empty(0, np.int64)
FEW = 16
"""Up to this many groups, a loop is faster than one computation for all."""


class GroupTracker:
    """The marks of all groups on one attribute.

    ``slack`` is that of the contract and ``jump`` the least distance of a leap, both in ticks
    (``jump`` is None if leaps are not looked for). ``announced`` are the keys of groups known from
    the start. ``linear`` is false if no operator needs punctuation on the whole stream. Groups that
    are not in memory are in ``store``, under ``name``.
    """

    def __init__(
        self,
        slack: int,
        jump: int | None,
        enabling: EnablingRule,
        announced: Chunk,
        *,
        linear: bool = True,
        store: ChunkStore | None = None,
        name: str = "groups",
    ):
        self._slack, self._jump, self.enabling, self.linear = slack, jump, enabling, linear
        columns = dict.fromkeys((TOP, FLOOR, SUSPECT, SEEN, HELD, PROMISED), BEGINNING)
        self._table = GroupTable(columns, store, name)
        self._floor = BEGINNING  # the mark of every group, also of those to come
        self._value = BEGINNING  # the least mark when it was last computed
        self._highest = BEGINNING
        self._outdated = False  # the least mark must be computed again
        self._moved: Numbers = NONE
        self._prior: tuple[Numbers, Ticks] = (NONE, NONE)  # groups of the last batch, marks before
        self._absorbed = 0  # number of batches
        self._keys = announced.schema
        if announced.height:
            self._table.admit(announced)

    # ---- marks -----------------------------------------------------------------------------

    @property
    def mark(self) -> int:
        """The least mark of all groups, in ticks."""
        if self._outdated:
            least = self._table.least(HELD)
            if least is not None:
                self._value = max(self._value, least) if self.linear else least
            self._outdated = False
        return max(self._value, self._floor)

    @property
    def promised(self) -> int:
        """The mark that holds for the whole stream, groups to come included."""
        return self.mark if self.linear else self._floor

    @property
    def shown(self) -> int:
        """The mark to show to people: that of the whole stream, or the highest of a group."""
        return self.mark if self.linear else max(self._highest, self._floor)

    @property
    def joining(self) -> int:
        """The mark at which a group that is not announced would join now."""
        return self.promised

    @property
    def slowest(self) -> Hashable:
        """The group with the least mark; None if there are no groups."""
        self._table.load()
        return (
            self._table.name(int(self._table.column(HELD).argmin())) if len(self._table) else None
        )

    def take_stale_changes(self) -> StaleChanges:
        """Return no changes: a group holds no other group back, so none is ever stale."""
        return StaleChanges()

    def completeness(self) -> list[tuple[Hashable, Completeness]]:
        """Return nothing: no mark here is learned."""
        return []

    def furthest_behind(self, limit: int) -> ChannelSummary:
        """Summarise the groups, with the ``limit`` of them that are furthest behind."""
        count, least = self._table.least_of(HELD, SEEN, limit)
        behind = tuple((name, mark, None if at == BEGINNING else at) for name, mark, at in least)
        return ChannelSummary(count, max(self._highest, self._floor), behind)

    def _behind(self, tops: Ticks) -> Ticks:
        """Return the marks that follow from newest times."""
        return np.where(tops > BEGINNING, tops - self._slack, BEGINNING)

    # ---- rows ------------------------------------------------------------------------------

    def observe(self, times: Ticks, marks: Ticks, runs: ChannelRows, now: int) -> Judgement:
        """Judge the rows of a chunk in arrival order, and move the marks; ``marks`` is not used."""
        return self._judge(times, runs, now, None)

    def absorb(self, times: Ticks, marks: Ticks, runs: ChannelRows, now: int) -> Judgement:
        """Move the marks by the digest of a batch; new groups join at the mark before it."""
        joining = self.joining
        places = self._table.find(runs.keys)
        before = np.where(places < 0, joining, self._table.get(HELD, places))
        judged = self._judge(times, runs, now, joining)
        places = self._moved
        order = np.argsort(places)
        self._prior = (places[order], before[order])
        self._absorbed += 1
        return judged

    def _judge(self, times: Ticks, runs: ChannelRows, now: int, joining: int | None) -> Judgement:
        judged = Judgement.blank(len(times))
        if not len(runs.starts):
            self._moved = NONE
            return judged
        places = self._table.find(runs.keys)
        fresh = places < 0
        top, suspect = self._table.get(TOP, places), self._table.get(SUSPECT, places)
        floor = self._table.get(FLOOR, places)
        values, starts = times[runs.rows], runs.starts
        group = np.repeat(np.arange(len(starts)), runs.lengths)
        after = np.maximum(_running_max(values, starts, group), top[group])
        before = np.empty_like(after)
        before[1:], before[starts] = after[:-1], top
        newest = after[np.append(starts[1:], len(after)) - 1]
        before, after = self._behind(before), self._behind(after)
        leaps = np.zeros(len(values), bool)
        if self._jump is not None:
            careful = (top == BEGINNING) | (suspect != BEGINNING)
            careful |= np.maximum.reduceat(values, starts) - top > self._jump
            careful &= ~self._first(runs, top, values, after, newest, suspect)
            ends = np.append(starts[1:], len(values))
            for at in np.flatnonzero(careful).tolist():
                rows = slice(int(starts[at]), int(ends[at]))
                channel = self._channel(int(top[at]), int(suspect[at]))
                verdict = channel.observe(values[rows], values[rows])
                before[rows], after[rows] = verdict.before, verdict.after
                leaps[[rows.start + leap for leap in verdict.leaps]] = True
                judged.strays += verdict.strays
                state = channel.snapshot()
                newest[at] = state["top"]
                suspect[at] = BEGINNING if state["suspect"] is None else state["suspect"]
        if fresh.any():
            if joining is not None or not self.linear:
                floor[fresh] = self._floor if joining is None else joining
            else:
                floor = self._joined(runs, places, floor, top, after)
        judged.before[runs.rows] = np.maximum(before, floor[group])
        judged.leaps[runs.rows] = leaps
        places = self._table.admit(runs.keys) if fresh.any() else places
        for name, held in ((TOP, newest), (SUSPECT, suspect), (FLOOR, floor), (SEEN, now)):
            self._table.put(name, places, held)
        self._move(places, np.maximum(floor, self._behind(newest)))
        return judged

    def _first(
        self,
        runs: ChannelRows,
        top: Ticks,
        values: Ticks,
        after: Ticks,
        newest: Ticks,
        suspect: Ticks,
    ) -> Mask:
        """Leave a first row that is the only one of its group here in doubt; return such groups."""
        first: Mask = (top == BEGINNING) & (suspect == BEGINNING)
        first &= runs.lengths == 1
        after[runs.starts[first]] = newest[first] = BEGINNING
        suspect[first] = values[runs.starts[first]]
        return first

    def _move(self, places: Numbers, marks: Ticks) -> None:
        self._table.put(HELD, places, marks)
        self._moved, self._outdated = places, True
        self._highest = max(self._highest, int(marks.max(initial=BEGINNING)))

    def _raise(self, places: Numbers, marks: Ticks) -> None:
        """Raise the floors of groups to marks that are above those they have."""
        self._table.put(FLOOR, places, marks)
        self._move(places, marks)

    def _channel(self, top: int, suspect: int) -> MeasuredChannel:
        channel = MeasuredChannel(self._slack, 0, self._jump)
        channel.restore(
            {
                "top": top,
                "suspect": None if suspect == BEGINNING else suspect,
                "patience": 0,
                "recent": [],
                "floor": BEGINNING,
            }
        )
        return channel

    def _joined(
        self, runs: ChannelRows, places: Numbers, floor: Ticks, top: Ticks, after: Ticks
    ) -> Ticks:
        """Return the floors of the groups of a chunk; a new one joins at the stream's mark."""
        known = places >= 0
        others = self._table.column(HELD).copy()
        others[places[known]] = END_OF_TIME
        least = int(others.min(initial=END_OF_TIME))
        sweep = StreamMarkSweep(self.joining, self.mark, None if least == END_OF_TIME else least)
        after = np.maximum(after, np.repeat(floor, runs.lengths))
        start, floor = np.maximum(floor, self._behind(top)), floor.copy()
        ends = np.append(runs.starts[1:], len(runs.rows))
        spans = list(map(slice, runs.starts.tolist(), ends.tolist()))
        for at in np.flatnonzero(known).tolist():
            sweep.add(runs.rows[spans[at]], int(start[at]), after[spans[at]])
        for at in np.flatnonzero(~known).tolist():
            rows = runs.rows[spans[at]]
            mark = floor[at] = sweep.mark_before(int(rows[0]))
            sweep.add(rows, mark, np.maximum(after[spans[at]], mark))
        return floor

    # ---- punctuation of groups -------------------------------------------------------------

    def take_group_marks(
        self,
        demand: Demand,
        whole: int,
        at_least: int | Sequence[int] = BEGINNING,
        every: bool = False,
    ) -> tuple[Chunk, int] | None:
        """Return the new marks of groups that ``demand`` can use, as ``Tracker`` does."""
        if every:
            self._table.load()
        places = np.arange(len(self._table)) if every else self._moved
        marks = self._table.get(HELD, places)
        useful, points = demand.round_all_down(marks), np.asarray(at_least, np.int64)
        useful = np.where(marks >= points, np.maximum(useful, points), useful)
        before = np.maximum(self._table.get(PROMISED, places), whole)
        moved = useful > before
        if not moved.any():
            return None
        places, useful = places[moved], useful[moved]
        self._table.put(PROMISED, places, useful)
        keys = self._table.keys(places)
        return keys.with_columns(pl.Series(MARK, useful)), int(before[moved].min())

    def promise_all(self, mark: int) -> None:
        """Raise the mark of all groups, also of those to come, to at least ``mark``."""
        self._floor = max(self._floor, mark)
        self._table.load()
        places = np.flatnonzero(self._table.column(HELD) < mark)
        self._raise(places, np.full(len(places), mark, np.int64))

    def announce(self, name: Hashable) -> None:
        """Admit a group that is not known at the mark at which a new group joins."""
        key, joining = self._key(name), self.joining
        if self._table.find(key)[0] < 0:
            self._raise(self._table.admit(key), np.full(1, joining, np.int64))

    def promise_one(self, name: Hashable, mark: int) -> None:
        """Raise the mark of one known group to at least ``mark``."""
        place = self._table.place(name)
        assert place is not None
        places = np.array([place])
        self._raise(places, np.maximum(self._table.get(HELD, places), mark))

    def knows(self, keys: Chunk) -> Mask:
        """Return which of some groups are known; a row of ``keys`` names one."""
        known: Mask = self._table.find(keys) >= 0
        return known

    def end(self, keys: Chunk) -> int:
        """Forget groups that have ended, in this order; return the least mark in their last
        punctuation.

        If no group is left, the mark of the stream stays at that of the last.
        """
        places = self._table.find(keys)
        before = int(self._table.get(PROMISED, places).min())
        last = max(self.mark, int(self._table.get(HELD, places)[-1])) if self.linear else BEGINNING
        moved = self._table.remove(keys)
        if self.linear and self._table.least(HELD) is None:
            self._value = max(self._value, last)
        remaining = (moved.get(place, place) for place in self._moved.tolist())
        self._moved = np.array([place for place in remaining if place >= 0], np.int64)
        self._prior = (NONE, NONE)
        self._outdated = True
        return before

    def _key(self, name: Hashable) -> Chunk:
        """Return the key columns of one group."""
        return pl.DataFrame(
            [name if isinstance(name, tuple) else (name,)], schema=self._keys, orient="row"
        )

    @property
    def moved(self) -> Sequence[Hashable]:
        """The groups that got the last rows or timestamps."""
        return [self._table.name(place) for place in self._moved.tolist()]

    def mark_of(self, name: Hashable) -> int:
        """Return the mark of one group; of one that is not known, that of all groups to come."""
        place = self._table.place(name)
        return self._floor if place is None else int(self._table.column(HELD)[place])

    def marks_of(self, keys: Chunk) -> Ticks:
        """Return the marks of some groups; a row of ``keys`` names one."""
        return self._table.get(HELD, self._table.find(keys))

    # ---- enabling timestamps ---------------------------------------------------------------

    def _timestamps(self, places: Numbers, now: int) -> Ticks:
        seen = self._table.get(SEEN, places)
        return self.enabling.timestamps(self._starts(places), seen, now)

    def _starts(self, places: Numbers) -> Ticks:
        """Return the timestamps that groups had when their last rows came."""
        top, suspect = self._table.get(TOP, places), self._table.get(SUSPECT, places)
        newest = np.where(top > BEGINNING, top, suspect)
        lag = max(self._slack, self.enabling.skew)
        return np.where(newest > BEGINNING, newest - lag, BEGINNING)

    def time_of(self, name: Hashable, mark: int) -> int | None:
        """Return the clock time at which a group's timestamp reaches ``mark``; None if never."""
        place = self._table.place(name)
        if place is None:
            return self.enabling.time_of(mark, BEGINNING, BEGINNING)
        start = int(self._starts(np.array([place]))[0])
        return self.enabling.time_of(mark, start, int(self._table.column(SEEN)[place]))

    def stamp(self, names: Sequence[Hashable], now: int) -> None:
        """Raise some silent groups to their timestamps at clock time ``now``, in nanoseconds.

        Of a group that is not known only the clock bounds the rows, and then those of all groups.
        """
        found = [self._table.place(name) for name in names]
        places = np.array([place for place in found if place is not None], np.int64)
        if len(places) < len(found):
            self.promise_all(self.enabling.by_clock(now))
        stamps = self._timestamps(places, now)
        self._raise(places, np.maximum(stamps, self._table.get(HELD, places)))

    def enable(self, requested: int, now: int) -> bool:
        """Raise the groups that are below ``requested`` and whose timestamps reach it.

        Return true if there are any, or if the clock bounds the rows of all groups.
        """
        clock = self.enabling.by_clock(now)
        together = clock > self._floor and clock >= requested
        if together:
            self.promise_all(clock)
        raised = self._moved if together else NONE
        self._table.load()
        stamps = self._timestamps(np.arange(len(self._table)), now)
        marks = self._table.column(HELD)
        behind = (marks < requested) | (requested == BEGINNING)
        places = np.flatnonzero(behind & (stamps >= requested) & (stamps > marks))
        self._raise(places, stamps[places])
        self._moved = np.union1d(raised, places)
        return together or len(places) > 0

    def when(self, requested: int, now: int) -> int | None:
        """Return the clock time at which :meth:`enable` can raise the next group; None if never."""
        self._table.load()
        stamps = self._timestamps(np.arange(len(self._table)), now)
        waiting = stamps[(self._table.column(HELD) < requested) & (stamps > BEGINNING)]
        latest = max(int(waiting.max(initial=BEGINNING)), self.enabling.by_clock(now))
        return None if latest == BEGINNING else now + self.enabling.wait(requested - latest)

    # ---- batches ---------------------------------------------------------------------------

    def marks_before(self) -> TableMarks:
        """Return the marks by which rows of the coming batch are judged.

        They can be looked up until the batch after that one is absorbed.
        """
        look_up = partial(self._marks_at, self._absorbed, self.joining)
        return TableMarks(look_up, self.joining, max(self._highest, self.joining))

    def marks_after(self) -> FrameMarks:
        """Return the marks that hold now, as plain values that can be sent to other processes."""
        held = self._table.whole(HELD)
        marks = None if held is None else held.rename({HELD: MARK})
        return FrameMarks(marks, self.joining, max(self._highest, self.joining))

    def _marks_at(self, batch: int, others: int, keys: Chunk | None) -> tuple[Chunk, Ticks]:
        """Return the groups ``keys`` (None for all) and their marks before batch number ``batch``.

        That is the last batch absorbed, or the next one. ``others`` is the mark of groups that are
        not known.
        """
        if keys is None:
            self._table.load()
            keys = self._table.keys(np.arange(len(self._table)))
        places = self._table.find(keys)
        marks = np.where(places < 0, others, self._table.get(HELD, places))
        known, before = self._prior
        if batch < self._absorbed and len(known):
            at = np.minimum(np.searchsorted(known, places), len(known) - 1)
            marks = np.where(known[at] == places, before[at], marks)
        return keys, marks

    # ---- saving ----------------------------------------------------------------------------

    def settle(self) -> None:
        """Write the groups that moved to the store."""
        self._table.settle()

    def clear(self) -> None:
        """Drop all groups; for the end of the stream."""
        self._table.clear()

    def snapshot(self) -> dict[str, Any]:
        """Return the state that :meth:`restore` needs, beside what is in the store."""
        value = self.mark if self.linear else self._value
        return {
            "groups": self._table.snapshot(),
            "floor": self._floor,
            "value": value,
            "highest": self._highest,
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Set the state to that of a snapshot."""
        self._table.restore(saved["groups"])
        self._floor, self._value = saved["floor"], saved["value"]
        self._highest = saved["highest"]
        self._outdated = not self.linear


def _running_max(values: Ticks, starts: Numbers, group: NDArray[np.int64]) -> Ticks:
    """Return the greatest value so far at each position, for each group by itself."""
    if len(starts) <= FEW:
        parts = np.split(values, starts[1:])
        return np.concatenate([np.maximum.accumulate(part) for part in parts])
    order = np.argsort(values, kind="stable")
    rank = np.empty(len(values), np.int64)
    rank[order] = np.arange(len(values))
    lifted = np.maximum.accumulate(rank + group * len(values)) - group * len(values)
    running: Ticks = values[order[lifted]]
    return running
