"""The progress of one stream: its marks, and the punctuation that follows from them.

Marks become punctuation no finer than the consumers demand, and none is emitted twice. Enabling
timestamps (ETS §5) raise the marks of idle channels on request. No clock and no row is read here:
the engine passes the time, and an intake moves the trackers by the rows that it judges.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from lowwater.progress.completeness import Completeness, combine
from lowwater.progress.demand import Demand
from lowwater.progress.ended import EndedNames
from lowwater.progress.group_tracker import GroupTracker
from lowwater.progress.idle import EnablingRule, RequestQueue
from lowwater.progress.joint import Attributes, Bounds, JointMarks
from lowwater.progress.marks import ChannelSummary
from lowwater.progress.options import Every, OnDemand, Timer
from lowwater.progress.spec import StreamSpec, channel_name
from lowwater.progress.stale import StaleChannels
from lowwater.progress.tracker import Tracker
from lowwater.state.store import ChunkStore
from lowwater.stream.duration import SECOND, nanoseconds
from lowwater.stream.element import (
    BEGINNING,
    END_OF_TIME,
    MARK,
    SEQUENCE,
    Chunk,
    GroupPunctuation,
    Punctuation,
)
from lowwater.stream.time_domain import TimeDomain

Promises = list[Punctuation | GroupPunctuation]


class Punctuator:
    """The marks of one stream on all its attributes, and the punctuation on them.

    ``demands`` are, by attribute, the marks that consumers can use; no punctuation is made on
    others. ``announced`` are channels known from the start. ``store`` holds the marks of groups
    that are not in memory; None if all are.

    Invariant: the punctuation on an attribute never goes back, and no row let in after it is below
    it.
    """

    def __init__(
        self,
        spec: StreamSpec,
        demands: Mapping[str, Demand],
        announced: Iterable[Hashable] = (),
        store: ChunkStore | None = None,
    ):
        self.spec = spec
        self.numbered = SEQUENCE in demands
        """True if rows are numbered, because an operator needs row numbers."""
        self.sequence = 0
        """Number of the next row."""
        self._demands = dict(demands)
        if isinstance(spec.punctuate, Every):
            for attribute, domain in spec.domains.items():
                step = domain.ticks(spec.punctuate.step, "every(...)")
                linear = attribute in demands and demands[attribute].linear
                self._demands[attribute] = Demand.grid(step).with_linear(linear)
        self._timed = isinstance(spec.punctuate, Timer)  # a timer emits, not the rows
        channels = tuple(announced) if spec.key_columns else (None,)
        self._grouped = bool(spec.groups) and spec.stamp == "external"
        self.trackers: dict[str, Tracker | GroupTracker] = {
            attribute: self._tracker(attribute, channels, store)
            for attribute in spec.contracts
            if spec.stamp != "latent" and spec.promises(attribute)
        }
        """The tracker of each attribute with marks."""
        keys = {name: spec.row_schema[name] for name in spec.key_columns}
        self.joint = JointMarks()
        """The joint promises of the producer."""
        self._joint: dict[Attributes, Bounds] = {}  # the last joint punctuation
        self.ended_names = EndedNames(keys, spec.ended)
        """The channels or groups that ended last."""
        self._requests = (
            {attribute: RequestQueue(tracker) for attribute, tracker in self.trackers.items()}
            if self._grouped and isinstance(spec.idle, OnDemand)
            else {}
        )
        self._emitted: dict[str, int] = {}  # mark in the last punctuation on each attribute

    def _tracker(
        self, attribute: str, channels: tuple[Hashable, ...], store: ChunkStore | None
    ) -> Tracker | GroupTracker:
        spec = self.spec
        contract, domain = spec.contracts[attribute], spec.domains[attribute]
        demand = self._demands.get(attribute)
        linear = not self._grouped or (demand is not None and demand.linear)
        rate = domain.ticks_per_second
        skew = nanoseconds(spec.idle.skew, "skew") if spec.idle else 0
        enabling = EnablingRule(rate, skew * rate // SECOND, self._behind_clock(rate))
        jump = self.jump(attribute)
        keys = [(key, spec.row_schema[key]) for key in spec.groups] if self._grouped else []
        slack = contract.top_slack(domain)
        if keys and slack is not None:
            rows = [name if isinstance(name, tuple) else (name,) for name in channels]
            known = pl.DataFrame(rows, schema=keys, orient="row")
            name = f"groups {attribute}"
            return GroupTracker(slack, jump, enabling, known, linear=linear, store=store, name=name)
        return Tracker(
            lambda: contract.channel(domain, jump),
            enabling,
            channels,
            linear=linear,
            keys=keys,
            stale=self._stale(domain),
        )

    def jump(self, attribute: str) -> int | None:
        """Return the ticks by which a row is dated far ahead; None if no such rows are looked
        for."""
        jump = self.spec.jump
        return self.spec.domains[attribute].ticks(jump.over, "jump(...)") if jump else None

    def _behind_clock(self, rate: int) -> int | None:
        """Return the ticks by which a row may be behind the clock; None if that is not known."""
        idle = self.spec.idle
        if self.spec.stamp == "internal":
            return 0
        if idle is None or idle.behind_clock is None:
            return None
        return -(-nanoseconds(idle.behind_clock, "behind_clock") * rate // SECOND)

    def shift_arrivals(self, later: int) -> None:
        """Take note that rows are read ``later`` nanoseconds after the times they arrived at.

        So it is with a log that is played on a real clock.
        """
        for tracker in self.trackers.values():
            tracker.enabling = replace(tracker.enabling, shift=later)

    def _stale(self, domain: TimeDomain) -> StaleChannels | None:
        after = self.spec.stale_after
        if after is None:
            return None
        return StaleChannels(domain.ticks(after, "stale_after="), nanoseconds(after))

    # ---- marks -----------------------------------------------------------------------------

    def mark(self, attribute: str) -> int:
        """Return the mark of an attribute in ticks, emitted or not."""
        if attribute == SEQUENCE:
            return self.sequence
        tracker = self.trackers.get(attribute)
        return tracker.mark if tracker else BEGINNING

    def shown(self, attribute: str) -> int:
        """Return the mark to show to people, in ticks; it is found without reading every group."""
        tracker = self.trackers.get(attribute)
        return tracker.shown if tracker else BEGINNING

    def shown_mark(self, attribute: str) -> object:
        """Return the mark to show to people, as a value of the time column."""
        return self.spec.domains[attribute].show(self.shown(attribute))

    def slowest(self, attribute: str) -> Hashable:
        """Return the channel that holds a mark back; None if the attribute has no mark."""
        tracker = self.trackers.get(attribute)
        return tracker.slowest if tracker else None

    def channels(self, attribute: str, limit: int) -> ChannelSummary | None:
        """Summarise the channels, with the ``limit`` of them that are furthest behind.

        None if the stream is one channel, or the attribute has no mark.
        """
        tracker = self.trackers.get(attribute)
        return tracker.furthest_behind(limit) if tracker and self.spec.key_columns else None

    def completeness(self) -> list[tuple[str, Hashable, Completeness]]:
        """Return the completeness of the attributes with a learned mark.

        For each attribute: the stream (channel None), then each channel.
        """
        found: list[tuple[str, Hashable, Completeness]] = []
        for attribute, tracker in self.trackers.items():
            channels = tracker.completeness()
            if channels:
                found.append((attribute, None, combine([each for _, each in channels])))
            if self.spec.channel is not None:
                found += [(attribute, name, each) for name, each in channels]
        return found

    def reschedule(self, attribute: str) -> None:
        """Schedule the requests again after the marks of some groups have moved."""
        if requests := self._requests.get(attribute):
            requests.reschedule(self.trackers[attribute].moved)

    def reschedule_names(self, attribute: str, keys: Chunk) -> None:
        """Schedule the requests of some groups again."""
        if requests := self._requests.get(attribute):
            requests.reschedule([channel_name(parts) for parts in keys.rows()])

    def promise_all(self, mark: int) -> None:
        """Raise the marks of all attributes to at least ``mark``, in ticks."""
        for tracker in self.trackers.values():
            tracker.promise_all(mark)

    # ---- punctuation -----------------------------------------------------------------------

    def promises(self) -> Promises:
        """Return the punctuation that is due: new, and useful to a consumer."""
        due: Promises = []
        for attribute, tracker in self.trackers.items():
            due += self._punctuate(attribute, tracker.promised)
            due += self._punctuate_groups(attribute)
        return [*due, *self._punctuate_jointly()] if self.joint else due

    @property
    def channel_names(self) -> list[Hashable]:
        """The channels whose joint promises are those of the stream."""
        first = next(iter(self.trackers.values()), None)
        return first.names if isinstance(first, Tracker) and not self._grouped else []

    def _punctuate_jointly(self) -> Promises:
        """Return the joint punctuation that is new, and on attributes that consumers use."""
        due: Promises = []
        for attributes, bounds in self.joint.promised(self.channel_names).items():
            demands = [self._demands.get(name) for name in attributes]
            useful = tuple(
                demand.round_down(bound) if demand is not None else BEGINNING
                for demand, bound in zip(demands, bounds, strict=True)
            )
            promise = Punctuation(tuple(zip(attributes, useful, strict=True)))
            if BEGINNING not in useful and promise.goes_beyond(self._joint.get(attributes)):
                self._joint[attributes] = useful
                due.append(Punctuation.jointly(dict(promise.bounds)))
        return due

    def row_promises(self) -> Promises:
        """Return the punctuation due after rows; with a timer, only that on row numbers."""
        promises = [] if self._timed else self.promises()
        return [*promises, *self._punctuate(SEQUENCE, self.sequence)] if self.numbered else promises

    def _punctuate(self, attribute: str, mark: int, at_least: int = BEGINNING) -> Promises:
        demand = self._demands.get(attribute)
        if demand is None:
            return []
        useful = max(demand.round_down(mark), at_least) if mark > BEGINNING else BEGINNING
        if useful <= self._emitted.get(attribute, BEGINNING):
            return []
        self._emitted[attribute] = useful
        return [Punctuation.linear(attribute, useful)]

    def _punctuate_groups(
        self, attribute: str, at_least: int | Sequence[int] = BEGINNING
    ) -> Promises:
        """Return the new punctuation of single groups: of those that moved, with a timer of all.

        If ``at_least`` has a mark for each group that moved, it is of those, also with a timer.
        """
        demand = self._demands.get(attribute)
        if demand is None or not self._grouped:
            return []
        whole = self._emitted.get(attribute, BEGINNING)
        every = self._timed and isinstance(at_least, int)
        marks = self.trackers[attribute].take_group_marks(demand, whole, at_least, every)
        return [GroupPunctuation(attribute, *marks)] if marks else []

    def end(self, keys: Chunk) -> Promises:
        """Forget channels or groups that have ended; return the punctuation on groups that says so.

        ``keys`` has a row for each. They no longer hold any mark.
        """
        if not keys.height:
            return []
        self.ended_names.add(keys)
        self.joint.end(channel_name(parts) for parts in keys.rows())
        promises: Promises = []
        for attribute, tracker in self.trackers.items():
            before = tracker.end(keys)
            self.reschedule_names(attribute, keys)
            if self._grouped and attribute in self._demands:
                before = max(before, self._emitted.get(attribute, BEGINNING))
                marks = keys.with_columns(pl.lit(END_OF_TIME, dtype=pl.Int64).alias(MARK))
                promises.append(GroupPunctuation(attribute, marks, before))
        return promises

    # ---- enabling timestamps ---------------------------------------------------------------

    def enable(self, attribute: str, requested: int, now: int) -> Promises:
        """Return an enabling timestamp of at least ``requested``, if ``now`` allows one.

        ``requested`` is ticks, ``now`` the clock time in nanoseconds. The result is empty if the
        clock does not allow it yet.
        """
        tracker = self.trackers.get(attribute)
        if tracker is None or not tracker.enable(requested, now):
            return []
        reached = requested if tracker.promised >= requested else BEGINNING
        promises = self._punctuate(attribute, tracker.promised, at_least=reached)
        return [*promises, *self._punctuate_groups(attribute, at_least=requested)]

    def enable_all(self, now: int) -> list[Promises]:
        """Return the enabling timestamps that ``now`` allows, a list for each attribute."""
        return [self.enable(attribute, BEGINNING, now) for attribute in self.spec.contracts]

    def when(self, attribute: str, requested: int, now: int) -> int | None:
        """Return the clock time at which :meth:`enable` can reach ``requested``; None if never."""
        tracker = self.trackers.get(attribute)
        return tracker.when(requested, now) if tracker else None

    def request(self, attribute: str, origin: Hashable, group: Hashable, mark: int | None) -> None:
        """Set the mark that ``origin`` requests of one group; None withdraws its request."""
        if attribute in self._requests:
            self._requests[attribute].put(origin, group, mark)

    def enable_groups(self, now: int) -> Promises:
        """Return the enabling timestamps of groups whose requests can be met by ``now``."""
        promises: Promises = []
        for attribute, requests in self._requests.items():
            tracker = self.trackers[attribute]
            due = requests.take(now)
            if due:
                marks = dict(due)
                tracker.stamp(list(marks), now)
                requests.reschedule(marks)
                moved = tracker.moved
                others = max((marks[each] for each in marks.keys() - {*moved}), default=BEGINNING)
                promises += self._punctuate(attribute, tracker.promised, at_least=others)
                promises += self._punctuate_groups(attribute, [marks[each] for each in moved])
        return promises

    def due_groups(self) -> int | None:
        """Return the clock time at which :meth:`enable_groups` meets a request; None if never."""
        times = [requests.due() for requests in self._requests.values()]
        return min((time for time in times if time is not None), default=None)

    # ---- saving ----------------------------------------------------------------------------

    def clear(self) -> None:
        """Drop all groups; for the end of the stream."""
        for tracker in self.trackers.values():
            tracker.clear()

    def settle(self) -> None:
        """Write the groups that moved to the store, before an engine saves the state."""
        for tracker in self.trackers.values():
            tracker.settle()

    def snapshot(self) -> dict[str, Any]:
        """Return the state that :meth:`restore` needs, beside what is in the store."""
        return {
            "sequence": self.sequence,
            "trackers": {name: tracker.snapshot() for name, tracker in self.trackers.items()},
            "emitted": dict(self._emitted),
            "ended": self.ended_names.snapshot(),
            "joint": (self.joint.snapshot(), dict(self._joint)),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Set the state to that of a snapshot."""
        self.sequence = saved["sequence"]
        for name, state in saved["trackers"].items():
            self.trackers[name].restore(state)
        self._emitted = dict(saved["emitted"])
        self.ended_names.restore(saved["ended"])
        marks, self._joint = saved["joint"]
        self.joint.restore(marks)
