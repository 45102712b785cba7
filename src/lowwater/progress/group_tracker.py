"""The marks of a stream's groups in columns: what a chunk costs follows the groups in it.

For contracts that need but one number per group, its newest time (``ordered``, ``within``). Rows of
all groups of a chunk are judged together; only groups whose rows may be dated too far ahead are
looked at one by one, by the channel that knows how.

If somebody needs the promise on the whole stream, a group nobody announced joins at it, as in
:mod:`lowwater.progress.tracker`. Otherwise nothing was promised of a group that has not spoken, and
none of its first rows is late.

Invariant: every group has the mark and the verdicts a :class:`MeasuredChannel` of its own has.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from heapq import heapify, heappush, heapreplace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lowwater.progress.channel import MeasuredChannel, Ticks
from lowwater.progress.demand import Demand
from lowwater.progress.runs import Runs
from lowwater.progress.silence import Silence
from lowwater.progress.standing import Channels, FrameStanding
from lowwater.progress.tracker import Judgement
from lowwater.state.group_table import GroupTable, Numbers
from lowwater.state.store import ChunkStore
from lowwater.stream.element import BEGINNING, END_OF_TIME, MARK, Chunk

TOP, FLOOR, SUSPECT, SEEN = "__top", "__floor", "__suspect", "__seen"
HELD, TOLD = "__held", "__told"
"""A group's mark, and what was told of it."""
NOBODY = np.empty(0, np.int64)
FEW = 16
"""Over so few groups, a loop is faster than one computation for all."""


