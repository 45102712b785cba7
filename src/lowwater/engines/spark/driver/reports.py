"""What buckets report batch by batch, put together to the metrics of a run."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Hashable
from dataclasses import replace
from datetime import datetime
from heapq import nsmallest
from typing import Any

from lowwater.engines.spark.driver.listener import answers_in, batch_of, reports_in
from lowwater.engines.spark.wire.program import Program
from lowwater.joins.oblivious.estimates import ACCURACY_ASKED, FOUND, LOST, shortfall
from lowwater.metrics import (
    CHANNELS,
    BatchMetrics,
    ChannelMetrics,
    CompletenessMetrics,
    Histogram,
    OperatorMetrics,
    RunMetrics,
    StreamMetrics,
    channel_metrics,
    completeness_metrics,
    holding_channel,
    restored,
)
from lowwater.operators.metric import Readings, combined
from lowwater.plan.physical.operator import Operator, PhysicalPlan, SourceOperator
from lowwater.progress.completeness import Completeness
from lowwater.progress.contract import Heartbeat
from lowwater.progress.late import LATE, LateAccount
from lowwater.progress.spec import StreamSpec
from lowwater.sources.replay import Replay
from lowwater.stream.element import BEGINNING
from lowwater.stream.time_domain import ROWS
from lowwater.updates.staleness import Staleness

Report = dict[str, Any]
BATCHES = 100
"""So many batches are kept, as Spark keeps its own."""
COUNTS = ("rows_in", "rows_out", "promises_in", "promises_out")


class Reports:
    """Gathers the reports of a run's batches, each once."""

    def __init__(self, plan: PhysicalPlan, program: Program):
        self._plan, self._program = plan, program
        self._begun = time.monotonic()
        self._seen: set[tuple[int, int]] = set()
        self._start = 0
        self._latest: dict[tuple[int, int], Report] = {}
        self._counts: dict[str, dict[str, int]] = {}
        self._rows: dict[str, int] = {}
        self._accounts = {s.spec.name: LateAccount(s.spec.name) for s in program.sources}
        self._complete: dict[str, dict[tuple[str, Hashable], Completeness]] = {}
        self._ended: set[str] = set()
        self._marks: dict[str, dict[str, int]] = {}
        self._spoken: dict[str, int] = {}
        self._channels: dict[str, dict[tuple[int, int], Report]] = {}
        self._batches: deque[BatchMetrics] = deque(maxlen=BATCHES)
        self._holding: set[str] = set()
        self._idle: dict[str, float] = {}
        self._rows_out = 0
        self._peak_rows = self._peak_bytes = 0
        self.notes: list[str] = []

    @property
    def unending(self) -> bool:
        """Whether some source never says that it has ended."""
        sources = [each.source for each in self._plan.sources]
        return not all(isinstance(source, Replay) for source in sources)

    @property
    def all_ended(self) -> bool:
        """Whether every source has ended."""
        return self._ended >= {source.spec.name for source in self._program.sources}

    def begin_again(self) -> None:
        """Another query goes on where the last one stopped."""
        self._start += 1

    def take(self, progress: Any) -> None:
        """Take the reports of a batch, unless they were taken before."""
        batch = (self._start, int(progress.batchId))
        if batch in self._seen:
            return
        self._seen.add(batch)
        reports = reports_in(progress)
        self._count(reports, answers_in(progress))
        self._time(batch_of(progress, sum(sum(each["rows"].values()) for each in reports)), reports)

    def _time(self, batch: BatchMetrics, reports: list[Report]) -> None:
        """Keep when a batch was; between batches, operators that hold something back wait."""
        if self._batches:
            before = self._batches[-1]
            gap = (batch.started - before.started).total_seconds() - before.seconds
            for title in self._holding:
                self._idle[title] = self._idle.get(title, 0.0) + max(0.0, gap)
        self._holding = {title for report in reports for title in report["holding"]}
        self._batches.append(batch)

    def _count(self, reports: list[Report], answers: int | None) -> None:
        last = self._plan.result.title
        self._rows_out += answers or 0
        for report in reports:
            self._latest[report["stage"], report["bucket"]] = report
            self.notes += report["notes"]
            self._ended |= set(report["ended"])
            for title, about in report["operators"].items():
                counts = self._counts.setdefault(title, dict.fromkeys(COUNTS, 0))
                for name in COUNTS:
                    counts[name] += about[name]
                if title == last and answers is None:
                    self._rows_out += about["rows_out"]
            for name, rows in report["rows"].items():
                self._rows[name] = self._rows.get(name, 0) + rows
            for stream, attribute, channel, *values in report["complete"]:
                known = self._complete.setdefault(stream, {})
                known[attribute, channel] = Completeness(*values)
            for stream, channel, reason, rows, longest, mean in report["late"]:
                self._accounts[stream].add(_named(channel), reason, rows, longest, rows * mean)
            for stream, marks in report["streams"].items():
                held = self._marks.setdefault(stream, {})
                for name, mark in marks.items():
                    held[name] = max(mark, held.get(name, mark))
            for name, count in report["spoken"].items():
                self._spoken[name] = self._spoken.get(name, 0) + count
            for name, told in report["channels"].items():
                self._channels.setdefault(name, {})[report["stage"], report["bucket"]] = told
        self._note_shortfalls()
        rows, size = self._held()
        self._peak_rows = max(self._peak_rows, rows)
        self._peak_bytes = max(self._peak_bytes, size)

    def _note_shortfalls(self) -> None:
        """Warn of joins that find fewer results than asked for, in all buckets together."""
        for title in self._measuring:
            readings = self._readings(title)
            asked = readings[ACCURACY_ASKED]
            text = shortfall(readings[FOUND], readings[LOST], asked, self.all_ended)
            if text is not None and (note := f"{title}: {text}") not in self.notes:
                self.notes.append(note)

    def _readings(self, title: str) -> Readings:
        reports = (each["operators"] for each in self._latest.values())
        return combined([restored(each[title]["metrics"]) for each in reports if title in each])

    @property
    def _measuring(self) -> list[str]:
        """The joins that count what they lose."""
        return list(
            dict.fromkeys(
                title
                for report in self._latest.values()
                for title, each in report["operators"].items()
                if LOST.name in each["metrics"]
            )
        )

    def _held(self) -> tuple[int, int]:
        about = [each for r in self._latest.values() for each in r["operators"].values()]
        return sum(each["rows"] for each in about), sum(each["bytes"] for each in about)

    def metrics(self) -> RunMetrics:
        """The metrics so far."""
        rows, size = self._held()
        elapsed = time.monotonic() - self._begun
        return RunMetrics(
            self._rows_out,
            elapsed,
            tuple(self._operator(each, elapsed) for each in self._plan.kernels),
            tuple(self._stream(each) for each in self._plan.sources),
            rows,
            self._peak_rows,
            size,
            self._peak_bytes,
            self._peak_bytes,
            0,
            Histogram(),
            tuple(self._batches),
        )

    def _operator(self, operator: Operator, elapsed: float) -> OperatorMetrics:
        counts = self._counts.get(operator.title, dict.fromkeys(COUNTS, 0))
        about = [
            report["operators"][operator.title]
            for report in self._latest.values()
            if operator.title in report["operators"]
        ]
        marks: dict[str, int] = {}
        for each in about:
            for name, mark in each["marks"].items():
                marks[name] = min(mark, marks.get(name, mark))
        rows, size = sum(e["rows"] for e in about), sum(e["bytes"] for e in about)
        return OperatorMetrics(
            operator.title,
            operator.detail,
            counts["rows_in"],
            counts["rows_out"],
            counts["promises_in"],
            counts["promises_out"],
            {name: _shown(operator, name, mark) for name, mark in marks.items()},
            rows,
            rows,
            size,
            size,
            0,
            0,
            0.0,
            min(1.0, self._idle.get(operator.title, 0.0) / elapsed),
            self._readings(operator.title),
            _staleness([each["staleness"] for each in about if "staleness" in each]),
        )

    def _read(self, name: str, source: object) -> int:
        """Rows of a stream; those of a log are judged where it is read, and known at its end."""
        if isinstance(source, Replay) and name in self._ended:
            return source.rows
        return self._rows.get(name, 0)

    def _stream(self, operator: SourceOperator) -> StreamMetrics:
        spec = operator.spec
        account = self._accounts[spec.name]
        channels, count, ahead = self._behind(spec)
        spoken, beating = self._spoken.get(spec.name, 0), isinstance(spec.idle, Heartbeat)
        held = self._marks.get(spec.name, {})
        marks = {n: domain.show(held.get(n, BEGINNING)) for n, domain in spec.domains.items()}
        told = list(self._channels.get(spec.name, {}).values())
        return StreamMetrics(
            spec.name,
            self._read(spec.name, operator.source),
            account.rows,
            tuple(account.lines()),
            marks,
            next((each.channel for each in channels if not each.stale), None),
            0 if beating else spoken,
            spoken if beating else 0,
            0,
            0,
            self._completeness(spec, account),
            channels,
            count,
            ahead,
            spec.name in self._ended,
            stale_channels=sum(each.get("stale_count", 0) for each in told),
            holding=_holding_of(spec, told, spec.name in self._ended),
        )

    def _behind(
        self, spec: StreamSpec
    ) -> tuple[tuple[ChannelMetrics, ...], int, datetime | int | None]:
        """The channels furthest behind, how many there are, and the mark furthest ahead; where
        buckets have groups of their own, over all buckets."""
        told = list(self._channels.get(spec.name, {}).values())
        domain = spec.domains.get(spec.time)
        if not told or domain is None:
            return (), 0, None
        found = [
            (mark, _named(name), seen, each["now"])
            for each in told
            for name, mark, seen in each["behind"]
        ]
        stale = {_named(name) for each in told for name in each.get("stale", ())}
        least = nsmallest(CHANNELS, found, key=lambda each: each[0])
        channels = tuple(
            channel
            for mark, name, seen, now in least
            for channel in channel_metrics([(name, mark, seen)], domain, now or None, stale)
        )
        ahead = max(int(each["ahead"]) for each in told)
        return channels, sum(each["count"] for each in told), domain.show(ahead)

    def _completeness(
        self, spec: StreamSpec, account: LateAccount
    ) -> tuple[CompletenessMetrics, ...]:
        """How complete a stream is; late rows are those of the account where it can tell."""
        known = self._complete.get(spec.name, {})
        lines = completeness_metrics(
            [(attribute, channel, each) for (attribute, channel), each in known.items()],
            spec.domains,
        )
        if len(spec.contracts) > 1:
            return lines
        late = [(each.channel, each.rows) for each in account.lines() if each.reason == LATE]
        return tuple(
            replace(line, late_rows=sum(n for c, n in late if line.channel in (None, c)))
            for line in lines
        )


def _holding_of(spec: StreamSpec, told: list[dict[str, Any]], ended: bool) -> str:
    """Which channel holds a stream back, in words; every bucket knows the same of channels."""
    domain = spec.domains.get(spec.time)
    if not told or domain is None or not spec.channel or ended:
        return ""
    behind = [(_named(name), mark, seen) for name, mark, seen in told[0]["behind"]]
    stale = {_named(name) for name in told[0].get("stale", ())}
    return holding_channel(behind, int(told[0]["ahead"]), stale, domain, spec.stale_after)


def _named(channel: Any) -> Hashable:
    """The name of a channel, which JSON makes a list if it has several parts."""
    return tuple(channel) if isinstance(channel, list) else channel


def _staleness(told: list[dict[str, Any]]) -> Staleness | None:
    return Staleness.of([Staleness.plainly(each) for each in told]) if told else None


def _shown(operator: Operator, name: str, mark: int) -> datetime | int | None:
    """A mark as a person reads it; ``ts[1]`` is the mark of ``ts`` on input 1."""
    attribute = name.partition("[")[0]
    for node in (*operator.node.inputs, operator.node):
        if attribute in node.progress:
            return node.progress[attribute].domain.show(mark)
    return ROWS.show(mark)
