"""A feed is a source at run time: its reader, its intake, and its timers for punctuation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from lowwater.engines.embedded.graph import Arc
from lowwater.metrics import (
    CHANNELS,
    StreamMetrics,
    channel_metrics,
    completeness_metrics,
    holding_channel,
)
from lowwater.plan.physical.operator import SourceOperator
from lowwater.progress.demand import Demand
from lowwater.progress.intake import Intake
from lowwater.progress.options import Heartbeat, OnDemand, Timer
from lowwater.progress.producer import resolve
from lowwater.sources.source import AT_ONCE
from lowwater.stream.duration import nanoseconds
from lowwater.stream.element import Chunk, Element, End


class Feed:
    """One source of a run, which puts its rows and promises on the arcs to its readers."""

    def __init__(
        self,
        operator: SourceOperator,
        demands: Mapping[str, Demand],
        refuse: Callable[[str, Chunk], None],
    ):
        self.operator, self.spec = operator, operator.spec
        self.reader = operator.source.open()
        self.reader.check_promises(partial(resolve, self.spec))
        self.intake = Intake(self.spec, demands, operator.announced)
        self.outputs: list[Arc] = []
        self.timers: list[Callable[[], object]] = []
        """The functions that are called when the timer of this source has fired and its own
        promises are pushed."""
        self.heartbeats: list[Callable[[int], object]] = []
        """The functions that are called with the clock time at a heartbeat, when the promises of
        this source are pushed."""
        self.deliver: Callable[[Element], None] | None = None
        self._refuse = refuse
        self._period = _period(self.spec.punctuate, Timer)
        self._beat = _period(self.spec.idle, Heartbeat)
        self._next_timer: int | None = None
        self._next_beat: int | None = None
        self.on_demand = isinstance(self.spec.idle, OnDemand)
        self.rows = 0
        self.stamps = 0
        self.beats = 0
        self.ended = False

    def begin(self, now: int, first: int) -> None:
        """Start on a real clock: rows with arrival time ``first`` are due at ``now``."""
        self.reader.begin(now, first)
        if self.spec.stamp == "external":
            self.intake.shift_arrivals(self.reader.shifted)

    def start(self, now: int) -> None:
        """Set the timers."""
        self._next_timer = now + self._period if self._period else None
        self._next_beat = now + self._beat if self._beat else None

    def due(self, rows: int = 1) -> int | None:
        """Return the clock time at which ``rows`` rows, or the end, can be read; None if it is not
        known."""
        if self.ended:
            return None
        return AT_ONCE if self.reader.ended else self.reader.due(rows)

    def next_timer(self) -> int | None:
        """Return the clock time at which a timer of this source fires next; None if none does."""
        if self.ended:
            return None
        return min((t for t in (self._next_timer, self._next_beat) if t is not None), default=None)

    def serve(self, now: int, limit: int) -> None:
        """Read at most ``limit`` rows that have arrived and push them with their promises."""
        chunk = self.reader.read(now, limit)
        if chunk is not None and chunk.height:
            due = self.due()
            until = now if due is None or due == AT_ONCE else min(due, now)
            arrivals = self.reader.arrivals()
            for part in self.intake.parts(chunk):
                arrived = None if arrivals is None else arrivals[part]
                taken = self.intake.take(chunk[part], now, arrived, until)
                self.rows += taken.came
                if taken.refused is not None:
                    self._refuse(self.spec.name, taken.refused)
                if taken.rows.height:
                    self._push([taken.rows])
                self._push(taken.promises)
        for promise in self.reader.take_promises():
            self._push(self.intake.take_promise(resolve(self.spec, promise)))
        if self.reader.ended:
            self.ended = True
            self._push([End()])

    def promise(self) -> None:
        """Push the promises that follow from marks that moved without rows of this source."""
        self._push(self.intake.row_promises())

    def fire(self, now: int) -> None:
        """Fire the timers that are due."""
        if self._next_timer is not None and self._period and self._next_timer <= now:
            self._push(self.intake.promises())
            for timer in self.timers:
                timer()
            self._next_timer = _after(self._next_timer, self._period, now)
        if self._next_beat is not None and self._beat and self._next_beat <= now:
            # A source with rows to be read is not idle, and their times may be below the beat's.
            due = self.due()
            idle = due is None or due > now
            if not idle and self.spec.groups:
                return  # the rows are of some groups; the beat for the others comes after them
            self.beats += 1
            for promises in self.intake.enable_all(now) if idle else ():
                self._push(promises)
            for beat in self.heartbeats:
                beat(now)
            self._next_beat = _after(self._next_beat, self._beat, now)

    def enable(self, attribute: str, mark: int, now: int) -> bool:
        """Make an enabling timestamp if the clock allows one; return whether one was made."""
        promises = self.intake.enable(attribute, mark, now)
        if promises:
            self.stamps += 1
            self._push(promises)
        return bool(promises)

    def when(self, attribute: str, mark: int, now: int) -> int | None:
        """Return the clock time at which a mark can be promised; None if it never can."""
        return self.intake.when(attribute, mark, now)

    def enable_groups(self, now: int) -> bool:
        """Make the enabling timestamps for single groups that the clock allows; return whether any
        were made."""
        promises = self.intake.enable_groups(now)
        if promises:
            self.stamps += 1
            self._push(promises)
        return bool(promises)

    def _push(self, elements: Sequence[Element]) -> None:
        for element in elements:
            for arc in self.outputs:
                arc.push(element)
            if self.deliver is not None:
                self.deliver(element)

    def waiting(self) -> tuple[int, int] | None:
        """Return the rows that the reader holds and their bytes; None if it cannot hold any."""
        return self.reader.waiting()

    def metrics(self, now: int) -> StreamMetrics:
        """Return the metrics of this source; ``now`` is the clock in nanoseconds."""
        account, spec = self.intake.account, self.spec
        latent = spec.stamp == "latent"
        domain = spec.domains.get(spec.time)
        waiting_rows, waiting_bytes = self.waiting() or (None, None)
        found = StreamMetrics(
            name=spec.name,
            rows=self.rows,
            refused_rows=account.rows,
            late=tuple(account.lines()),
            marks={name: each.show(self.intake.mark(name)) for name, each in spec.domains.items()},
            slowest_channel=None if latent else self.intake.slowest(spec.time),
            enabling_timestamps=self.stamps,
            heartbeats=self.beats,
            stray_rows=account.strays,
            backward_marks=account.backward_marks,
            completeness=completeness_metrics(self.intake.completeness(), spec.domains),
            ended=self.ended,
            waiting_rows=waiting_rows,
            waiting_bytes=waiting_bytes,
        )
        channels = None if latent else self.intake.channels(spec.time, CHANNELS)
        if channels is None or domain is None:
            return found
        known = channels.behind, channels.ahead, channels.stale
        held = spec.channel and not self.ended
        return replace(
            found,
            channels=channel_metrics(channels.behind, domain, now, channels.stale),
            channel_count=channels.count,
            ahead=domain.show(channels.ahead),
            stale_channels=channels.stale_count,
            holding=holding_channel(*known, domain, spec.stale_after) if held else None,
        )


def _period(spec: object, kind: type[Timer] | type[Heartbeat]) -> int | None:
    return nanoseconds(spec.period) if isinstance(spec, kind) else None


def _after(last: int, period: int, now: int) -> int:
    """Return the time of the next beat of a period; missed beats are not made up for."""
    missed = max(0, now - last) // period
    return last + (missed + 1) * period