class GroupTracker:
    """Follows every group of one progressing attribute."""

    def __init__(
        self,
        slack: int,
        jump: int | None,
        silence: Silence,
        announced: Chunk,
        linear: bool = True,
        store: ChunkStore | None = None,
        name: str = "groups",
    ):
        self._slack, self._jump, self._silence, self.linear = slack, jump, silence, linear
        columns = dict.fromkeys((TOP, FLOOR, SUSPECT, SEEN, HELD, TOLD), BEGINNING)
        self._table = GroupTable(columns, store, name)
        self._floor = BEGINNING  # promised for every group, those to come included
        self._value = BEGINNING  # the least mark when it was last looked at
        self._highest = BEGINNING
        self._stale = False
        self._moved: Numbers = NOBODY
        self._prior: tuple[Numbers, Ticks] = (NOBODY, NOBODY)
        self._absorbed = 0
        if announced.height:
            self._table.admit(announced)

    # ---- marks -----------------------------------------------------------------------------

    @property
    def mark(self) -> int:
        """The least mark of all groups."""
        if self._stale:
            least = self._table.least(HELD)
            if least is not None:
                self._value = max(self._value, least) if self.linear else least
            self._stale = False
        return max(self._value, self._floor)

    @property
    def promised(self) -> int:
        """The promise on the whole stream."""
        return self.mark if self.linear else self._floor

    @property
    def shown(self) -> int:
        """A mark for people: that of the whole stream, or the highest a group has."""
        return self.mark if self.linear else max(self._highest, self._floor)

    @property
    def joining(self) -> int:
        """The mark at which a group nobody has announced would join now."""
        return self.promised if self._table.known else self._floor

    @property
    def slowest(self) -> Hashable:
        """The group with the least mark."""
        self._table.load()
        return (
            self._table.name(int(self._table.column(HELD).argmin())) if len(self._table) else None
        )

    def furthest_behind(self, limit: int) -> Channels:
        """How far all groups are, and those that are furthest behind."""
        count, least = self._table.least_of(HELD, SEEN, limit)
        behind = tuple((name, mark, None if at == BEGINNING else at) for name, mark, at in least)
        return Channels(count, max(self._highest, self._floor), behind)

    def _behind(self, tops: Ticks) -> Ticks:
        """The marks that follow from newest times."""
        return np.where(tops > BEGINNING, tops - self._slack, BEGINNING)

    # ---- rows ------------------------------------------------------------------------------

    def observe(self, times: Ticks, marks: Ticks, runs: Runs, now: int) -> Judgement:
        """Judge a chunk, row by row in order of arrival."""
        return self._judge(times, runs, now, None)

    def absorb(self, times: Ticks, marks: Ticks, runs: Runs, now: int) -> Judgement:
        """Take in the times of one batch, each group's in ascending order; all joined at once."""
        joining = self.joining
        places = self._table.find(runs.keys)
        before = np.where(places < 0, joining, self._table.get(HELD, places))
        judged = self._judge(times, runs, now, joining)
        places = self._moved
        order = np.argsort(places)
        self._prior = (places[order], before[order])
        self._absorbed += 1
        return judged

    def _judge(self, times: Ticks, runs: Runs, now: int, joining: int | None) -> Judgement:
        judged = Judgement(
            np.full(len(times), BEGINNING, dtype=np.int64), np.zeros(len(times), bool), 0, 0
        )
        if not len(runs.starts):
            self._moved = NOBODY
            return judged
        places = self._table.find(runs.keys)
        fresh = places < 0
        top, suspect = self._table.get(TOP, places), self._table.get(SUSPECT, places)
        floor = self._table.get(FLOOR, places)
        values, starts = times[runs.rows], runs.starts
        group = np.repeat(np.arange(len(starts)), runs.lengths)
        after = np.maximum(_running_max(values, starts, group), top[group])
        met = np.empty_like(after)
        met[1:], met[starts] = after[:-1], top
        newest = after[np.append(starts[1:], len(after)) - 1]
        met, after = self._behind(met), self._behind(after)
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
                met[rows], after[rows] = verdict.met, verdict.after
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
        judged.met[runs.rows] = np.maximum(met, floor[group])
        judged.leaps[runs.rows] = leaps
        places = self._table.admit(runs.keys) if fresh.any() else places
        for name, held in ((TOP, newest), (SUSPECT, suspect), (FLOOR, floor), (SEEN, now)):
            self._table.put(name, places, held)
        self._move(places, np.maximum(floor, self._behind(newest)))
        return judged

    def _first(
        self, runs: Runs, top: Ticks, values: Ticks, after: Ticks, newest: Ticks, suspect: Ticks
    ) -> NDArray[np.bool_]:
        """Groups that have one row here, which is their first: it moves no mark by itself."""
        first: NDArray[np.bool_] = (top == BEGINNING) & (suspect == BEGINNING)
        first &= runs.lengths == 1
        after[runs.starts[first]] = newest[first] = BEGINNING
        suspect[first] = values[runs.starts[first]]
        return first

    def _move(self, places: Numbers, marks: Ticks) -> None:
        self._table.put(HELD, places, marks)
        self._moved, self._stale = places, True
        self._highest = max(self._highest, int(marks.max(initial=BEGINNING)))

    def _raise(self, places: Numbers, marks: Ticks) -> None:
        """Take marks made by other means, which are above those that are held."""
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

    def _joined(self, runs: Runs, places: Numbers, floor: Ticks, top: Ticks, after: Ticks) -> Ticks:
        """Floors of the groups of a chunk: a new one's is the stream's mark before its first row.

        Marks only grow along the chunk, so each is looked up anew only when it is the least.
        """
        known = places >= 0
        others = self._table.column(HELD).copy()
        others[places[known]] = END_OF_TIME
        least = int(others.min(initial=END_OF_TIME))
        start = np.maximum(floor, self._behind(top))
        heap = [(int(start[at]), at) for at in np.flatnonzero(known).tolist()]
        heapify(heap)
        ends = np.append(runs.starts[1:], len(runs.rows))
        lowest = self.mark
        floor = floor.copy()
        for at in np.flatnonzero(~known).tolist():
            row = runs.rows[runs.starts[at]]
            while heap:
                mark, each = heap[0]
                first, last = int(runs.starts[each]), int(ends[each])
                seen = int(np.searchsorted(runs.rows[first:last], row))
                now = max(int(floor[each]), int(after[first + seen - 1])) if seen else mark
                if now <= mark:
                    break
                heapreplace(heap, (now, each))
            if not heap and least == END_OF_TIME:
                floor[at] = self._floor
            else:
                floor[at] = max(min(least, heap[0][0] if heap else least), lowest)
            heappush(heap, (int(floor[at]), at))
        return floor

    # ---- what is told ----------------------------------------------------------------------

    def told(
        self,
        demand: Demand,
        whole: int,
        at_least: int | Sequence[int] = BEGINNING,
        every: bool = False,
    ) -> tuple[Chunk, int] | None:
        """New and useful marks of the groups that moved (or of all), and the least before.

        ``whole`` is what was told of the whole stream; ``at_least`` is useful whatever the demand:
        of all groups, or of each that moved.
        """
        if every:
            self._table.load()
        places = np.arange(len(self._table)) if every else self._moved
        marks = self._table.get(HELD, places)
        useful, points = demand.roll_all(marks), np.asarray(at_least, np.int64)
        useful = np.where(marks >= points, np.maximum(useful, points), useful)
        before = np.maximum(self._table.get(TOLD, places), whole)
        moved = useful > before
        if not moved.any():
            return None
        places, useful = places[moved], useful[moved]
        self._table.put(TOLD, places, useful)
        keys = self._table.keys(places)
        return keys.with_columns(pl.Series(MARK, useful)), int(before[moved].min())

    def promise_all(self, mark: int) -> None:
        """Take a mark made by other means for all groups, also those nobody has seen yet."""
        self._floor = max(self._floor, mark)
        self._table.load()
        places = np.flatnonzero(self._table.column(HELD) < mark)
        self._raise(places, np.full(len(places), mark, np.int64))

    # ---- silence ---------------------------------------------------------------------------

    def _stamps(self, now: int) -> Ticks:
        self._table.load()
        top, suspect = self._table.column(TOP), self._table.column(SUSPECT)
        newest = np.where(top > BEGINNING, top, suspect)
        return self._silence.stamps(newest, newest - self._slack, self._table.column(SEEN), now)

    @property
    def moved(self) -> Sequence[Hashable]:
        """The groups of which something came last."""
        return [self._table.name(place) for place in self._moved.tolist()]

    def mark_of(self, name: Hashable) -> int:
        """The mark of one group."""
        place = self._table.place(name)
        return BEGINNING if place is None else int(self._table.column(HELD)[place])

    def reached(self, name: Hashable, mark: int) -> int | None:
        """The clock time at which one group can be stamped with a mark; None if never."""
        place = self._table.place(name)
        if place is None:
            return None
        newest, seen = self._newest(place), int(self._table.column(SEEN)[place])
        spoken = None if seen == BEGINNING else seen
        return self._silence.reached(newest, newest - self._slack, spoken, mark)

    def _newest(self, place: int) -> int:
        top = int(self._table.column(TOP)[place])
        return top if top > BEGINNING else int(self._table.column(SUSPECT)[place])

    def stamp(self, names: Sequence[Hashable], now: int) -> None:
        """Stamp some groups by their silence."""
        stamps, places = [], []
        for name in names:
            place = self._table.place(name)
            assert place is not None
            newest, seen = self._newest(place), int(self._table.column(SEEN)[place])
            stamps.append(self._silence.stamp(newest, newest - self._slack, seen, now))
            places.append(place)
        at = np.array(places, np.int64)
        self._raise(at, np.maximum(np.array(stamps, np.int64), self._table.get(HELD, at)))

    def enable(self, awaited: int, now: int) -> bool:
        """Stamp the groups that are behind a mark and may be past it by now."""
        stamps, marks = self._stamps(now), self._table.column(HELD)
        behind = (marks < awaited) | (awaited == BEGINNING)
        places = np.flatnonzero(behind & (stamps >= awaited) & (stamps > marks))
        self._raise(places, stamps[places])
        return len(places) > 0

    def when(self, awaited: int, now: int) -> int | None:
        """The clock time at which :meth:`enable` could stamp the next group; None if never."""
        stamps = self._stamps(now)
        waiting = stamps[(self._table.column(HELD) < awaited) & (stamps > BEGINNING)]
        if not len(waiting):
            return None
        return now + self._silence.until(awaited - int(waiting.max()))

    # ---- batches ---------------------------------------------------------------------------

    def standing(self) -> GroupStanding:
        """The marks rows of the coming batch are judged by; good until the batch after it."""
        return GroupStanding(self, self._absorbed, self.joining, max(self._highest, self.joining))

    def left(self) -> FrameStanding:
        """The marks that hold now, as plain values that can be sent anywhere."""
        held = self._table.whole(HELD)
        marks = None if held is None else held.rename({HELD: MARK})
        return FrameStanding(marks, self.joining, max(self._highest, self.joining))

    def marks_before(self, keys: Chunk | None, batch: int, others: int) -> tuple[Chunk, Ticks]:
        """Marks of some groups (or all) as they were before a batch was absorbed."""
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
        """Write the groups that moved."""
        self._table.settle()

    def clear(self) -> None:
        """Forget all groups: the stream has ended."""
        self._table.clear()

    def snapshot(self) -> dict[str, Any]:
        """Everything needed to go on elsewhere."""
        value = self.mark if self.linear else self._value
        return {
            "groups": self._table.snapshot(),
            "floor": self._floor,
            "value": value,
            "highest": self._highest,
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        self._table.restore(saved["groups"])
        self._floor, self._value = saved["floor"], saved["value"]
        self._highest = saved["highest"]
        self._stale = not self.linear


class GroupStanding:
    """The marks of groups before a batch."""

    def __init__(self, tracker: GroupTracker, batch: int, others: int, highest: int):
        self._tracker, self._batch = tracker, batch
        self.others, self.highest = others, highest

    @property
    def known(self) -> dict[Hashable, int]:
        """The marks of all groups."""
        keys, marks = self._tracker.marks_before(None, self._batch, self.others)
        names = keys.to_series().to_list() if keys.width == 1 else keys.rows()
        return dict(zip(names, marks.tolist(), strict=True))

    def met(self, keys: Chunk) -> Ticks:
        """The marks of some groups."""
        return self._tracker.marks_before(keys, self._batch, self.others)[1]


def _running_max(values: Ticks, starts: Numbers, group: NDArray[np.int64]) -> Ticks:
    """The greatest value so far, for each group by itself."""
    if len(starts) <= FEW:
        parts = np.split(values, starts[1:])
        return np.concatenate([np.maximum.accumulate(part) for part in parts])
    order = np.argsort(values, kind="stable")
    rank = np.empty(len(values), np.int64)
    rank[order] = np.arange(len(values))
    lifted = np.maximum.accumulate(rank + group * len(values)) - group * len(values)
    running: Ticks = values[order[lifted]]
    return running
