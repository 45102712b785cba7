"""The marks of a stream on one attribute: those of its channels, and their minimum.

Channels that are announced (by ``channels=``, or by a replay, whose log has all of them) hold the
mark from the start. A channel that is not announced joins, with its first row, at the mark that the
stream has then, because punctuation up to there has been emitted; its rows below that are late.

If single groups have punctuation and no operator needs it on the whole stream, none is made on the
whole stream, and a group that appears later joins with no mark.

The marks of all channels are in columns, and so is what their timestamps follow from: to ask all
silent channels for a timestamp is one computation.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import repeat
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lowwater.progress.channel import Channel, Ticks
from lowwater.progress.channel_table import ChannelTable
from lowwater.progress.completeness import Completeness, Shortfall
from lowwater.progress.demand import Demand
from lowwater.progress.idle import EnablingRule
from lowwater.progress.judgement import ChannelRows, Deficit, Judgement, Mask, StreamMarkSweep
from lowwater.progress.marks import ChannelSummary, NamedMarks
from lowwater.progress.spec import channel_name
from lowwater.progress.stale import StaleChanges, StaleChannels
from lowwater.stream.element import BEGINNING, END_OF_TIME, MARK, Chunk


class Tracker:
    """The marks of all channels on one attribute.

    ``make`` builds a channel and ``enabling`` is the rule for silent ones. ``announced`` are
    channels known from the start. ``linear`` is false if no operator needs punctuation on the whole
    stream. ``keys`` are the names and types of the columns of groups with their own punctuation;
    empty if there is none. ``stale`` decides which channels are stale; None if none can be.

    Invariant: the mark is the least of all channels that are not stale, and never decreases.
    """

    def __init__(
        self,
        make: Callable[[], Channel],
        enabling: EnablingRule,
        announced: Iterable[Hashable] = (),
        *,
        linear: bool = True,
        keys: Sequence[tuple[str, pl.DataType]] = (),
        stale: StaleChannels | None = None,
    ):
        self._make, self.enabling, self.linear = make, enabling, linear
        self._learned = make().completeness is not None
        self._keys = list(keys)
        self._floor = BEGINNING  # the mark of every channel, also of those to come
        self._channels = ChannelTable(make)
        self._emitted: dict[Hashable, int] = {}  # mark in the last punctuation for each group
        self._moved: list[Hashable] = []
        self._sent: list[Hashable] = []  # channels that got the last rows
        self.doubts: dict[Hashable, int] = {}
        """The times of first rows in doubt, by channel."""
        self.new_doubts: dict[Hashable, int] = {}
        """Those among the last rows."""
        self._short: set[Hashable] = set()  # channels less complete than they should be
        self._stale = stale
        self._stale_changes = StaleChanges()
        for name in announced:
            self._channels.admit(name, BEGINNING)

    @property
    def mark(self) -> int:
        """The least mark of all channels, in ticks."""
        return max(self._channels.least, self._floor)

    @property
    def promised(self) -> int:
        """The mark that holds for the whole stream, channels to come included."""
        return self.mark if self.linear else self._floor

    @property
    def shown(self) -> int:
        """The mark to show to people."""
        return self.mark

    @property
    def slowest(self) -> Hashable:
        """The channel that holds the mark back; None if there are no channels."""
        if not len(self._channels):
            return None
        held = np.where(self._holding(), self._channels.marks, END_OF_TIME)
        return self._channels.name(int(held.argmin()))

    def _holding(self) -> Mask:
        """Return which channels are not stale."""
        holding = np.ones(len(self._channels), bool)
        holding[self._channels.places(self.stale)] = False
        return holding

    @property
    def stale(self) -> frozenset[Hashable]:
        """The channels that are stale."""
        return frozenset(self._stale.names) if self._stale is not None else frozenset()

    def take_stale_changes(self) -> StaleChanges:
        """Return the channels that became stale or caught up since the last call."""
        changes, self._stale_changes = self._stale_changes, StaleChanges()
        return changes

    def completeness(self) -> list[tuple[Hashable, Completeness]]:
        """Return the completeness of each channel with a learned mark."""
        if not self._learned:
            return []
        found = [(name, self._channels.of(name).completeness) for name in self._channels]
        return [(name, each) for name, each in found if each is not None]

    def furthest_behind(self, limit: int) -> ChannelSummary:
        """Summarise the channels, with the ``limit`` of them that are furthest behind."""
        stale = self.stale
        marks = self._channels.marks.copy()
        for name in stale:
            marks[self._channels.places([name])] = self._channels.of(name).row_mark
        least = np.argsort(marks, kind="stable")[:limit].tolist()
        named = [(self._channels.name(at), int(marks[at]), self._seen(at)) for at in least]
        return ChannelSummary(
            len(marks),
            int(marks.max(initial=BEGINNING)),
            tuple(named),
            tuple(name for name, *_ in named if name in stale),
            len(stale),
        )

    def _seen(self, place: int) -> int | None:
        at = int(self._channels.seen[place])
        return None if at == BEGINNING else at

    # ---- rows ------------------------------------------------------------------------------

    def observe(self, times: Ticks, marks: Ticks, rows: ChannelRows, now: int) -> Judgement:
        """Judge the rows of a chunk in arrival order, and move the marks.

        ``times`` and ``marks`` (those of a producer) are by position in the chunk; ``now`` is the
        clock time in nanoseconds.
        """
        order = sorted(rows, key=lambda each: each[0] not in self._channels)
        new = bool(order) and order[-1][0] not in self._channels
        sweep = self._sweep(order) if new and self.linear else None
        return self._judge(times, marks, order, now, sweep)

    def _sweep(self, order: list[tuple[Hashable, NDArray[np.int64]]]) -> StreamMarkSweep:
        others = self._channels.marks.copy()
        known = [name for name, _ in order if name in self._channels]
        others[self._channels.places(known)] = END_OF_TIME
        least = int(others.min(initial=END_OF_TIME))
        return StreamMarkSweep(self.joining, self.mark, None if least == END_OF_TIME else least)

    @property
    def joining(self) -> int:
        """The mark at which a channel that is not announced would join now."""
        return self.promised

    def absorb(self, times: Ticks, marks: Ticks, rows: ChannelRows, now: int) -> Judgement:
        """Move the marks by the digest of a batch without order.

        The times of each channel are ascending. New channels join at the mark before the batch.
        """
        joining = self.joining
        order = list(rows)
        for name, _ in order:
            if name not in self._channels:
                self._channels.admit(name, joining)
        return self._judge(times, marks, order, now, None, batch=True)

    def _judge(
        self,
        times: Ticks,
        marks: Ticks,
        order: list[tuple[Hashable, NDArray[np.int64]]],
        now: int,
        sweep: StreamMarkSweep | None,
        batch: bool = False,
    ) -> Judgement:
        judged = Judgement.blank(len(times))
        for name, rows in order:
            if name not in self._channels:
                floor = self._floor if sweep is None else sweep.mark_before(int(rows[0]))
                self._channels.admit(name, floor)
            channel = self._channels.with_floor(name)
            start, short = channel.mark, channel.latest_shortfall
            alone = len(rows) == len(times)
            judge = channel.absorb if batch else channel.observe
            verdict = judge(times if alone else times[rows], marks if alone else marks[rows])
            if alone:
                judged.before = verdict.before
            else:
                judged.before[rows] = verdict.before
            judged.leaps[rows[verdict.leaps]] = True
            judged.strays += verdict.strays
            judged.backward += verdict.backward
            deficit = self._note_shortfall(name, channel, short)
            judged.deficit = judged.deficit or deficit
            if sweep is not None:
                sweep.add(rows, start, verdict.after)
        self._moved = self._sent = [name for name, _ in order]
        self._channels.advance(self._moved, now)
        self._note_doubts()
        if self._stale is not None and order:
            self._update_stale(self._stale, now)
        return judged

    def _note_shortfall(
        self, name: Hashable, channel: Channel, before: Shortfall | None
    ) -> Deficit | None:
        """Record if a channel falls short; return the deficit if no channel did so before."""
        first, latest = not self._short, channel.latest_shortfall
        if latest is None:
            return None
        (self._short.discard if channel.shortfall is None else self._short.add)(name)
        completeness = channel.completeness
        if latest == before or not first or completeness is None:
            return None
        return Deficit(name, latest, completeness)

    def _update_stale(self, stale: StaleChannels, now: int) -> None:
        """Find the channels that are stale now, and raise them."""
        stale.observe(self._moved, now)
        held = max(self._least_not_stale(), self.mark)
        self._stale_changes = stale.update(self._channels.all_with_floors(), held)
        self._raise_stale()

    def _least_not_stale(self) -> int:
        held = self._channels.marks[self._holding()]
        return int(held.min()) if len(held) else BEGINNING

    def _raise_stale(self) -> None:
        """Raise stale channels to the mark of all others; their rows below it are late."""
        stale = self.stale
        if stale:
            mark = max(self._least_not_stale(), self.mark)
            self._channels.lift(self._channels.places(stale), mark)

    # ---- first rows ------------------------------------------------------------------------

    def _note_doubts(self) -> None:
        found = {name: self._channels.of(name).doubted for name in self._moved}
        self.new_doubts = {name: time for name, time in found.items() if time is not None}
        for name in self.doubts.keys() & found.keys():
            del self.doubts[name]
        self.doubts |= self.new_doubts

    def newest_times(self, moved: bool = False) -> Ticks:
        """Return the newest times of all channels with rows, or of those that got the last
        rows."""
        newest = self._channels.newest(self.enabling)
        newest = newest[self._channels.places(self._sent)] if moved else newest
        return newest[newest > BEGINNING]

    def confirm_first(self, names: Sequence[Hashable]) -> None:
        """Raise channels to the marks that follow from their first rows."""
        marks = [self._channels.of(name).contract_mark for name in names]
        self._channels.lift(self._channels.places(names), np.array(marks, np.int64))
        self._raise_stale()
        for name in names:
            self.doubts.pop(name, None)
            self.new_doubts.pop(name, None)

    # ---- punctuation of groups -------------------------------------------------------------

    def take_group_marks(
        self,
        demand: Demand,
        whole: int,
        at_least: int | Sequence[int] = BEGINNING,
        every: bool = False,
    ) -> tuple[Chunk, int] | None:
        """Return the new marks of groups that ``demand`` can use; None if there are none.

        The result has a row for each group, and the least mark these groups had before. Only groups
        that moved are looked at, or all of them if ``every``. ``whole`` is the mark already emitted
        for the whole stream. ``at_least`` is a mark that is useful whatever the demand: of all
        groups, or of each that moved.
        """
        rows, least = [], END_OF_TIME
        names = list(self._channels) if every else self._moved
        points = repeat(at_least) if isinstance(at_least, int) else at_least
        for name, point in zip(names, points, strict=False):
            mark = self.mark_of(name)
            useful = demand.round_down(mark) if mark > BEGINNING else BEGINNING
            useful = max(useful, point) if mark >= point else useful
            before = max(self._emitted.get(name, BEGINNING), whole)
            if useful > before:
                self._emitted[name] = useful
                keys = name if isinstance(name, tuple) else (name,)
                rows.append((*keys, useful))
                least = min(least, before)
        if not rows:
            return None
        schema = [*self._keys, (MARK, pl.Int64())]
        return pl.DataFrame(rows, schema=schema, orient="row"), least

    def promise_all(self, mark: int) -> None:
        """Raise the mark of all channels, also of those to come, to at least ``mark``."""
        self._floor = max(self._floor, mark)
        self._moved = list(self._channels) if self._keys else []
        self._channels.lift(np.arange(len(self._channels)), mark)

    def announce(self, name: Hashable) -> None:
        """Admit a channel that is not known at the mark of the stream."""
        if name not in self._channels:
            self._channels.admit(name, self.joining)

    def promise_one(self, name: Hashable, mark: int) -> None:
        """Raise the mark of one known channel to at least ``mark``."""
        self._moved = [name]
        self._channels.lift(self._channels.places([name]), mark)
        self._raise_stale()

    @property
    def names(self) -> list[Hashable]:
        """The channels that are known."""
        return list(self._channels)

    def knows(self, keys: Chunk) -> NDArray[np.bool_]:
        """Return which of some channels are known; a row of ``keys`` names one."""
        names = map(channel_name, keys.rows())
        return np.fromiter((name in self._channels for name in names), bool, keys.height)

    def end(self, keys: Chunk) -> int:
        """Forget channels that have ended, in this order; return the least mark in their last
        punctuation.

        If no channel is left, the mark of the stream stays at that of the last.
        """
        names = [channel_name(parts) for parts in keys.rows()]
        before = min((self._emitted.pop(name, BEGINNING) for name in names), default=BEGINNING)
        self._channels.remove([name for name in names if name in self._channels])
        for name in names:
            self._short.discard(name)
            self.doubts.pop(name, None)
            self.new_doubts.pop(name, None)
            if self._stale is not None:
                self._stale.forget(name)
        self._moved = [name for name in self._moved if name in self._channels]
        self._raise_stale()
        return before

    @property
    def moved(self) -> Sequence[Hashable]:
        """The channels that got the last rows or timestamps."""
        return self._moved

    def mark_of(self, name: Hashable) -> int:
        """Return the mark of one channel; of one not known, that of all channels to come."""
        return self._channels.mark_of(name) if name in self._channels else self._floor

    def marks_of(self, keys: Chunk) -> Ticks:
        """Return the marks of some channels; a row of ``keys`` names one."""
        names = map(channel_name, keys.rows())
        return np.fromiter((self.mark_of(name) for name in names), np.int64, keys.height)

    # ---- enabling timestamps ---------------------------------------------------------------

    def _timestamps(self, now: int) -> Ticks:
        """Return the timestamps of all channels; stale ones have none."""
        starts, seen = self._channels.starts(self.enabling), self._channels.seen
        stamps = self.enabling.timestamps(starts, seen, now)
        return np.where(self._holding(), stamps, BEGINNING) if self.stale else stamps

    def time_of(self, name: Hashable, mark: int) -> int | None:
        """Return the clock time at which a channel's timestamp reaches ``mark``; None if never."""
        if name not in self._channels:
            return self.enabling.time_of(mark, BEGINNING, BEGINNING)
        (place,) = self._channels.places([name])
        start = int(self._channels.starts(self.enabling)[place])
        return self.enabling.time_of(mark, start, int(self._channels.seen[place]))

    def stamp(self, names: Sequence[Hashable], now: int) -> None:
        """Raise some silent channels to their timestamps at clock time ``now``, in nanoseconds.

        Of a channel that is not known only the clock bounds the rows, and then those of all.
        """
        known = [name for name in names if name in self._channels]
        if len(known) < len(names):
            self.promise_all(self.enabling.by_clock(now))
        places = self._channels.places(known)
        self._channels.lift(places, self._timestamps(now)[places])
        self._moved = known

    def enable(self, requested: int, now: int) -> bool:
        """Raise the channels to their timestamps, if that brings the stream to ``requested``.

        If groups have punctuation of their own, only those that reach ``requested`` are raised.
        Return true if the stream, or some group, is at ``requested`` now.
        """
        clock = self.enabling.by_clock(now)
        together = clock > self._floor and clock >= requested
        if together:
            self.promise_all(clock)
        stamps, marks = self._timestamps(now), self._channels.marks
        if self._keys:
            behind = (marks < requested) | (requested == BEGINNING)
            raised = behind & (stamps >= requested) & (stamps > marks)
        elif not together and requested > self._reached(stamps):
            return False
        else:
            raised = stamps > marks
        places = np.flatnonzero(raised)
        self._channels.lift(places, stamps[places])
        if self._keys and not together:
            self._moved = [self._channels.name(at) for at in places.tolist()]
        self._raise_stale()
        return together or len(places) > 0 or not self._keys

    def _reached(self, stamps: Ticks) -> int:
        """Return the mark of the stream once its channels have these timestamps."""
        marks = np.maximum(stamps, self._channels.marks)
        reached = np.where(self._holding(), marks, END_OF_TIME)
        return int(reached.min()) if len(reached) else BEGINNING

    def when(self, requested: int, now: int) -> int | None:
        """Return the clock time at which :meth:`enable` can reach ``requested``; None if never."""
        clock = self.enabling.by_clock(now)
        stamps = self._timestamps(now)
        waiting = stamps[self._holding() & (self._channels.marks < requested)]
        if len(self._channels) and not len(waiting):
            return now
        if self._keys or not len(self._channels):
            stamp = int(waiting.max(initial=clock))
        else:
            stamp = int(waiting.min())
        return None if stamp == BEGINNING else now + self.enabling.wait(requested - stamp)

    # ---- batches and saving ----------------------------------------------------------------

    def marks_before(self) -> NamedMarks:
        """Return the marks by which rows of the coming batch are judged."""
        known = dict(zip(self._channels, self._channels.marks.tolist(), strict=True))
        return NamedMarks(known, self.joining)

    def marks_after(self) -> NamedMarks:
        """Return the marks that hold now, as plain values that can be sent to other processes."""
        return self.marks_before()

    def settle(self) -> None:
        """Do nothing: the whole state is in the snapshot."""

    def clear(self) -> None:
        """Do nothing: no state is kept elsewhere."""

    def snapshot(self) -> dict[str, Any]:
        """Return the state that :meth:`restore` needs."""
        return {
            **self._channels.snapshot(self.enabling),
            "floor": self._floor,
            "emitted": dict(self._emitted),
            "short": set(self._short),
            "doubts": dict(self.doubts),
            **({} if self._stale is None else {"stale": self._stale.snapshot()}),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Set the state to that of a snapshot."""
        self._channels = ChannelTable(self._make)
        self._channels.restore(saved)
        self._floor, self._emitted = saved["floor"], dict(saved["emitted"])
        self._short, self.doubts = set(saved["short"]), dict(saved["doubts"])
        self._moved, self._sent, self.new_doubts = [], [], {}
        if self._stale is not None and "stale" in saved:
            self._stale.restore(saved["stale"])
