"""The reports of buckets, batch by batch, are combined to the metrics of a run."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from heapq import nsmallest
from math import ceil
from typing import Any

from lowwater.engines.members import Counts, domains_of, show_marks
from lowwater.engines.memory import MemoryBudget
from lowwater.engines.spark.driver.listener import answers_in, batch_of, reports_in
from lowwater.engines.spark.wire.program import Program
from lowwater.engines.spark.wire.report import ChannelsReport, OperatorReport, Report, StreamReport
from lowwater.errors import AdmissionError
from lowwater.joins.oblivious.estimates import ACCURACY_ASKED, FOUND, LOST, shortfall
from lowwater.joins.oblivious.memory_manager import ACCURACY_WITHIN, MEMORY_LEAST
from lowwater.metrics import (
    CHANNELS,
    BatchMetrics,
    ChannelMetrics,
    CompletenessMetrics,
    HoldingChannel,
    OperatorMetrics,
    RunMetrics,
    StreamMetrics,
    channel_metrics,
    completeness_metrics,
    holding_channel,
)
from lowwater.operators.metric import Readings, combined
from lowwater.plan.physical.operator import Operator, PhysicalPlan, SourceOperator
from lowwater.progress.completeness import Completeness
from lowwater.progress.late import LATE, LateAccount
from lowwater.progress.options import Heartbeat
from lowwater.progress.spec import StreamSpec
from lowwater.sources.replay import Replay
from lowwater.state.peak_counter import PeakCounter
from lowwater.stream.element import BEGINNING
from lowwater.stream.size import spell_bytes
from lowwater.updates.staleness import Staleness
from lowwater.updates.targets import KEYS_MISSED

BATCHES = 100
"""The number of batches that are kept, the same as Spark keeps."""


class _OperatorTotals:
    """The numbers of one operator so far, over all buckets."""

    def __init__(self) -> None:
        self.latest: dict[tuple[int, int], OperatorReport] = {}
        self.counts = Counts()
        self.rows, self.bytes = PeakCounter(), PeakCounter()
        self.idle_seconds = 0.0

    def take(self, place: tuple[int, int], report: OperatorReport) -> None:
        """Count the report of a bucket, which is named by stage and number."""
        self.latest[place] = report
        self.counts.add(report.counts)

    def end_batch(self) -> None:
        """Add up the state that all buckets hold at the end of a batch."""
        self.rows.add(sum(each.rows for each in self.latest.values()) - self.rows.now)
        self.bytes.add(sum(each.bytes for each in self.latest.values()) - self.bytes.now)

    @property
    def readings(self) -> Readings:
        """The readings of all buckets, combined."""
        return combined([each.readings for each in self.latest.values()])

    @property
    def staleness(self) -> Staleness | None:
        """The staleness over all buckets; None if the operator does not measure it."""
        parts = [each.staleness for each in self.latest.values() if each.staleness is not None]
        return Staleness.of(parts) if parts else None


class _StreamTotals:
    """The numbers of one stream so far, over all buckets."""

    def __init__(self, name: str):
        self.rows = self.stamps = self.stray_rows = self.backward_marks = 0
        self.late = LateAccount(name)
        self.complete: dict[tuple[str, Hashable], Completeness] = {}
        self.marks: dict[str, int] = {}
        self.channels: dict[tuple[int, int], ChannelsReport] = {}
        self.ended = False

    def take(self, place: tuple[int, int], report: StreamReport) -> None:
        """Count the report of a bucket, which is named by stage and number."""
        self.rows += report.rows
        self.stamps += report.stamps
        self.stray_rows += report.stray_rows
        self.backward_marks += report.backward_marks
        self.late.add_lines(report.late)
        for attribute, channel, found in report.completeness:
            self.complete[attribute, channel] = found
        for name, mark in report.marks.items():
            self.marks[name] = max(mark, self.marks.get(name, mark))
        if report.channels is not None:
            self.channels[place] = report.channels
        self.ended |= report.ended


class Reports:
    """Gathers the reports of a run's batches, each once."""

    def __init__(self, plan: PhysicalPlan, program: Program, memory: MemoryBudget | None = None):
        self._plan, self._program, self._memory = plan, program, memory
        self._judged = memory is None
        self.refusal: AdmissionError | None = None
        """The error that ends the run, if its joins need more memory than the budget has."""
        self._begun = time.monotonic()
        self._seen: set[tuple[int, int]] = set()
        self._start = 0
        self._operators = {each.title: _OperatorTotals() for each in plan.kernels}
        self._streams = {s.spec.name: _StreamTotals(s.spec.name) for s in program.sources}
        self._batches: deque[BatchMetrics] = deque(maxlen=BATCHES)
        self._ticks = any(each.request_folder is not None for each in program.stages)
        self._holding: set[str] = set()
        self._rows_out = 0
        self._rows, self._bytes = PeakCounter(), PeakCounter()
        self.notes: list[str] = []
        self._warned: set[str] = set()

    @property
    def unending(self) -> bool:
        """True if some source has no end that it can report."""
        sources = [each.source for each in self._plan.sources]
        return not all(isinstance(source, Replay) for source in sources)

    @property
    def all_ended(self) -> bool:
        """True if every source has ended."""
        return all(each.ended for each in self._streams.values())

    def begin_again(self) -> None:
        """Note that another query continues where the last one stopped."""
        self._start += 1

    def take(self, progress: Any) -> None:
        """Take the reports of a batch, unless they were taken before."""
        batch = (self._start, int(progress.batchId))
        if batch in self._seen:
            return
        self._seen.add(batch)
        reports = reports_in(progress)
        rows = sum(each.rows for report in reports for each in report.streams.values())
        self._count(reports, answers_in(progress))
        self._time(batch_of(progress, rows), reports)

    def _time(self, batch: BatchMetrics, reports: list[Report]) -> None:
        """Keep a batch; count the time since the batch before as idle time of operators that held
        something back."""
        if self._batches:
            before = self._batches[-1]
            gap = (batch.started - before.started).total_seconds() - before.seconds
            for title in self._holding & set(self._operators):
                self._operators[title].idle_seconds += max(0.0, gap)
        self._holding = {title for report in reports for title in report.holding}
        self._batches.append(batch)

    def _count(self, reports: list[Report], answers: int | None) -> None:
        last = self._plan.result.title
        self._rows_out += answers or 0
        for report in reports:
            place = report.stage, report.bucket
            self.notes += report.notes
            for title, found in report.operators.items():
                self._operators[title].take(place, found)
                if title == last and answers is None:
                    self._rows_out += found.counts.rows_out
            for name, stream in report.streams.items():
                self._streams[name].take(place, stream)
            for line in report.late:
                self._streams[line.stream].late.add_lines([line])
        self._note_shortfalls()
        if not self._judged:
            self._judge_memory()
        self._note_missed_targets()
        for each in self._operators.values():
            each.end_batch()
        totals = self._operators.values()
        self._rows.add(sum(each.rows.now for each in totals) - self._rows.now)
        self._bytes.add(sum(each.bytes.now for each in totals) - self._bytes.now)

    def _note_shortfalls(self) -> None:
        """Warn of joins that find fewer results than asked for, in all buckets together."""
        for title, operator in self._operators.items():
            found = operator.readings
            if LOST not in found:
                continue
            text = shortfall(found[FOUND], found[LOST], found[ACCURACY_ASKED], self.all_ended)
            if text is not None and (note := f"{title}: {text}") not in self.notes:
                self.notes.append(note)

    def _judge_memory(self) -> None:
        """Judge, once, whether the joins of every bucket fit into its part of the memory budget, as
        soon as all buckets have measured their needs."""
        assert self._memory is not None
        short: tuple[float, str] | None = None
        for stage in self._program.stages:
            titles = [self._plan.operators[index].title for index in stage.sharing]
            found = [self._operators[title].latest for title in titles]
            places = {place for latest in found for place in latest}
            needs = {place: [latest[place].readings for latest in found] for place in places}
            if not all(MEMORY_LEAST in each for own in needs.values() for each in own):
                return
            if titles and (not needs or stage.memory is None):
                return
            for own in needs.values():
                needed = sum(each[MEMORY_LEAST] for each in own)
                part = needed / (stage.memory or 1)
                if part > 1 and (short is None or part > short[0]):
                    short = part, self._shortage(part, needed, stage.memory or 0, own)
        self._judged = True
        if short is not None and self._memory.admission == "refuse":
            self.refusal = AdmissionError(short[1])
        elif short is not None:
            self.notes.append(short[1])

    def _shortage(
        self, part: float, needed: int, allowed: int, readings: Sequence[Readings]
    ) -> str:
        """Return why the joins of a bucket cannot be served, with the numbers."""
        assert self._memory is not None
        budget = self._memory.bytes
        asked = max(each[ACCURACY_ASKED] for each in readings)
        expected = min(each.get(ACCURACY_WITHIN, 0.0) for each in readings)
        return (
            f"to be sure of {asked * 100:.10g} % of the results, the joins of the fullest bucket"
            f" need {spell_bytes(needed)} of memory, and its part of the budget of"
            f" {spell_bytes(budget)} is {spell_bytes(allowed)}. About {expected * 100:.3g} % of its"
            f" results are to be expected with that. Raise memory= (SET MEMORY) to"
            f" {spell_bytes(ceil(budget * part))}, or ask for a lower accuracy="
        )

    def _note_missed_targets(self) -> None:
        """Warn, once for each operator, of keys that were staler than their targets."""
        for title, operator in self._operators.items():
            if title in self._warned or KEYS_MISSED not in operator.readings:
                continue
            found = operator.staleness
            if found is not None and found.freshness is not None and found.freshness.missed:
                self._warned.add(title)
                self.notes.append(f"{title}: {found.freshness.warning()}")

    # ---- metrics ---------------------------------------------------------------------------

    def metrics(self) -> RunMetrics:
        """Return the metrics so far."""
        elapsed = time.monotonic() - self._begun
        return RunMetrics(
            rows_out=self._rows_out,
            elapsed_seconds=elapsed,
            operators=tuple(self._operator(each, elapsed) for each in self._plan.kernels),
            streams=tuple(self._stream(each) for each in self._plan.sources),
            state_rows=self._rows.now,
            state_rows_peak=self._rows.peak,
            state_bytes=self._bytes.now,
            state_bytes_peak=self._bytes.peak,
            batches=tuple(self._batches),
        )

    def _operator(self, operator: Operator, elapsed: float) -> OperatorMetrics:
        found = self._operators[operator.title]
        marks: dict[str, int] = {}
        for each in found.latest.values():
            for name, mark in each.marks.items():
                marks[name] = min(mark, marks.get(name, mark))
        return OperatorMetrics(
            operator.title,
            operator.detail,
            **asdict(found.counts),
            marks=show_marks(marks, domains_of(operator.node)),
            state_rows=found.rows.now,
            state_rows_peak=found.rows.peak,
            state_bytes=found.bytes.now,
            state_bytes_peak=found.bytes.peak,
            idle_share=min(1.0, found.idle_seconds / elapsed) if self._ticks else None,
            readings=found.readings,
            staleness=found.staleness,
        )

    def _stream(self, operator: SourceOperator) -> StreamMetrics:
        spec = operator.spec
        found = self._streams[spec.name]
        channels, count, ahead = _behind(spec, found)
        beating = isinstance(spec.idle, Heartbeat)
        source, rows = operator.source, found.rows
        if isinstance(source, Replay) and found.ended:
            rows = source.rows  # the reader of a log judges its rows, so buckets do not count them
        return StreamMetrics(
            name=spec.name,
            rows=rows,
            refused_rows=found.late.rows,
            late=tuple(found.late.lines()),
            marks={
                name: domain.show(found.marks.get(name, BEGINNING))
                for name, domain in spec.domains.items()
            },
            slowest_channel=next((each.channel for each in channels if not each.stale), None),
            enabling_timestamps=0 if beating else found.stamps,
            heartbeats=found.stamps if beating else 0,
            stray_rows=found.stray_rows,
            backward_marks=found.backward_marks,
            completeness=_completeness(spec, found),
            channels=channels,
            channel_count=count,
            ahead=ahead,
            ended=found.ended,
            stale_channels=sum(each.channels.stale_count for each in found.channels.values()),
            holding=_holding(spec, found),
        )


