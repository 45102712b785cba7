"""A bucket runs the kernels of a stage over one part of the state, for one batch.

All rows of the batch are taken in first, then its promises. This is always safe: of the rows of the
batch, those sent after a promise keep it, so no kernel gets a row that breaks a promise. Answers
that the promises complete leave in the same batch.

Invariant: the messages and the state after a batch follow from the state before it and its messages
alone, so a batch that is run again has the same outcome.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

import polars as pl

from lowwater.engines.spark.wire import tick_requests
from lowwater.engines.spark.wire.answer_files import changes_of, file_of, write_changes
from lowwater.engines.spark.wire.late_files import keep_refused
from lowwater.engines.spark.wire.message import LAST_TICK, Kind, Message, unpacked, unpickled
from lowwater.engines.spark.wire.program import SourceProgram, StageProgram
from lowwater.engines.spark.wire.report import TickRequest
from lowwater.engines.spark.worker import hints
from lowwater.engines.spark.worker.bucket_report import BatchRecord, BucketReport
from lowwater.engines.spark.worker.cache import ChunkCache
from lowwater.engines.spark.worker.outgoing import send
from lowwater.engines.spark.worker.saved_state import open_state, save_state
from lowwater.engines.spark.worker.store import Shelf
from lowwater.engines.spark.worker.task import Task
from lowwater.engines.step import step
from lowwater.errors import StreamWarning
from lowwater.operators.kernel import Reducer
from lowwater.progress.first_rows import FirstRows
from lowwater.progress.intake import BatchIntake
from lowwater.progress.options import Heartbeat, OnDemand, Timer
from lowwater.stream.element import ENDED, Chunk, Element, End, GroupPunctuation
from lowwater.updates.queue_kernel import QueueKernel

FOR_NEW_ROWS = 200_000_000
"""Nanoseconds after which a tick is requested for waiting rows. A batch of new rows that comes
earlier takes them along and saves the batch of the tick."""
AT_ONCE = 1_000_000
"""The greatest number of rows given to an operator at once; a call costs the same for few rows as
for many."""


def _gathered(messages: list[Message]) -> Iterator[tuple[int, Chunk]]:
    """Yield the rows of messages, concatenated by port; a replay's in the order of its log."""
    held: dict[int, list[Chunk]] = {}
    for message in sorted(messages, key=lambda each: each.sender):
        chunks = held.setdefault(message.port, [])
        chunks.append(unpacked(message.body))
        if sum(chunk.height for chunk in chunks) >= AT_ONCE:
            yield message.port, pl.concat(held.pop(message.port))
    for port, chunks in held.items():
        yield port, pl.concat(chunks) if len(chunks) > 1 else chunks[0]


def _first_rows(
    sources: Sequence[SourceProgram], intakes: Mapping[int, BatchIntake]
) -> list[FirstRows]:
    """Return what confirms first rows: for sources that are read by the same stages, so that each
    of these stages comes to the same marks."""
    together: dict[frozenset[int], list[SourceProgram]] = {}
    for each in sources:
        if not each.ordered:
            together.setdefault(frozenset(d.stage for d in each.deliveries), []).append(each)
    return [
        FirstRows(
            {each.index: intakes[each.index] for each in read},
            {each.index: each.origin for each in read},
        )
        for read in together.values()
    ]


