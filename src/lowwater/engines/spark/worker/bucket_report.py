"""A report has the numbers of one bucket after one batch, for the driver."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Hashable
from dataclasses import asdict, dataclass, field

from lowwater.engines.members import Member
from lowwater.engines.spark.wire.message import Kind, Message, ReaderReport
from lowwater.engines.spark.wire.program import SourceProgram, StageProgram
from lowwater.engines.spark.wire.report import (
    BucketSummary,
    ChannelsReport,
    OperatorReport,
    OperatorState,
    Report,
    StreamReport,
    TickRequest,
)
from lowwater.engines.spark.worker.saved_state import BucketState
from lowwater.metrics import CHANNELS, plain
from lowwater.progress.completeness import Completeness
from lowwater.progress.late import LateAccount, LateRows
from lowwater.progress.marks import ChannelSummary


@dataclass
class BatchRecord:
    """The numbers of one bucket in one batch, gathered while the batch runs."""

    rows: dict[int, int]
    """Rows of each source, as its digests count them."""
    accounts: dict[int, LateAccount]
    """The late rows of each source that its readers found."""
    notes: list[str] = field(default_factory=list)
    late: list[LateRows] = field(default_factory=list)
    """The late rows that operators found."""
    complete: list[tuple[str, str, Hashable, Completeness]] = field(default_factory=list)
    read: dict[int, ReaderReport] = field(default_factory=dict)
    """The accounts that the readers of ordered sources sent beside rows."""
    contradicted: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Stray rows and backward marks of each source, by its digests: the same in all buckets."""
    stamps: Counter[int] = field(default_factory=Counter)
    """Enabling timestamps and heartbeats of each source."""
    request: TickRequest | None = None
    """The request for a tick of the clock; None if nothing in the query depends on one."""
    holding: list[str] = field(default_factory=list)
    """The operators that hold something back."""

    @classmethod
    def of(cls, program: StageProgram) -> BatchRecord:
        """Return an empty record for the sources of a stage."""
        return cls(
            {source.index: 0 for source in program.sources},
            {source.index: LateAccount(source.spec.name) for source in program.sources},
        )


class BucketReport:
    """The report of one bucket, from its state and the record of the batch."""

    def __init__(self, program: StageProgram, bucket: int, state: BucketState, now: int):
        self._program, self._bucket, self._state, self._now = program, bucket, state, now
        self._first = bucket == program.ids[0]

    def summary(self) -> str:
        """Return the marks and sizes of the bucket as JSON; a checkpoint shows them."""
        members = self._state.graph.members.values()
        operators = {each.part.where.title: OperatorState(*self._held(each)) for each in members}
        shown = self._streams_shown()
        return json.dumps(
            plain(BucketSummary(self._program.number, self._bucket, operators, shown))
        )

    def message(self, record: BatchRecord, batch: int, last: int) -> Message:
        """Return the report of a batch, as a message to the driver; ``last`` is the number of
        stages."""
        report = Report(
            self._program.number,
            self._bucket,
            batch,
            {
                each.part.where.title: self._operator(each)
                for each in self._state.graph.members.values()
            },
            {s.spec.name: self._stream(s, record) for s in self._program.sources},
            self._streams_shown(),
            tuple(record.late),
            tuple(record.holding),
            tuple(record.notes),
            record.request,
        )
        body = json.dumps(plain(report)).encode()
        return Message(last, self._program.ids[0], -1, Kind.REPORT, self._bucket, 0, body)

    # ---- operators -------------------------------------------------------------------------

    def _held(self, member: Member) -> tuple[dict[str, int], dict[str, str], int, int, int]:
        """Return the fields of :class:`OperatorState` for an operator."""
        store, marks = self._state.stores[member.part.slot], member.marks()
        rows, size = member.kernel.held
        shown = {name: str(mark) for name, mark in member.show(marks).items()}
        return marks, shown, store.chunks, store.rows + rows, store.bytes + size

    def _operator(self, member: Member) -> OperatorReport:
        return OperatorReport(
            *self._held(member),
            **asdict(member.counts),
            readings=member.call(member.kernel.metrics),
            staleness=member.staleness(),
        )

    # ---- streams ---------------------------------------------------------------------------

    def _streams_shown(self) -> dict[str, dict[str, str]]:
        """Return the marks of streams as people read them, by name and attribute."""
        intakes = [self._state.intakes[s.index] for s in self._program.sources if not s.ordered]
        return {
            each.spec.name: {name: str(each.shown_mark(name)) for name in each.spec.domains}
            for each in intakes
        }

    def _stream(self, source: SourceProgram, record: BatchRecord) -> StreamReport:
        index, spec = source.index, source.spec
        intake = self._state.intakes[index]
        accountable = index in self._program.accountable
        read = record.read.get(index, ReaderReport())
        strays, backward = record.contradicted.get(index, (0, 0))
        late = [*(intake.account.lines() if accountable else ()), *record.accounts[index].lines()]
        found = self._channels(source, read)
        once = self._first or source.deliveries[0].owned
        return StreamReport(
            {name: intake.shown(name) for name in spec.domains} | dict(read.marks),
            rows=record.rows[index] + read.rows if self._first and accountable else 0,
            stamps=record.stamps[index] if self._first else 0,
            stray_rows=read.strays + (strays if once and accountable else 0),
            backward_marks=read.backward
            + (backward if once and accountable else 0)
            + (intake.account.backward_marks - backward if accountable else 0),
            late=tuple(late),
            completeness=self._completeness(source, record) if self._first else (),
            channels=None if found is None else ChannelsReport(found, self._now),
            ended=index in self._state.ended,
        )

    def _channels(self, source: SourceProgram, read: ReaderReport) -> ChannelSummary | None:
        """Return the marks of channels; one bucket reports each channel."""
        if source.index not in self._program.accountable:
            return None
        if source.ordered:
            return read.channels
        if not (self._first or source.deliveries[0].owned):
            return None
        return self._state.intakes[source.index].channels(source.spec.time, CHANNELS)

    def _completeness(
        self, source: SourceProgram, record: BatchRecord
    ) -> tuple[tuple[str, Hashable, Completeness], ...]:
        """Return how complete a stream is whose slack is learned."""
        own = not source.ordered and source.index in self._program.accountable
        judged = self._state.intakes[source.index].completeness() if own else ()
        name = source.spec.name
        return (*judged, *(line for stream, *line in record.complete if stream == name))