def _behind(
    spec: StreamSpec, found: _StreamTotals
) -> tuple[tuple[ChannelMetrics, ...], int, datetime | int | None]:
    """Return the channels furthest behind, how many there are, and the mark furthest ahead; where
    buckets have groups of their own, over all buckets."""
    reports = list(found.channels.values())
    domain = spec.domains.get(spec.time)
    if not reports or domain is None:
        return (), 0, None
    lines = [(line, each.now) for each in reports for line in each.channels.behind]
    stale = {name for each in reports for name in each.channels.stale}
    channels = tuple(
        channel
        for line, now in nsmallest(CHANNELS, lines, key=lambda each: each[0][1])
        for channel in channel_metrics([line], domain, now or None, stale)
    )
    ahead = max(each.channels.ahead for each in reports)
    return channels, sum(each.channels.count for each in reports), domain.show(ahead)


def _holding(spec: StreamSpec, found: _StreamTotals) -> HoldingChannel | None:
    """Return the channel that holds a stream back; all buckets have the same marks of channels."""
    domain = spec.domains.get(spec.time)
    if not found.channels or domain is None or not spec.channel or found.ended:
        return None
    known = next(iter(found.channels.values())).channels
    return holding_channel(known.behind, known.ahead, known.stale, domain, spec.stale_after)


def _completeness(spec: StreamSpec, found: _StreamTotals) -> tuple[CompletenessMetrics, ...]:
    """Return how complete a stream is; with one contract, its late rows are those of the
    account."""
    lines = completeness_metrics(
        [(attribute, channel, each) for (attribute, channel), each in found.complete.items()],
        spec.domains,
    )
    if len(spec.contracts) > 1:
        return lines
    late = [(each.channel, each.rows) for each in found.late.lines() if each.reason == LATE]
    return tuple(
        replace(line, late_rows=sum(n for c, n in late if line.channel in (None, c)))
        for line in lines
    )
