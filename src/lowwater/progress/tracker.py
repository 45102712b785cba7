"""The marks of a stream on one attribute: its channels judged, and the minimum over them.

A channel nobody announced joins at the mark the stream had when its first row came, because that
promise was already made to everyone downstream; its earlier rows are late. Channels that are
announced (``channels=``, or by a replay that knows its log) hold the mark from the start.

Where promises are made for single groups and nobody needs one on the whole stream, none is made,
and a group that appears later joins with no promise.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from heapq import heappush, heapreplace, nsmallest
from itertools import repeat
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lowwater.progress.channel import (
    Channel,
    MeasuredChannel,
    ProducerChannel,
    Ticks,
)
from lowwater.progress.contract import Contract, Jump, Learned, Punctuated, Within, WithinRows
from lowwater.progress.demand import Demand
from lowwater.progress.learned import Completeness, LearnedChannel
from lowwater.progress.runs import Runs
from lowwater.progress.shortfall import Shortfall
from lowwater.progress.silence import Silence
from lowwater.progress.stale import Moved, Place, Stale
from lowwater.progress.standing import Channels, NamedStanding
from lowwater.stream.element import BEGINNING, END_OF_TIME, MARK, Chunk
from lowwater.stream.low_water_mark import LowWaterMark
from lowwater.stream.time_domain import TimeDomain


@dataclass(slots=True)
class Judgement:
    """What the tracker says of the rows of a chunk, by row position."""

    met: Ticks
    leaps: NDArray[np.bool_]
    strays: int
    backward: int
    short: Short | None = None
    """The channel by which the stream began to be less complete than it should be, if it did."""


@dataclass(frozen=True, slots=True)
class Short:
    """The channel by which a stream began to fall short of its completeness."""

    channel: Hashable
    shortfall: Shortfall
    completeness: Completeness


def channel_maker(
    contract: Contract, domain: TimeDomain, jump: Jump | None
) -> Callable[[], Channel]:
    """How to make a channel that keeps this contract."""
    if isinstance(contract, Punctuated):
        return ProducerChannel
    over = domain.ticks(jump.over, "jump(...)") if jump else None
    if isinstance(contract, Learned):
        completeness = contract.completeness
        return lambda: LearnedChannel(completeness, over)
    slack = domain.ticks(contract.bound, "within(...)") if isinstance(contract, Within) else 0
    rows = contract.rows if isinstance(contract, WithinRows) else 0
    return lambda: MeasuredChannel(slack, rows, over)


class Tracker:
    """Follows every channel of one progressing attribute."""

    def __init__(
        self,
        make: Callable[[], Channel],
        silence: Silence,
        announced: Iterable[Hashable] = (),
        linear: bool = True,
        keys: Sequence[tuple[str, pl.DataType]] = (),
        stale: Stale | None = None,
    ):
        self._make, self._silence, self.linear = make, silence, linear
        self._keys = list(keys)  # of groups that are told promises of their own; none otherwise
        self._floor = BEGINNING  # promised for every channel, those to come included
        self._channels: dict[Hashable, Channel] = {}
        self._marks = LowWaterMark()
        self._seen: dict[Hashable, int] = {}
        self._told: dict[Hashable, int] = {}
        self._moved: list[Hashable] = []
        self._short: set[Hashable] = set()  # channels that are less complete than they should be
        self._stale = stale
        self.set_aside = Moved()  # who was set aside by what came last, and who came back
        for name in announced:
            self._admit(name, BEGINNING)

    @property
    def mark(self) -> int:
        """The least mark of all channels."""
        return max(self._marks.value, self._floor)

    @property
    def promised(self) -> int:
        """The promise that holds for the whole stream."""
        return self.mark if self.linear else self._floor

    @property
    def shown(self) -> int:
        """A mark for people."""
        return self.mark

    @property
    def channels(self) -> dict[Hashable, Channel]:
        """The channels known so far."""
        return self._channels

    @property
    def slowest(self) -> Hashable:
        """The channel that holds the mark back."""
        aside = self.stale
        if aside:
            holding = {name: each.mark for name, each in self._channels.items()}
            return min(holding.keys() - aside, key=lambda name: holding[name])
        return self._marks.slowest if self._channels else None

    @property
    def stale(self) -> frozenset[Hashable]:
        """The channels that are set aside."""
        return frozenset(self._stale.names) if self._stale is not None else frozenset()

    def furthest_behind(self, limit: int) -> Channels:
        """How far all channels are, and those that are furthest behind."""
        aside = self.stale
        marks = [
            (channel.own if name in aside else channel.mark, name)
            for name, channel in list(self._channels.items())
        ]
        least = nsmallest(limit, marks, key=lambda each: each[0])
        return Channels(
            len(marks),
            max((mark for mark, _ in marks), default=BEGINNING),
            tuple((name, mark, self._seen.get(name)) for mark, name in least),
            tuple(name for _, name in least if name in aside),
            len(aside),
        )

    # ---- rows ------------------------------------------------------------------------------

    def observe(self, times: Ticks, marks: Ticks, runs: Runs, now: int) -> Judgement:
        """Judge the rows of a chunk."""
        order = sorted(runs, key=lambda each: each[0] not in self._channels)
        new = bool(order) and order[-1][0] not in self._channels
        sweep = _Sweep(self, order) if new and self.linear else None
        return self._judge(times, marks, order, now, sweep)

    @property
    def joining(self) -> int:
        """The mark at which a channel nobody has announced would join now."""
        return self.promised if self._channels else self._floor

    def absorb(self, times: Ticks, marks: Ticks, runs: Runs, now: int) -> Judgement:
        """Take in the times of one batch, each channel's in ascending order; all joined at once."""
        joining = self.joining
        order = list(runs)
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
        sweep: _Sweep | None,
        batch: bool = False,
    ) -> Judgement:
        judged = Judgement(
            np.full(len(times), BEGINNING, dtype=np.int64), np.zeros(len(times), bool), 0, 0
        )
        for name, rows in order:
            if name not in self._channels:
                self._admit(name, self._floor if sweep is None else sweep.mark_before(int(rows[0])))
            channel = self._channels[name]
            start, short = channel.mark, _latest(channel)
            alone = len(rows) == len(times)
            judge = channel.absorb if batch else channel.observe
            verdict = judge(times if alone else times[rows], marks if alone else marks[rows])
            if alone:
                judged.met = verdict.met
            else:
                judged.met[rows] = verdict.met
            judged.leaps[rows[verdict.leaps]] = True
            judged.strays += verdict.strays
            judged.backward += verdict.backward
            if isinstance(channel, LearnedChannel):
                began = self._begins_short(name, channel, short)
                judged.short = judged.short or began
            if sweep is not None:
                sweep.add(rows, start, verdict.after)
        self._moved = [name for name, _ in order]
        self._seen.update(dict.fromkeys(self._moved, now))
        self._marks.advance_all({name: self._channels[name].mark for name in self._moved})
        if self._stale is not None and order:
            self._set_aside(self._stale, now)
        return judged

    def _begins_short(
        self, name: Hashable, channel: LearnedChannel, before: Shortfall | None
    ) -> Short | None:
        """Take note of whether a channel falls short; the episode, if it is the stream's first."""
        first, latest = not self._short, channel.latest_shortfall
        (self._short.discard if channel.shortfall is None else self._short.add)(name)
        if latest is None or latest == before or not first:
            return None
        return Short(name, latest, channel.completeness)

    def _set_aside(self, stale: Stale, now: int) -> None:
        """Decide which channels do not hold the stream."""
        stale.hear(self._moved, now)
        found = {name: Place(each.mark, each.own) for name, each in self._channels.items()}
        self.set_aside = stale.decide(found, max(self._held_by_others(), self.mark))
        self._lift()

    def _held_by_others(self) -> int:
        """The least mark of the channels that are not set aside."""
        aside = self.stale
        marks = (each.mark for name, each in self._channels.items() if name not in aside)
        return min(marks, default=BEGINNING)

    def _lift(self) -> None:
        """What is set aside is promised what all others are: its rows below that are late."""
        aside = self.stale
        if not aside:
            return
        held = max(self._held_by_others(), self.mark)
        for name in aside:
            self._channels[name].floor = max(self._channels[name].floor, held)
        self._marks.advance_all({name: self._channels[name].mark for name in aside})

    def _admit(self, name: Hashable, floor: int) -> None:
        channel = self._make()
        channel.floor = floor
        self._channels[name] = channel
        self._marks.advance(name, floor)

    def least_beside(self, names: Iterable[Hashable]) -> int | None:
        """The least mark of the channels that are not among these; None if there are none."""
        others = self._channels.keys() - set(names)
        return min((self._channels[name].mark for name in others), default=None)

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
        rows, least = [], END_OF_TIME
        names = list(self._channels) if every else self._moved
        points = repeat(at_least) if isinstance(at_least, int) else at_least
        for name, point in zip(names, points, strict=False):
            mark = self._channels[name].mark
            useful = demand.roll(mark) if mark > BEGINNING else BEGINNING
            useful = max(useful, point) if mark >= point else useful
            before = max(self._told.get(name, BEGINNING), whole)
            if useful > before:
                self._told[name] = useful
                keys = name if isinstance(name, tuple) else (name,)
                rows.append((*keys, useful))
                least = min(least, before)
        if not rows:
            return None
        schema = [*self._keys, (MARK, pl.Int64())]
        return pl.DataFrame(rows, schema=schema, orient="row"), least

    def promise_all(self, mark: int) -> None:
        """Take a mark made by other means for all channels, also those nobody has seen yet."""
        self._floor = max(self._floor, mark)
        for channel in self._channels.values():
            channel.floor = max(channel.floor, mark)
        self._moved = list(self._channels)
        self._marks.advance_all({name: each.mark for name, each in self._channels.items()})

    # ---- silence ---------------------------------------------------------------------------

    def _stamp(self, name: Hashable, now: int) -> int:
        channel = self._channels[name]
        return self._silence.stamp(channel.newest, channel.settled, self._seen.get(name), now)

    @property
    def moved(self) -> Sequence[Hashable]:
        """The channels of which something came last."""
        return self._moved

    def mark_of(self, name: Hashable) -> int:
        """The mark of one channel."""
        return self._channels[name].mark if name in self._channels else BEGINNING

    def reached(self, name: Hashable, mark: int) -> int | None:
        """The clock time at which one channel can be stamped with a mark; None if never."""
        channel = self._channels.get(name)
        if channel is None:
            return None
        return self._silence.reached(channel.newest, channel.settled, self._seen.get(name), mark)

    def stamp(self, names: Sequence[Hashable], now: int) -> None:
        """Stamp some channels by their silence."""
        self._moved = list(names)
        for name in names:
            channel = self._channels[name]
            channel.floor = max(channel.floor, self._stamp(name, now))
        self._marks.advance_all({name: self._channels[name].mark for name in names})

    def enable(self, awaited: int, now: int) -> bool:
        """Stamp the channels if all can be past a mark by now; groups, those that can."""
        aside = self.stale
        stamps = {name: self._stamp(name, now) for name in self._channels if name not in aside}
        if self._keys:
            behind = {
                name: stamp
                for name, stamp in stamps.items()
                if self._channels[name].mark < max(awaited, stamp) and stamp >= awaited
            }
            stamps = {
                name: stamp
                for name, stamp in behind.items()
                if awaited == BEGINNING or self._channels[name].mark < awaited
            }
        elif not stamps or awaited > min(
            max(stamp, self._channels[name].mark) for name, stamp in stamps.items()
        ):
            return False
        self._moved = [name for name, stamp in stamps.items() if stamp > BEGINNING]
        for name in self._moved:
            channel = self._channels[name]
            channel.floor = max(channel.floor, stamps[name])
        self._marks.advance_all({name: self._channels[name].mark for name in self._moved})
        self._lift()
        return bool(self._moved) or not self._keys

    def when(self, awaited: int, now: int) -> int | None:
        """The clock time at which :meth:`enable` could do something; None if never."""
        aside = self.stale
        waits = [
            (self._stamp(name, now), name)
            for name, channel in self._channels.items()
            if channel.mark < awaited and name not in aside
        ]
        spoken = [stamp for stamp, _ in waits if stamp > BEGINNING]
        if not self._channels or (waits and not spoken):
            return None
        if not self._keys and len(spoken) < len(waits):
            return None
        missing = [awaited - stamp for stamp in spoken]
        if not missing:
            return now
        return now + self._silence.until(min(missing) if self._keys else max(missing))

    # ---- saving ----------------------------------------------------------------------------

    def standing(self) -> NamedStanding:
        """The marks rows of the coming batch are judged by."""
        known = {name: channel.mark for name, channel in self._channels.items()}
        return NamedStanding(known, self.joining)

    def left(self) -> NamedStanding:
        """The marks that hold now, as plain values that can be sent anywhere."""
        return self.standing()

    def settle(self) -> None:
        """Everything is in the snapshot."""

    def clear(self) -> None:
        """Nothing is kept anywhere else."""

    def snapshot(self) -> dict[str, Any]:
        """Everything needed to go on elsewhere."""
        return {
            "channels": {name: channel.snapshot() for name, channel in self._channels.items()},
            "marks": self._marks.marks(),
            "value": self._marks.value,
            "floor": self._floor,
            "seen": dict(self._seen),
            "told": dict(self._told),
            **({} if self._stale is None else {"stale": self._stale.snapshot()}),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        self._channels = {}
        for name, state in saved["channels"].items():
            self._channels[name] = self._make()
            self._channels[name].restore(state)
        self._short = {
            name
            for name, channel in self._channels.items()
            if isinstance(channel, LearnedChannel) and channel.shortfall is not None
        }
        self._marks.restore(saved["marks"], saved["value"])
        self._floor = saved["floor"]
        self._seen, self._told = dict(saved["seen"]), dict(saved["told"])
        if self._stale is not None and "stale" in saved:
            self._stale.restore(saved["stale"])


def _latest(channel: Channel) -> Shortfall | None:
    return channel.latest_shortfall if isinstance(channel, LearnedChannel) else None


class _Sweep:
    """The stream's mark along a chunk, for channels whose first row is in it.

    Marks only grow along the chunk, so each is looked up anew only when it is the least.
    """

    def __init__(self, tracker: Tracker, order: list[tuple[Hashable, NDArray[np.int64]]]):
        self._lowest, self._floor = tracker.mark, tracker.joining
        self._others = tracker.least_beside(name for name, _ in order)
        self._heap: list[tuple[int, int]] = []
        self._trails: list[tuple[NDArray[np.int64], Ticks]] = []

    def add(self, rows: NDArray[np.int64], start: int, after: Ticks) -> None:
        """Take note of a channel's rows, its mark before them and after each."""
        heappush(self._heap, (start, len(self._trails)))
        self._trails.append((rows, after))

    def mark_before(self, row: int) -> int:
        """The stream's mark just before a row; rows are asked for in ascending order."""
        while self._heap:
            mark, at = self._heap[0]
            rows, after = self._trails[at]
            seen = int(np.searchsorted(rows, row))
            now = int(after[seen - 1]) if seen else mark
            if now <= mark:
                break
            heapreplace(self._heap, (now, at))
        known = [mark for mark, _ in self._heap[:1]]
        known += [] if self._others is None else [self._others]
        return max(min(known), self._lowest) if known else self._floor