class Bucket:
    """One bucket of a stage in one batch."""

    def __init__(
        self,
        program: StageProgram,
        last: int,
        bucket: int,
        shelf: Shelf,
        cache: ChunkCache | None = None,
    ):
        self._program, self._last, self._id = program, last, bucket
        self._shelf, self._cache = shelf, cache
        self._now = 0
        self._read: set[int] = set()  # the sources that something came from in this batch
        self._record = BatchRecord.of(program)

    def open(self, body: bytes | None) -> None:
        """Restore the state that the batch before saved; ``body`` is None before the first."""
        self._state = open_state(self._program, body, self._shelf, self._cache, lambda: self._now)
        self._graph, self._intakes = self._state.graph, self._state.intakes
        self._ended = self._state.ended
        self._first_rows = _first_rows(self._program.sources, self._intakes)
        self._confirmed: set[int] = set()

    def saved(self) -> tuple[str, bytes]:
        """Return the state for the next batch: a summary for people, and the bytes."""
        body = save_state(self._program, self._state)
        return self._report().summary(), body

    def _report(self) -> BucketReport:
        return BucketReport(self._program, self._id, self._state, self._now)

    # ---- one batch -------------------------------------------------------------------------

    def work(self, messages: Iterable[Message], task: Task) -> Iterator[Message]:
        """Run the batch and yield the messages that leave."""
        by_kind: dict[int, list[Message]] = {}
        for message in messages:
            by_kind.setdefault(message.kind, []).append(message)
            self._now = max(self._now, message.at)
        with warnings.catch_warnings(record=True) as noticed:
            warnings.simplefilter("always")
            self._graph.share_memory()
            refused = self._take_rows(by_kind)
            self._take_promises(by_kind)
            self._take_ticks(by_kind)
            self._graph.finish()
            self._take_late_rows(refused)
        keep_refused(self._program.late_folder, self._program.number, task.batch, self._id, refused)
        self._keep_answers(task)
        self._request_tick(task)
        if self._intakes and not all(s.ordered for s in self._program.sources):
            marks = {index: intake.marks_after() for index, intake in self._intakes.items()}
            hints.write(task.run, task.batch, self._program.number, marks, self._own_groups)
        for route in self._program.routes:
            yield from send(
                route, self._graph.left[route.producer], self._id, self._last, self._now
            )
        self._graph.settle()
        own = self._id == self._program.ids[0]  # all buckets have the same warnings
        self._record.notes += [
            str(each.message) for each in noticed if own and each.category is StreamWarning
        ]
        for member in self._graph.members.values():
            self._record.notes += member.notes()
        yield self._report().message(self._record, task.batch, self._last)

    def _keep_answers(self, task: Task) -> None:
        """Write the newest answers of the batch, where they are kept."""
        files = self._program.answers
        if files is None:
            return
        queues = [self._graph.members[each.operator].kernel for each in files.queues]
        left = () if files.result is None else self._graph.left[files.result]
        found = changes_of(
            files, left, [q for q in queues if isinstance(q, QueueKernel)], self._now
        )
        name = file_of(task.batch, self._program.number, self._id)
        write_changes(Path(files.folder) / name, found)

    @property
    def _own_groups(self) -> int | None:
        """The id of the bucket if it alone has the marks of some groups, else None."""
        deliveries = (each for source in self._program.sources for each in source.deliveries)
        number = self._program.number
        alone = any(each.owned and each.stage == number for each in deliveries)
        return self._id if alone else None

    def _take_rows(self, by_kind: dict[int, list[Message]]) -> dict[str, list[Chunk]]:
        """Take in the rows of the batch; return the refused ones by the name of their stream."""
        refused: dict[str, list[Chunk]] = {}
        standing = {index: intake.marks_before() for index, intake in self._intakes.items()}
        leaps = {
            source.index: self._absorb(source, by_kind.get(Kind.DIGEST, []))
            for source in self._program.sources
            if not source.ordered
        }
        for each in self._first_rows:
            self._confirmed |= each.confirm_all(i for i in leaps if self._record.rows[i])
        for port, raw in _gathered(by_kind.get(Kind.RAW, [])):
            intake = self._intakes[port]
            rows = intake.judge(raw, standing[port], leaps[port])
            found = intake.refused()
            if found is not None and port in self._program.accountable:
                refused.setdefault(intake.spec.name, []).append(found)
            self._graph.push(port, [rows])
        for message in by_kind.get(Kind.REFUSED, []):
            self._take_reader_report(message, refused)
        for port, partials in _gathered(by_kind.get(Kind.PARTIALS, [])):
            member = self._graph.members[port]
            assert isinstance(member.kernel, Reducer)
            member.counts.count_in(partials)
            member.call(member.kernel.on_partials, partials)
        for port, rows in _gathered(by_kind.get(Kind.ROWS, [])):
            self._graph.push(port, [rows])
        return refused

    def _take_reader_report(self, message: Message, refused: dict[str, list[Chunk]]) -> None:
        """Take the rows that a reader refused, and its report."""
        read, body = unpickled(message.body)
        self._record.notes += read.notes
        self._record.complete += read.complete
        self._record.read[message.port] = read
        self._record.accounts[message.port].add_lines(read.late)
        if body:
            name = self._intakes[message.port].spec.name
            refused.setdefault(name, []).append(unpacked(body))

    def _take_late_rows(self, refused: dict[str, list[Chunk]]) -> None:
        """Take the rows that operators found to be late."""
        for member in self._graph.members.values():
            found = member.call(member.kernel.take_late_rows)
            if found is None:
                continue
            stream, rows, lines = found
            self._record.late += lines
            if rows is not None:
                refused.setdefault(stream, []).append(rows)

    def _absorb(self, source: SourceProgram, digests: list[Message]) -> dict[str, Chunk]:
        """Move the marks of a source by the digests of its rows; return the leaps in them, by
        attribute."""
        found, rows, at = [], 0, 0
        for message in digests:
            if message.port == source.index:
                count, body = unpickled(message.body)
                self._read.add(source.index)
                rows += count
                at = message.at
                if body:
                    found.append(unpacked(body))
        self._record.rows[source.index] += rows
        together = pl.concat(found) if found else None
        intake = self._intakes[source.index]
        leaps = intake.absorb(together, at, rows)
        account = intake.account
        self._record.contradicted[source.index] = account.strays, account.backward_marks
        return leaps

    def _take_promises(self, by_kind: dict[int, list[Message]]) -> None:
        for source in self._program.sources:
            moved = source.index in self._read or source.index in self._confirmed
            if not source.ordered and moved and source.index not in self._ended:
                self._graph.push(source.index, self._intakes[source.index].row_promises())
        self._stamp(by_kind)
        promises = by_kind.get(Kind.ELEMENTS, [])
        for message in sorted(promises, key=lambda m: (m.port, m.sender)):  # in all buckets alike
            elements: list[Element] = unpickled(message.body)
            exchange = self._program.exchanges.get(message.port)
            if exchange is None:  # it comes from a source
                self._graph.push(message.port, elements)
                if any(isinstance(each, End) for each in elements):
                    self._ended.add(message.port)
                continue
            union = self._state.aligned[message.port]
            port = exchange.senders.index(message.sender)
            for element in elements:
                alone = isinstance(element, GroupPunctuation) and (
                    exchange.owned or element.attribute == ENDED
                )
                results = [element] if alone else step(union, port, element, exchange.where)
                self._graph.push(message.port, results)

    def _stamp(self, by_kind: dict[int, list[Message]]) -> None:
        """Move latent time to the last latent rows of the batch, in every bucket alike."""
        latent = {s.index for s in self._program.sources if s.spec.stamp == "latent"}
        sent = [*by_kind.get(Kind.DIGEST, []), *by_kind.get(Kind.ELEMENTS, [])]
        times = [message.at for message in sent if message.port in latent]
        if times:
            self._graph.stamp(max(times))

    def _take_ticks(self, by_kind: dict[int, list[Message]]) -> None:
        """Make the enabling timestamps, heartbeats and timers of silent sources, by the tick."""
        ticks = by_kind.get(Kind.TICK, [])
        if not ticks:
            return
        now = max(message.at for message in ticks)
        for source in self._program.sources:
            if source.ordered or source.index in self._ended:
                continue
            if any(message.body == LAST_TICK for message in ticks):
                self._ended.add(source.index)
                self._graph.push(source.index, [End()])
                continue
            intake = self._intakes[source.index]
            if isinstance(source.spec.punctuate, Timer):
                self._graph.push(source.index, intake.promises())
            # Rows of a batch are of some channels; the others may be silent all the same.
            silent = not self._record.rows[source.index] or bool(source.spec.key_columns)
            quiet = silent or source.spec.stamp == "internal"
            if isinstance(source.spec.idle, OnDemand | Heartbeat) and quiet:
                made = [promises for promises in intake.enable_all(now) if promises]
                beats = isinstance(source.spec.idle, Heartbeat)
                self._record.stamps[source.index] += bool(made) if beats else len(made)
                for promises in made:
                    self._graph.push(source.index, promises)
        latent = [each for each in self._program.sources if each.spec.stamp == "latent"]
        if not any(each.ordered for each in latent):  # rows of a log are stamped by its clock
            promised = self._graph.tick(now)
            for source in latent if promised else ():
                self._record.stamps[source.index] += 1

    def _request_tick(self, task: Task) -> None:
        """Request a tick for the earliest time at which it would release something."""
        program = self._program
        if program.request_folder is None:
            return
        waits = self._graph.waits
        times: list[int | None] = [time.time_ns() + FOR_NEW_ROWS] if waits else []
        needs = self._graph.needs()
        self._record.holding = [*needs, *self._graph.holding]
        for producer, attribute, mark in chain.from_iterable(needs.values()):
            intake = self._intakes.get(producer)
            if producer in self._graph.members:  # latent time is the clock
                times.append(self._graph.clock_due(producer, mark))
            elif intake is None:  # it comes from another stage, which then requests a tick itself
                times.append(self._now)
            elif isinstance(intake.spec.idle, OnDemand) and producer not in self._ended:
                times.append(intake.when(attribute, mark, self._now))
        times += self._group_requests()
        when = min((each for each in times if each is not None), default=None)
        self._record.request = request = TickRequest(program.request_folder, when, waits)
        tick_requests.save_request(request, program.number, self._id, task.batch)

    def _group_requests(self) -> Iterator[int | None]:
        """Yield the times from which a tick would release something of a single group; None for a
        source that has no such request."""
        if self._graph.awaiting is None:
            return
        for each in self._graph.awaiting.changes():
            intake = self._intakes.get(each.source)
            if intake is None:
                yield self._now  # it comes from another stage, which then requests a tick itself
            else:
                intake.request(each.attribute, each.origin, each.group, each.mark)
        for index, intake in self._intakes.items():
            if index not in self._ended:
                yield intake.due_groups()
