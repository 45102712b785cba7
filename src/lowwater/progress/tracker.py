"""The marks of a stream on one attribute: those of its channels, and their minimum.

Channels that are announced (by ``channels=``, or by a replay, whose log has all of them) hold the
mark from the start. A channel that is not announced joins, with its first row, at the mark that the
stream has then, because punctuation up to there has been emitted; its rows below that are late.

If single groups have punctuation and no operator needs it on the whole stream, none is made on the
whole stream, and a group that appears later joins with no mark.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from heapq import nsmallest
from itertools import repeat
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lowwater.progress.channel import Channel, Ticks
from lowwater.progress.completeness import Completeness, Shortfall
from lowwater.progress.demand import Demand
from lowwater.progress.idle import EnablingRule
from lowwater.progress.judgement import ChannelRows, Deficit, Judgement, StreamMarkSweep
from lowwater.progress.marks import ChannelSummary, NamedMarks
from lowwater.progress.spec import channel_name
from lowwater.progress.stale import StaleChanges, StaleChannels
from lowwater.stream.element import BEGINNING, END_OF_TIME, MARK, Chunk
from lowwater.stream.low_water_mark import LowWaterMark


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
        self._make, self._enabling, self.linear = make, enabling, linear
        self._keys = list(keys)
        self._floor = BEGINNING  # the mark of every channel, also of those to come
        self._channels: dict[Hashable, Channel] = {}
        self._marks = LowWaterMark()
        self._seen: dict[Hashable, int] = {}  # clock time of the last row of each channel
        self._emitted: dict[Hashable, int] = {}  # mark in the last punctuation for each group
        self._moved: list[Hashable] = []
        self._short: set[Hashable] = set()  # channels less complete than they should be
        self._stale = stale
        self._stale_changes = StaleChanges()
        for name in announced:
            self._admit(name, BEGINNING)

    @property
    def mark(self) -> int:
        """The least mark of all channels, in ticks."""
        return max(self._marks.value, self._floor)

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
        stale = self.stale
        if stale:
            holding = {name: each.mark for name, each in self._channels.items()}
            return min(holding.keys() - stale or holding, key=lambda name: holding[name])
        return self._marks.slowest if self._channels else None

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
        found = [(name, each.completeness) for name, each in list(self._channels.items())]
        return [(name, each) for name, each in found if each is not None]

    def furthest_behind(self, limit: int) -> ChannelSummary:
        """Summarise the channels, with the ``limit`` of them that are furthest behind."""
        stale = self.stale
        marks = [
            (channel.row_mark if name in stale else channel.mark, name)
            for name, channel in list(self._channels.items())
        ]
        least = nsmallest(limit, marks, key=lambda each: each[0])
        return ChannelSummary(
            len(marks),
            max((mark for mark, _ in marks), default=BEGINNING),
            tuple((name, mark, self._seen.get(name)) for mark, name in least),
            tuple(name for _, name in least if name in stale),
            len(stale),
        )

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
        others = self._channels.keys() - {name for name, _ in order}
        least = min((self._channels[name].mark for name in others), default=None)
        return StreamMarkSweep(self.joining, self.mark, least)

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
                self._admit(name, joining)
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
                self._admit(name, self._floor if sweep is None else sweep.mark_before(int(rows[0])))
            channel = self._channels[name]
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
        self._moved = [name for name, _ in order]
        self._seen.update(dict.fromkeys(self._moved, now))
        self._advance(self._moved)
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
        self._stale_changes = stale.update(self._channels, held)
        self._raise_stale()

    def _least_not_stale(self) -> int:
        stale = self.stale
        marks = (each.mark for name, each in self._channels.items() if name not in stale)
        return min(marks, default=BEGINNING)

    def _raise_stale(self) -> None:
        """Raise stale channels to the mark of all others; their rows below it are late."""
        stale = self.stale
        if stale:
            self._raise_floors(stale, max(self._least_not_stale(), self.mark))

    def _raise_floors(self, names: Iterable[Hashable], mark: int) -> None:
        for name in names:
            channel = self._channels[name]
            channel.floor = max(channel.floor, mark)
        self._advance(names)

    def _advance(self, names: Iterable[Hashable]) -> None:
        self._marks.advance_all({name: self._channels[name].mark for name in names})

    def _admit(self, name: Hashable, floor: int) -> None:
        channel = self._make()
        channel.floor = floor
        self._channels[name] = channel
        self._marks.advance(name, floor)

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
            mark = self._channels[name].mark
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
        self._moved = list(self._channels)
        self._raise_floors(self._moved, mark)

    def announce(self, name: Hashable) -> None:
        """Admit a channel that is not known at the mark of the stream."""
        if name not in self._channels:
            self._admit(name, self.joining)

    def promise_one(self, name: Hashable, mark: int) -> None:
        """Raise the mark of one known channel to at least ``mark``."""
        self._moved = [name]
        self._raise_floors(self._moved, mark)
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
        for name in names:
            self._channels.pop(name, None)
            self._seen.pop(name, None)
            self._short.discard(name)
            if self._stale is not None:
                self._stale.forget(name)
        self._moved = [name for name in self._moved if name in self._channels]
        self._marks.remove(names)
        self._raise_stale()
        return before

    @property
    def moved(self) -> Sequence[Hashable]:
        """The channels that got the last rows or timestamps."""
        return self._moved

    def mark_of(self, name: Hashable) -> int:
        """Return the mark of one channel; ``BEGINNING`` if it is not known."""
        return self._channels[name].mark if name in self._channels else BEGINNING

    def marks_of(self, keys: Chunk) -> Ticks:
        """Return the marks of some channels; a row of ``keys`` names one."""
        names = map(channel_name, keys.rows())
        return np.fromiter((self.mark_of(name) for name in names), np.int64, keys.height)

    # ---- enabling timestamps ---------------------------------------------------------------

    def _timestamp(self, name: Hashable, now: int) -> int:
        channel, seen = self._channels[name], self._seen.get(name)
        return self._enabling.timestamp(channel.newest, channel.contract_mark, seen, now)

    def time_of(self, name: Hashable, mark: int) -> int | None:
        """Return the clock time at which a channel's timestamp reaches ``mark``; None if never."""
        channel = self._channels.get(name)
        if channel is None:
            return None
        seen = self._seen.get(name)
        return self._enabling.time_of(mark, channel.newest, channel.contract_mark, seen)

    def stamp(self, names: Sequence[Hashable], now: int) -> None:
        """Raise some silent channels to their timestamps at clock time ``now``, in nanoseconds."""
        self._moved = list(names)
        for name in names:
            channel = self._channels[name]
            channel.floor = max(channel.floor, self._timestamp(name, now))
        self._advance(names)

    def enable(self, requested: int, now: int) -> bool:
        """Raise the channels to their timestamps, if that brings the stream to ``requested``.

        If groups have punctuation of their own, only those that reach ``requested`` are raised.
        Return true if the stream, or some group, is at ``requested`` now.
        """
        stale = self.stale
        stamps = {name: self._timestamp(name, now) for name in self._channels if name not in stale}
        if self._keys:
            behind = {
                name: stamp
                for name, stamp in stamps.items()
                if self._channels[name].mark < max(requested, stamp) and stamp >= requested
            }
            stamps = {
                name: stamp
                for name, stamp in behind.items()
                if requested == BEGINNING or self._channels[name].mark < requested
            }
        elif not stamps or requested > min(
            max(stamp, self._channels[name].mark) for name, stamp in stamps.items()
        ):
            return False
        self._moved = [name for name, stamp in stamps.items() if stamp > BEGINNING]
        for name in self._moved:
            channel = self._channels[name]
            channel.floor = max(channel.floor, stamps[name])
        self._advance(self._moved)
        self._raise_stale()
        return bool(self._moved) or not self._keys

    def when(self, requested: int, now: int) -> int | None:
        """Return the clock time at which :meth:`enable` can reach ``requested``; None if never."""
        stale = self.stale
        waits = [
            (self._timestamp(name, now), name)
            for name, channel in self._channels.items()
            if channel.mark < requested and name not in stale
        ]
        active = [stamp for stamp, _ in waits if stamp > BEGINNING]
        if not self._channels or (waits and not active):
            return None
        if not self._keys and len(active) < len(waits):
            return None
        missing = [requested - stamp for stamp in active]
        if not missing:
            return now
        return now + self._enabling.wait(min(missing) if self._keys else max(missing))

    # ---- batches and saving ----------------------------------------------------------------

    def marks_before(self) -> NamedMarks:
        """Return the marks by which rows of the coming batch are judged."""
        known = {name: channel.mark for name, channel in self._channels.items()}
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
            "channels": {name: channel.snapshot() for name, channel in self._channels.items()},
            "marks": self._marks.marks(),
            "value": self._marks.value,
            "floor": self._floor,
            "seen": dict(self._seen),
            "emitted": dict(self._emitted),
            **({} if self._stale is None else {"stale": self._stale.snapshot()}),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Set the state to that of a snapshot."""
        self._channels = {}
        for name, state in saved["channels"].items():
            self._channels[name] = self._make()
            self._channels[name].restore(state)
        self._short = {name for name, each in self._channels.items() if each.shortfall is not None}
        self._marks.restore(saved["marks"], saved["value"])
        self._floor = saved["floor"]
        self._seen, self._emitted = dict(saved["seen"]), dict(saved["emitted"])
        if self._stale is not None and "stale" in saved:
            self._stale.restore(saved["stale"])
