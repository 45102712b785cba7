"""Reports: the numbers of one bucket after one batch, as JSON for the driver."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

from lowwater.engines.spark.wire.message import Account, Kind, Message
from lowwater.engines.spark.wire.program import StageProgram
from lowwater.engines.spark.worker.saved_state import BucketState
from lowwater.metrics import CHANNELS
from lowwater.progress.completeness import Completeness
from lowwater.progress.late import LateAccount, LateRows
from lowwater.updates.staleness import Shows


@dataclass
class BatchRecord:
    """What happened in one bucket in one batch, gathered while the batch runs."""

    rows: dict[int, int]
    """Rows of each source, as its digests count them."""
    accounts: dict[int, LateAccount]
    """The late rows of each source that its readers found."""
    notes: list[str] = field(default_factory=list)
    late: list[LateRows] = field(default_factory=list)
    """The late rows that operators found."""
    complete: list[tuple[str, str, Hashable, Completeness]] = field(default_factory=list)
    read: dict[int, Account] = field(default_factory=dict)
    """What the readers of ordered sources sent beside rows."""
    stamps: Counter[int] = field(default_factory=Counter)
    """Enabling timestamps and heartbeats of each source."""
    when: int | None = None
    """The clock time from which a tick is requested, in nanoseconds; None if none is."""
    waits: bool = False
    """Whether rows wait in queues for a batch that has time for them."""
    holding: list[str] = field(default_factory=list)
    """The operators that hold something back."""

    @classmethod
    def of(cls, program: StageProgram) -> BatchRecord:
        """An empty record for the sources of a stage."""
        return cls(
            {source.index: 0 for source in program.sources},
            {source.index: LateAccount(source.spec.name) for source in program.sources},
        )


class BucketReport:
    """The report of one bucket, from its state and the record of the batch."""

    def __init__(self, program: StageProgram, bucket: int, state: BucketState, now: int):
        self._program, self._bucket, self._state, self._now = program, bucket, state, now
        self._first = bucket == program.ids[0]

    def about(self) -> dict[str, Any]:
        """Return marks and sizes of operators and marks of streams; a checkpoint shows them."""
        operators = {}
        for member in self._state.graph.members.values():
            store, marks = self._state.stores[member.part.slot], member.kernel.marks()
            rows, size = member.kernel.held
            operators[member.part.where.title] = {
                "marks": marks,
                "shown": member.part.shown(marks),
                "chunks": store.chunks,
                "rows": store.rows + rows,
                "bytes": store.bytes + size,
                "metrics": member.kernel.metrics().plain(),
            }
            if isinstance(member.kernel, Shows):
                operators[member.part.where.title]["staleness"] = member.kernel.staleness().plain()
        streams = {
            intake.spec.name: {name: intake.shown(name) for name in intake.spec.domains}
            for intake in self._state.intakes.values()
        }
        shown = {
            intake.spec.name: {
                name: str(domain.show(intake.shown(name)))
                for name, domain in intake.spec.domains.items()
            }
            for source in self._program.sources
            if not source.ordered
            for intake in [self._state.intakes[source.index]]
        }
        return {
            "stage": self._program.number,
            "bucket": self._bucket,
            "operators": operators,
            "streams": streams,
            "streams_shown": shown,
        }

    def message(self, record: BatchRecord, batch: int, last: int) -> Message:
        """The report of a batch, as a message to the driver; ``last`` is the number of stages."""
        about = self.about() | {"batch": batch}
        for member in self._state.graph.members.values():
            about["operators"][member.part.where.title] |= vars(member.counts)
        intakes = self._state.intakes
        about["rows"] = {
            intake.spec.name: record.rows[index] + read
            if self._first and index in self._program.accountable
            else 0
            for index, intake in intakes.items()
            for read in [record.read[index].rows if index in record.read else 0]
        }
        for index, account in record.read.items():
            about["streams"][intakes[index].spec.name] |= account.marks
        about["spoken"] = {
            intakes[index].spec.name: count for index, count in record.stamps.items() if self._first
        }
        about["channels"] = self._channels(record)
        about["holding"] = record.holding
        about["late"] = self._late(record)
        about["complete"] = self._completeness(record) if self._first else []
        about["ended"] = [
            source.spec.name
            for source in self._program.sources
            if source.index in self._state.ended
        ]
        about["notes"] = record.notes
        if self._program.ask_folder is not None:
            about |= {
                "when": record.when,
                "waits": record.waits,
                "asks": self._program.ask_folder,
            }
        body = json.dumps(about, default=str).encode()
        return Message(last, self._program.ids[0], -1, Kind.REPORT, self._bucket, 0, body)

    def _late(self, record: BatchRecord) -> list[tuple[Any, ...]]:
        lines: list[LateRows] = []
        for index, intake in self._state.intakes.items():
            lines += intake.account.lines() if index in self._program.accountable else []
            lines += record.accounts[index].lines()
        return [
            (x.stream, x.channel, x.reason, x.rows, x.longest_seconds, x.mean_seconds)
            for x in (*lines, *record.late)
        ]

    def _channels(self, record: BatchRecord) -> dict[str, Any]:
        """The marks of channels as plain values; one bucket reports each channel."""
        found: dict[str, Any] = {}
        for source in self._program.sources:
            if source.index not in self._program.accountable:
                continue
            if source.ordered:
                read = record.read.get(source.index)
                channels = read.channels if read else None
            else:
                own = source.deliveries[0].owned
                intake = self._state.intakes[source.index]
                reports = self._first or own
                channels = intake.channels(source.spec.time, CHANNELS) if reports else None
            if channels is not None:
                found[source.spec.name] = dataclasses.asdict(channels) | {"now": self._now}
        return found

    def _completeness(self, record: BatchRecord) -> list[tuple[Any, ...]]:
        """How complete the streams are whose slack is learned, as plain values."""
        own = [
            (source.spec.name, *each)
            for source in self._program.sources
            if not source.ordered and source.index in self._program.accountable
            for each in self._state.intakes[source.index].completeness()
        ]
        return [
            (stream, attribute, channel, *dataclasses.astuple(each))
            for stream, attribute, channel, each in (*own, *record.complete)
        ]
