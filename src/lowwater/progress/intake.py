"""The input operator (OOP §5.4): rows in; kept rows, refused rows and promises out.

It judges the rows of each chunk against the stream's contracts and turns the marks into punctuation
no finer than the consumers demand and never twice. It also makes enabling timestamps (ETS §5) when
asked. It reads no clock: the engine tells ``now``.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from lowwater.errors import OptionError
from lowwater.progress import late
from lowwater.progress.channel import Ticks
from lowwater.progress.conform import conform
from lowwater.progress.contract import Every, OnDemand, Ordered, Punctuated, Timer, Within
from lowwater.progress.demand import Demand
from lowwater.progress.group_tracker import GroupTracker
from lowwater.progress.late import LateAccount
from lowwater.progress.learned import Completeness, LearnedChannel, together
from lowwater.progress.refusal import Mask, Refusals
from lowwater.progress.request_queue import RequestQueue
from lowwater.progress.runs import Runs
from lowwater.progress.silence import Silence
from lowwater.progress.spec import StreamSpec
from lowwater.progress.stale import Moved, Stale
from lowwater.progress.standing import Channels
from lowwater.progress.tracker import Judgement, Tracker, channel_maker
from lowwater.state.store import ChunkStore
from lowwater.stream.duration import SECOND, nanoseconds
from lowwater.stream.element import (
    BEGINNING,
    END_OF_TIME,
    SEQUENCE,
    Chunk,
    GroupPunctuation,
    Punctuation,
)
from lowwater.stream.time_domain import TimeDomain

Promises = list[Punctuation | GroupPunctuation]


@dataclass(slots=True)
class Taken:
    """What came of a chunk: rows let in, rows refused (None if none), promises that follow."""

    rows: Chunk
    refused: Chunk | None
    promises: Promises


class Intake:
    """Lets the rows of one source in and tells their progress."""

    def __init__(
        self,
        spec: StreamSpec,
        demands: Mapping[str, Demand],
        announced: Iterable[Hashable] = (),
        store: ChunkStore | None = None,
    ):
        self.spec = spec
        self.account = LateAccount(spec.name)
        self._refusals = Refusals(spec, self.account)
        self._numbered = SEQUENCE in demands
        self._sequence = 0
        self._demands = dict(demands)
        if isinstance(spec.punctuate, Every):
            for attribute, domain in spec.domains.items():
                step = domain.ticks(spec.punctuate.step, "every(...)")
                linear = attribute in demands and demands[attribute].linear
                self._demands[attribute] = Demand.grid(step).made(linear)
        self._held = isinstance(spec.punctuate, Timer)
        channels = tuple(announced) if spec.key_columns else (None,)
        self._grouped = bool(spec.groups) and spec.stamp == "external"
        self._trackers = {
            attribute: self._tracker(attribute, channels, store)
            for attribute in spec.contracts
            if spec.stamp != "latent" and spec.promises(attribute)
        }
        self._requests = (
            {attribute: RequestQueue(tracker) for attribute, tracker in self._trackers.items()}
            if self._grouped and isinstance(spec.idle, OnDemand)
            else {}
        )
        self._told: dict[str, int] = {}

    def _tracker(
        self, attribute: str, channels: tuple[Hashable, ...], store: ChunkStore | None
    ) -> Tracker | GroupTracker:
        spec = self.spec
        contract, domain, demand = (
            spec.contracts[attribute],
            spec.domains[attribute],
            self._demands.get(attribute),
        )
        linear = not self._grouped or (demand is not None and demand.linear)
        rate = domain.ticks_per_second
        skew = nanoseconds(spec.idle.skew, "skew") if spec.idle else 0
        silence = Silence(rate, skew * rate // SECOND, spec.stamp == "internal")
        keys = [(key, spec.row_schema[key]) for key in spec.groups] if self._grouped else []
        if not keys or not isinstance(contract, Ordered | Within):
            make = channel_maker(contract, domain, spec.jump)
            return Tracker(make, silence, channels, linear, keys, self._stale(domain))
        rows = [name if isinstance(name, tuple) else (name,) for name in channels]
        return GroupTracker(
            domain.ticks(contract.bound, "within(...)") if isinstance(contract, Within) else 0,
            domain.ticks(spec.jump.over, "jump(...)") if spec.jump else None,
            silence,
            pl.DataFrame(rows, schema=keys, orient="row"),
            linear,
            store,
            f"groups {attribute}",
        )

    def _stale(self, domain: TimeDomain) -> Stale | None:
        after = self.spec.stale_after
        if after is None:
            return None
        return Stale(domain.ticks(after, "stale_after="), nanoseconds(after))

    def _tell_stale(self, attribute: str, tracker: Tracker | GroupTracker) -> None:
        """Say which channels were set aside by what has come, and which have caught up."""
        if isinstance(tracker, Tracker) and tracker.set_aside:
            rate = self.spec.domains[attribute].ticks_per_second
            self._refusals.stale(attribute, tracker.set_aside, rate)
            tracker.set_aside = Moved()

    # ---- rows ------------------------------------------------------------------------------

    def take(
        self, chunk: Chunk, now: int, arrivals: Ticks | None = None, until: int | None = None
    ) -> Taken:
        """Let a chunk in; ``now`` is the engine's clock in nanoseconds.

        ``arrivals`` are the clock times at which the rows arrived, where the source knows them.
        Rows of an internally stamped stream still to come arrive at ``until`` or later; None
        stands for ``now``.
        """
        chunk = self._number(conform(self.spec, chunk, now, arrivals))
        if self.spec.stamp == "external":
            rows = self._judged(chunk, now)
        else:  # a clock never goes back: nothing to judge
            rows = chunk
            for tracker in self._trackers.values():
                tracker.promise_all((now if until is None else until) // 1_000)
        promises = [] if self._held else self.promises()
        return Taken(rows, self._collected(), [*promises, *self._sequence_promise()])

    def _judged(self, chunk: Chunk, now: int) -> Chunk:
        """The rows that keep every promise; the others are refused."""
        pure = self._pure(chunk)
        usable = self._usable(chunk, pure)
        keep = usable & ~pure
        if not self._trackers:  # nothing is promised
            return chunk if keep.all() else chunk.filter(pl.Series(keep))
        keys = self.spec.key_columns
        order = Runs.of(chunk, keys, usable)
        timed = Runs.of(chunk, keys, keep) if pure.any() else order
        verdicts = []
        for attribute, tracker in self._trackers.items():
            times, marks = self._ticks(chunk, attribute, usable)
            told = isinstance(self.spec.contracts[attribute], Punctuated)
            verdicts.append(
                (attribute, times, tracker.observe(times, marks, order if told else timed, now))
            )
            if requests := self._requests.get(attribute):
                requests.moved(tracker.moved)
        if self.spec.late == "fail":  # by the first row that fails, whichever promise it breaks
            verdicts.sort(key=lambda each: _first(keep & (each[1] < each[2].met)))
        for attribute, times, judged in verdicts:
            self._refuse(chunk, attribute, times, judged, keep)
            self._tell_stale(attribute, self._trackers[attribute])
        return chunk if keep.all() else chunk.filter(pl.Series(keep))

    def _refuse(
        self, chunk: Chunk, attribute: str, times: Ticks, judged: Judgement, keep: Mask
    ) -> None:
        if judged.backward:
            self._refusals.backward(attribute, judged.backward, self._shown_mark(attribute))
        leaps = keep & judged.leaps
        if self.spec.jump and self.spec.jump.then != "warn" and leaps.any():
            self._refusals.ahead(chunk, attribute, leaps, judged.met)
            keep &= ~leaps
        if judged.strays:
            self._refusals.strays(attribute, judged.strays)
        if judged.short is not None:
            self._refusals.short(attribute, judged.short)
        broken = keep & (times < judged.met)
        if broken.any():
            self._refusals.late(chunk, attribute, times, judged.met, broken)
            keep &= ~broken

    def _pure(self, chunk: Chunk) -> Mask:
        """Rows that are nothing but a producer's punctuation."""
        pure = np.zeros(chunk.height, dtype=bool)
        for attribute, contract in self.spec.contracts.items():
            if isinstance(contract, Punctuated) and chunk[attribute].null_count():
                bare = chunk[attribute].is_null() & chunk[contract.column].is_not_null()
                pure |= bare.to_numpy()
        return pure

    def _usable(self, chunk: Chunk, pure: Mask) -> Mask:
        """Rows that have a time and a channel; the others are refused."""
        usable = np.ones(chunk.height, dtype=bool)

        def refuse(bad: pl.Series, reason: str, detail: str) -> None:
            mask = bad.fill_null(False).to_numpy() & usable
            if reason != late.NO_CHANNEL:
                mask &= ~pure
            if mask.any():
                self._refusals.unusable(chunk, mask, reason, detail)
                usable[mask] = False

        for attribute, domain in self.spec.domains.items():
            column = chunk[attribute]
            if column.null_count():
                refuse(column.is_null(), late.NO_TIME, f"{attribute} is null or not a number")
            low, high = domain.valid
            outside = self._outside(chunk, attribute, low, high)
            if outside is not None:
                refuse(outside, late.BAD_TIME, f"{attribute} is out of range")
        for name in self.spec.key_columns:
            if chunk[name].null_count():
                refuse(chunk[name].is_null(), late.NO_CHANNEL, f"{name} is null")
        return usable

    def _outside(self, chunk: Chunk, attribute: str, low: int, high: int) -> pl.Series | None:
        """Which times are no times; None if all are."""
        domain, column = self.spec.domains[attribute], chunk[attribute]
        if not column.null_count():
            times = domain.array_of(column)
            if not len(times) or (times.min() >= low and times.max() < high):
                return None
        ticks = domain.ticks_of(column)
        return (ticks < low) | (ticks >= high)

    def _ticks(self, chunk: Chunk, attribute: str, usable: Mask) -> tuple[Ticks, Ticks]:
        domain = self.spec.domains[attribute]
        column = chunk[attribute]
        if column.null_count():
            times = domain.ticks_of(column).fill_null(END_OF_TIME).to_numpy()
        else:
            times = domain.array_of(column)
        if not usable.all():
            times = np.where(usable, times, END_OF_TIME)
        contract = self.spec.contracts[attribute]
        if isinstance(contract, Punctuated):
            return times, self._producer_marks(chunk, attribute, contract.column)
        return times, times

    def _producer_marks(self, chunk: Chunk, attribute: str, column: str) -> Ticks:
        """The marks a producer sent, row by row; a mark that is no time is not believed."""
        domain = self.spec.domains[attribute]
        low, high = domain.valid
        marks = domain.ticks_of(chunk[column]).fill_null(BEGINNING).to_numpy()
        strange = (marks != BEGINNING) & ((marks < low) | (marks >= high))
        if not strange.any():
            return marks
        self._refusals.strange(attribute, int(strange.sum()))
        return np.where(strange, BEGINNING, marks)

    def _number(self, chunk: Chunk) -> Chunk:
        """Rows with their numbers, as they come: those that will be refused have one, too. What is
        nothing but a producer's punctuation is no row."""
        if not self._numbered:
            return chunk
        numbers = self._sequence + np.cumsum(~self._pure(chunk))
        self._sequence = int(numbers[-1]) if chunk.height else self._sequence
        return chunk.with_columns(pl.Series(SEQUENCE, numbers - 1, dtype=pl.Int64))

    def _collected(self) -> Chunk | None:
        """The rows refused since the last call, without their numbers; None if there are none."""
        refused = self._refusals.collected()
        return refused.drop(SEQUENCE) if refused is not None and self._numbered else refused

    def _sequence_promise(self) -> Promises:
        return self._tell(SEQUENCE, self._sequence) if self._numbered else []

    # ---- promises --------------------------------------------------------------------------

    def mark(self, attribute: str) -> int:
        """The mark now held on an attribute, told or not."""
        if attribute == SEQUENCE:
            return self._sequence
        tracker = self._trackers.get(attribute)
        return tracker.mark if tracker else BEGINNING

    def shown(self, attribute: str) -> int:
        """A mark for people that is known without looking at every group."""
        tracker = self._trackers.get(attribute)
        return tracker.shown if tracker else BEGINNING

    def _shown_mark(self, attribute: str) -> object:
        return self.spec.domains[attribute].show(self.shown(attribute))

    def nothing_refused(self) -> Chunk:
        """The side output of a stream that kept every promise."""
        return self._refusals.nothing()

    def slowest(self, attribute: str) -> Hashable:
        """The channel that holds the mark of an attribute back; None where nothing is promised."""
        tracker = self._trackers.get(attribute)
        return tracker.slowest if tracker else None

    def channels(self, attribute: str, limit: int) -> Channels | None:
        """How far the channels of an attribute are; None where there is but one, or no promise."""
        tracker = self._trackers.get(attribute)
        return tracker.furthest_behind(limit) if tracker and self.spec.key_columns else None

    def completeness(self) -> list[tuple[str, Hashable, Completeness]]:
        """How complete attributes are whose promise is learned: the stream, then its channels."""
        found: list[tuple[str, Hashable, Completeness]] = []
        for attribute, tracker in self._trackers.items():
            if not isinstance(tracker, Tracker):
                continue
            channels = [
                (name, channel.completeness)
                for name, channel in list(tracker.channels.items())
                if isinstance(channel, LearnedChannel)
            ]
            if channels:
                found.append((attribute, None, together([each for _, each in channels])))
            if self.spec.channel is not None:
                found += [(attribute, name, each) for name, each in channels]
        return found

    def promises(self) -> Promises:
        """The punctuation that is due: new, and useful to somebody."""
        due: Promises = []
        for attribute, tracker in self._trackers.items():
            due += self._tell(attribute, tracker.promised)
            due += self._tell_groups(attribute)
        return due

    def _tell(self, attribute: str, mark: int, at_least: int = BEGINNING) -> Promises:
        demand = self._demands.get(attribute)
        if demand is None:
            return []
        useful = max(demand.roll(mark), at_least) if mark > BEGINNING else BEGINNING
        if useful <= self._told.get(attribute, BEGINNING):
            return []
        self._told[attribute] = useful
        return [Punctuation.linear(attribute, useful)]

    def _tell_groups(self, attribute: str, at_least: int | Sequence[int] = BEGINNING) -> Promises:
        """What is new of single groups; of all of them, where marks are told by the clock."""
        demand = self._demands.get(attribute)
        if demand is None or not self._grouped:
            return []
        whole = self._told.get(attribute, BEGINNING)
        moved = self._trackers[attribute].told(demand, whole, at_least, self._held)
        return [GroupPunctuation(attribute, *moved)] if moved else []

    def promise(self, attribute: str, mark: int) -> Promises:
        """Take a promise the producer makes outside its rows, for all channels."""
        tracker = self._trackers.get(attribute)
        if tracker is None:
            none = "its timestamps are latent" if self.spec.stamp == "latent" else "it says so"
            known = ", ".join(self._trackers) or f"none: {none}"
            raise OptionError(
                f"stream {self.spec.name!r} makes no promises on {attribute!r} (it does on {known})"
            )
        if mark < tracker.mark:
            self._refusals.backward(attribute, 1, self._shown_mark(attribute))
        tracker.promise_all(mark)
        return self.promises()

    # ---- enabling timestamps ---------------------------------------------------------------

    def enable(self, attribute: str, awaited: int, now: int) -> Promises:
        """An enabling timestamp of at least ``awaited``, if ``now`` allows one; else nothing."""
        tracker = self._trackers.get(attribute)
        if tracker is None or not tracker.enable(awaited, now):
            return []
        reached = awaited if tracker.promised >= awaited else BEGINNING
        told = self._tell(attribute, tracker.promised, at_least=reached)
        return [*told, *self._tell_groups(attribute, at_least=awaited)]

    def when(self, attribute: str, awaited: int, now: int) -> int | None:
        """The clock time at which :meth:`enable` could reach ``awaited``; None if never."""
        tracker = self._trackers.get(attribute)
        return tracker.when(awaited, now) if tracker else None

    # ---- requests of single groups ---------------------------------------------------------

    def request(self, attribute: str, origin: Hashable, group: Hashable, mark: int | None) -> None:
        """Take note of the mark that somebody awaits of one group; None: none any more."""
        if attribute in self._requests:
            self._requests[attribute].put(origin, group, mark)

    def enable_groups(self, now: int) -> Promises:
        """Enabling timestamps of the groups whose clocks have come to what is awaited of them."""
        told: Promises = []
        for attribute, requests in self._requests.items():
            tracker = self._trackers[attribute]
            due = requests.take(now)
            if due:
                tracker.stamp([group for group, _ in due], now)
                requests.moved([group for group, _ in due])
                told += self._tell(attribute, tracker.promised)
                told += self._tell_groups(attribute, [mark for _, mark in due])
        return told

    def due_groups(self) -> int | None:
        """The clock time at which :meth:`enable_groups` has something to tell; None if never."""
        times = [requests.due() for requests in self._requests.values()]
        return min((time for time in times if time is not None), default=None)

    @property
    def looked(self) -> int:
        """How often a single group was looked at for what is awaited of it."""
        return sum(requests.looked for requests in self._requests.values())

    # ---- saving ----------------------------------------------------------------------------

    def clear(self) -> None:
        """Forget all groups: the stream has ended."""
        for tracker in self._trackers.values():
            tracker.clear()

    def settle(self) -> None:
        """Write the groups that moved: an engine is about to keep the state."""
        for tracker in self._trackers.values():
            tracker.settle()

    def snapshot(self) -> dict[str, Any]:
        """Everything needed to go on elsewhere, beside what is in the store."""
        return {
            "sequence": self._sequence,
            "trackers": {name: tracker.snapshot() for name, tracker in self._trackers.items()},
            "told": dict(self._told),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        self._sequence = saved["sequence"]
        for name, state in saved["trackers"].items():
            self._trackers[name].restore(state)
        self._told = dict(saved["told"])


def _first(mask: Mask) -> int:
    """The first position that is true; past the end if none is."""
    return int(mask.argmax()) if mask.any() else len(mask)
