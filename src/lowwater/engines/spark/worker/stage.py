"""The stateful stage: the kernels of a stage in Spark's arbitrary-state operator, by bucket.

All rows of the batch go in first, then its promises: that is always safe, because rows that come
after a promise keep it. What the promises complete leaves in the same batch.

Invariant: what a bucket does in a batch follows from its state and its messages alone, so a batch
that is run again does the same again.
"""

from __future__ import annotations

import dataclasses
import json
import time
import warnings
from collections.abc import Hashable, Iterable, Iterator
from itertools import chain
from typing import Any

import polars as pl
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from lowwater.engines.awaiting import Awaiting
from lowwater.engines.spark.wire import tick_requests as asking
from lowwater.engines.spark.wire.errors import carrying
from lowwater.engines.spark.wire.message import Account, Kind, Message, pickled, unpacked, unpickled
from lowwater.engines.spark.wire.program import SourceProgram, StageProgram
from lowwater.engines.spark.worker import hints
from lowwater.engines.spark.worker.cache import ChunkCache
from lowwater.engines.spark.worker.graph import Graph
from lowwater.engines.spark.worker.late import keep_refused
from lowwater.engines.spark.worker.outgoing import send
from lowwater.engines.spark.worker.store import Shelf, SparkStore
from lowwater.engines.spark.worker.task import Task, current_task, end_quietly
from lowwater.errors import CheckpointError, StreamWarning
from lowwater.metrics import CHANNELS
from lowwater.operators.identity import Identity
from lowwater.operators.kernel import Reducing
from lowwater.operators.union import Union
from lowwater.progress.completeness import Completeness
from lowwater.progress.contract import Heartbeat, OnDemand, Timer
from lowwater.progress.intake import BatchIntake
from lowwater.progress.late import LateAccount, LateRows
from lowwater.state.store import ChunkKey, MemoryStore
from lowwater.stream.element import (
    BEGINNING,
    GONE,
    Chunk,
    Element,
    End,
    GroupPunctuation,
)
from lowwater.updates.staleness import Shows

CHUNK_KEY = "slot string, name string, slice bigint, sequence bigint"
INDEX = "about string, body binary"


class StageProcessor(StatefulProcessor):
    """What Spark calls, once a bucket and batch."""

    def __init__(self, program: StageProgram, last: int):
        self._program, self._last = program, last

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state."""
        end_quietly()
        self._chunks = handle.getMapState("chunks", CHUNK_KEY, "body binary")
        self._index = handle.getValueState("index", INDEX)

    def handleInputRows(
        self,
        key: Any,
        rows: Iterator[Row],
        timerValues: Any,
    ) -> Iterator[Row]:
        """Work on all messages of a bucket."""
        del timerValues
        with carrying():
            mine: list[Message] = []
            for row in rows:
                message = Message(*row)
                if message.stage == self._program.number:
                    mine.append(message)
                else:
                    yield _row(message)
            if mine:
                task = current_task()
                cache = ChunkCache(task.run, self._program.number, int(key[0]))
                shelf = _Shelf(self._chunks)
                bucket = Bucket(self._program, self._last, int(key[0]), shelf, cache)
                saved = self._index.get()
                if saved is None:
                    cache.sweep()
                bucket.open(saved[1] if saved is not None else None)
                yield from map(_row, bucket.work(mine, task))
                self._index.update(bucket.saved())

    def close(self) -> None:
        """Nothing to give back."""


FOR_NEW_ROWS = 200_000_000
"""Nanoseconds for which rows that wait do so for a batch of new ones, before they ask for a tick,
which takes a task of its own."""
AT_ONCE = 1_000_000
"""Rows given to an operator together at most; each call costs the same for few as for many."""


def _gathered(messages: list[Message]) -> Iterator[tuple[int, Chunk]]:
    """The rows of messages, those on one port together; a replay's in the order of its log."""
    held: dict[int, list[Chunk]] = {}
    for message in sorted(messages, key=lambda each: each.sender):
        chunks = held.setdefault(message.port, [])
        chunks.append(unpacked(message.body))
        if sum(chunk.height for chunk in chunks) >= AT_ONCE:
            yield message.port, pl.concat(held.pop(message.port))
    for port, chunks in held.items():
        yield port, pl.concat(chunks) if len(chunks) > 1 else chunks[0]


def _row(message: Message) -> Row:
    return Row(**message._asdict())


class _Shelf:
    """Chunks in Spark's map state."""

    def __init__(self, chunks: Any):
        self._chunks = chunks

    def read(self, slot: str, key: ChunkKey) -> bytes:
        """The bytes of a chunk."""
        value = self._chunks.getValue((slot, key.name, key.slice, key.sequence))
        if value is None:
            raise CheckpointError(f"the state of {slot} lacks a chunk it should have: {key}")
        return bytes(value[0])

    def write(self, slot: str, key: ChunkKey, body: bytes) -> None:
        """Keep the bytes of a chunk."""
        self._chunks.updateValue((slot, key.name, key.slice, key.sequence), (body,))

    def erase(self, slot: str, key: ChunkKey) -> None:
        """Drop a chunk."""
        self._chunks.removeKey((slot, key.name, key.slice, key.sequence))


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
        self._notes: list[str] = []
        self._late: list[LateRows] = []
        self._complete: list[tuple[str, str, Hashable, Completeness]] = []
        self._told: dict[int, Account] = {}
        self._spoken: dict[int, int] = {}
        self._when: int | None = None
        self._waits = False
        self._holding: list[str] = []

    # ---- state -----------------------------------------------------------------------------

    def open(self, body: bytes | None) -> None:
        """Bring everything to where the batch before left it."""
        program = self._program
        saved: dict[str, Any] = unpickled(body) if body is not None else {}
        self._check(saved)
        stores = saved.get("stores", {})
        self._stores: dict[str, SparkStore] = {
            part.slot: SparkStore(part.slot, self._shelf, stores.get(part.slot), self._cache)
            for part in program.parts
        }
        self._graph = Graph(
            program.parts, program.exports, self._stores.__getitem__, lambda: self._now
        )
        for member in self._graph.members.values():
            member.kernel.copies = len(program.ids)
            member.kernel.in_batches = True
            member.kernel.unhurried = not program.hurried
        self._graph.restore(saved.get("kernels", {}))
        if not saved or "awaiting" in saved:
            self._follow(saved.get("awaiting", {}))
        self._intakes: dict[int, BatchIntake] = {}
        self._accounts: dict[int, LateAccount] = {}
        self._rows: dict[int, int] = {}
        for source in program.sources:
            name = source.spec.name
            slot = f"source {name}"
            store = SparkStore(slot, self._shelf, stores.get(slot), self._cache)
            before = saved.get("intakes", {}).get(name)
            announced = () if source.ordered or before is not None else source.announced
            intake = BatchIntake(source.spec, source.demands, announced, store)
            if before is not None:
                intake.restore(before)
            self._stores[slot] = store
            self._intakes[source.index] = intake
            self._accounts[source.index] = LateAccount(name)
            self._rows[source.index] = 0
        self._aligned = {
            producer: Union(MemoryStore(), len(senders))
            for producer, senders in program.exchanges.items()
        }
        for producer, union in self._aligned.items():
            if producer in saved.get("aligned", {}):
                union.restore(saved["aligned"][producer])
        self._ended: set[int] = set(saved.get("ended", ()))
        self._accountable = {  # of several stages that judge a source, one keeps what is refused
            source.index
            for source in program.sources
            if source.deliveries[0].stage == program.number
        }

    def _follow(self, saved: dict[Any, Any]) -> None:
        """Follow what is awaited of single groups, if timestamps are made for them on demand."""
        sources = [each for each in self._program.sources if each.spec.groups]
        asked = frozenset(s.index for s in sources if isinstance(s.spec.idle, OnDemand))
        if asked:
            groups = {each.index: each.spec.groups for each in sources}
            self._graph.awaiting = Awaiting(self._graph.nodes, groups, asked)
            self._graph.awaiting.restore(saved)

    def _check(self, saved: dict[str, Any]) -> None:
        if not saved:
            return
        before, now = list(saved["fingerprint"]), list(self._program.fingerprint)
        if before != now:
            gone = [line for line in before if line not in now]
            new = [line for line in now if line not in before]
            lines = [f"  was: {line}" for line in gone] + [f"  is:  {line}" for line in new]
            raise CheckpointError(
                "the checkpoint holds the state of another plan, which this one cannot read:\n"
                + "\n".join(lines or ["  the same operators in another order"])
                + "\nStart from a new checkpoint, or bring the query back to what it was."
            )
        for (where, own), made_with in zip(self._program.own, saved["own"], strict=True):
            change = own.change_from(Identity(**made_with))
            if change is not None:
                raise CheckpointError(own.advice(where, own.name, change))
        if saved["probe"] != self._program.probe:
            raise CheckpointError(
                "the checkpoint was written with a version of polars that spreads keys differently;"
                f" go on with polars {saved['polars']}, or start from a new checkpoint"
            )

    def saved(self) -> tuple[str, bytes]:
        """What the next batch needs, for people and for us."""
        for index, intake in self._intakes.items():
            if index in self._ended:
                intake.clear()
            intake.settle()
        body = {
            "fingerprint": self._program.fingerprint,
            "own": [vars(own) for _, own in self._program.own],
            "probe": self._program.probe,
            "polars": pl.__version__,
            "stores": {slot: store.save() for slot, store in self._stores.items()},
            "kernels": self._graph.snapshot(),
            "intakes": {i.spec.name: i.snapshot() for i in self._intakes.values()},
            "aligned": {producer: each.snapshot() for producer, each in self._aligned.items()},
            "ended": sorted(self._ended),
        }
        if self._graph.awaiting is not None:
            body["awaiting"] = self._graph.awaiting.snapshot()
        return json.dumps(self._about(), default=str), pickled(body)

    # ---- one batch -------------------------------------------------------------------------

    def work(self, messages: Iterable[Message], task: Task) -> Iterator[Message]:
        """Run the batch and give what leaves."""
        by_kind: dict[int, list[Message]] = {}
        for message in messages:
            by_kind.setdefault(message.kind, []).append(message)
            self._now = max(self._now, message.at)
        with warnings.catch_warnings(record=True) as noticed:
            warnings.simplefilter("always")
            refused = self._take_rows(by_kind)
            self._take_promises(by_kind)
            self._take_ticks(by_kind)
            self._graph.finish()
            self._take_refused(refused)
        keep_refused(self._program.late_folder, self._program.number, task.batch, self._id, refused)
        self._ask(task)
        if self._intakes and not all(s.ordered for s in self._program.sources):
            marks = {index: intake.marks_after() for index, intake in self._intakes.items()}
            hints.leave(task.run, task.batch, self._program.number, marks, self._own_groups)
        for route in self._program.routes:
            yield from send(
                route, self._graph.left[route.producer], self._id, self._last, self._now
            )
        self._graph.settle()
        own = self._id == self._program.ids[0]  # all buckets notice the same
        notes = [str(each.message) for each in noticed if own and each.category is StreamWarning]
        for member in self._graph.members.values():
            notes += [f"{member.part.where.title}: {each}" for each in member.kernel.notes()]
        yield self._report([*self._notes, *notes], task.batch)

    @property
    def _own_groups(self) -> int | None:
        """The bucket, if there are groups of which it alone knows the marks."""
        deliveries = (each for source in self._program.sources for each in source.deliveries)
        number = self._program.number
        alone = any(each.owned and each.stage == number for each in deliveries)
        return self._id if alone else None

    def _take_rows(self, by_kind: dict[int, list[Message]]) -> dict[str, list[Chunk]]:
        refused: dict[str, list[Chunk]] = {}
        standing = {index: intake.marks_before() for index, intake in self._intakes.items()}
        leaps = {
            source.index: self._absorb(source, by_kind.get(Kind.DIGEST, []))
            for source in self._program.sources
            if not source.ordered
        }
        for port, raw in _gathered(by_kind.get(Kind.RAW, [])):
            intake = self._intakes[port]
            rows = intake.judge(raw, standing[port], leaps[port])
            aside = intake.refused()
            if aside is not None and port in self._accountable:
                refused.setdefault(intake.spec.name, []).append(aside)
            self._graph.push(port, [rows])
        for message in by_kind.get(Kind.REFUSED, []):
            told, body = unpickled(message.body)
            self._notes += told.notes
            self._complete += told.complete
            self._told[message.port] = told
            account = self._accounts[message.port]
            for line in told.late:
                total = line.mean_seconds * line.rows
                account.add(line.channel, line.reason, line.rows, line.longest_seconds, total)
            if body:
                name = self._intakes[message.port].spec.name
                refused.setdefault(name, []).append(unpacked(body))
        for port, partials in _gathered(by_kind.get(Kind.PARTIALS, [])):
            kernel = self._graph.members[port].kernel
            assert isinstance(kernel, Reducing)
            self._graph.members[port].counts.rows_in += partials.height
            kernel.on_partials(partials)
        for port, rows in _gathered(by_kind.get(Kind.ROWS, [])):
            self._graph.push(port, [rows])
        return refused

    def _take_refused(self, refused: dict[str, list[Chunk]]) -> None:
        """Rows that operators have found to be late."""
        for member in self._graph.members.values():
            found = member.kernel.refused()
            if found is None:
                continue
            stream, rows, lines = found
            self._late += lines
            if rows is not None:
                refused.setdefault(stream, []).append(rows)

    def _absorb(self, source: SourceProgram, digests: list[Message]) -> dict[str, Chunk]:
        found, rows, at = [], 0, 0
        for message in digests:
            if message.port == source.index:
                count, body = unpickled(message.body)
                rows += count
                at = message.at
                if body:
                    found.append(unpacked(body))
        self._rows[source.index] += rows
        together = pl.concat(found) if found else None
        return self._intakes[source.index].absorb(together, at, rows)

    def _take_promises(self, by_kind: dict[int, list[Message]]) -> None:
        for source in self._program.sources:
            if not source.ordered and self._rows[source.index]:
                self._graph.push(source.index, self._intakes[source.index].row_promises())
        self._stamp(by_kind)
        told = by_kind.get(Kind.ELEMENTS, [])
        for message in sorted(told, key=lambda m: (m.port, m.sender)):  # in all buckets alike
            elements: list[Element] = unpickled(message.body)
            union = self._aligned.get(message.port)
            if union is None:
                self._graph.push(message.port, elements)
                if any(isinstance(each, End) for each in elements):
                    self._ended.add(message.port)
                continue
            port = self._program.exchanges[message.port].index(message.sender)
            for element in elements:
                if isinstance(element, End):
                    results = union.on_end(port)
                elif isinstance(element, GroupPunctuation):
                    alone = message.port in self._program.owned or element.attribute == GONE
                    results = [element] if alone else union.on_group_punctuation(port, element)
                else:
                    assert not isinstance(element, pl.DataFrame)
                    results = union.on_punctuation(port, element)
                self._graph.push(message.port, results)

    def _stamp(self, by_kind: dict[int, list[Message]]) -> None:
        """Latent rows anywhere in the batch move the time in every bucket alike."""
        latent = {s.index for s in self._program.sources if s.spec.stamp == "latent"}
        spoken = [*by_kind.get(Kind.DIGEST, []), *by_kind.get(Kind.ELEMENTS, [])]
        times = [message.at for message in spoken if message.port in latent]
        for index, kernel in self._graph.stamps.items() if times else ():
            self._graph.push(index, kernel.moved(max(times)))

    def _take_ticks(self, by_kind: dict[int, list[Message]]) -> None:
        """Silent sources speak: enabling timestamps, heartbeats and timers go by the tick."""
        ticks = by_kind.get(Kind.TICK, [])
        if not ticks:
            return
        now = max(message.at for message in ticks)
        for source in self._program.sources:
            if source.ordered or source.index in self._ended:
                continue
            if any(message.body == b"end" for message in ticks):
                self._ended.add(source.index)
                self._graph.push(source.index, [End()])
                continue
            intake = self._intakes[source.index]
            if isinstance(source.spec.punctuate, Timer):
                self._graph.push(source.index, intake.promises())
            # Rows of a batch are of some channels; the others may be silent all the same.
            silent = not self._rows[source.index] or bool(source.spec.key_columns)
            quiet = silent or source.spec.stamp == "internal"
            if isinstance(source.spec.idle, OnDemand | Heartbeat) and quiet:
                for attribute in source.spec.contracts:
                    promises = intake.enable(attribute, BEGINNING, now)
                    self._spoken[source.index] = self._spoken.get(source.index, 0) + bool(promises)
                    self._graph.push(source.index, promises)
        latent = [each for each in self._program.sources if each.spec.stamp == "latent"]
        if not any(each.ordered for each in latent):  # rows of a log are stamped by its clock
            told = self._graph.tell_clock(now)
            for source in latent if told else ():
                self._spoken[source.index] = self._spoken.get(source.index, 0) + 1

    def _ask(self, task: Task) -> None:
        """Tell the clock what is waited for."""
        program = self._program
        if program.ask_folder is None:
            return
        waits = self._graph.waits
        due: int | None
        when: int | None = time.time_ns() + FOR_NEW_ROWS if waits else None
        asks = self._graph.asks()
        self._holding = [*asks, *self._graph.holding]
        for producer, attribute, mark in chain.from_iterable(asks.values()):
            intake = self._intakes.get(producer)
            if producer in self._graph.members:  # latent time is the clock
                due = self._graph.clock_due(producer, mark)
            elif intake is None:  # it comes from another stage, where the clock has to be asked
                due = self._now
            elif not isinstance(intake.spec.idle, OnDemand) or producer in self._ended:
                continue
            else:
                due = intake.when(attribute, mark, self._now)
            if due is not None:
                when = due if when is None else min(when, due)
        for group_due in self._group_requests():
            when = group_due if when is None else min(when, group_due)
        self._when = when
        self._waits = waits
        asking.ask(program.ask_folder, program.number, self._id, task.batch, when, waits)

    def _group_requests(self) -> Iterator[int]:
        """From when on a tick would let something of a single group be answered."""
        if self._graph.awaiting is None:
            return
        for each in self._graph.awaiting.changes():
            intake = self._intakes.get(each.source)
            if intake is None:
                yield self._now  # it comes from another stage, where the clock has to be asked
            else:
                intake.request(each.attribute, each.origin, each.group, each.mark)
        for index, intake in self._intakes.items():
            due = None if index in self._ended else intake.due_groups()
            if due is not None:
                yield due

    # ---- what people are told --------------------------------------------------------------

    def _about(self) -> dict[str, Any]:
        operators = {}
        for member in self._graph.members.values():
            store, marks = self._stores[member.part.slot], member.kernel.marks()
            rows, size = member.kernel.held
            operators[member.part.where.title] = {
                "marks": marks,
                "shown": member.part.shown(marks),
                "chunks": store.chunks,
                "rows": store.rows + rows,
                "bytes": store.bytes + size,
                "about": member.kernel.about(),
            }
            if isinstance(member.kernel, Shows):
                operators[member.part.where.title]["staleness"] = member.kernel.staleness().plain()
        streams = {
            intake.spec.name: {name: intake.shown(name) for name in intake.spec.domains}
            for index, intake in self._intakes.items()
        }
        shown = {
            intake.spec.name: {
                name: str(domain.show(intake.shown(name)))
                for name, domain in intake.spec.domains.items()
            }
            for source in self._program.sources
            if not source.ordered
            for intake in [self._intakes[source.index]]
        }
        return {
            "stage": self._program.number,
            "bucket": self._id,
            "operators": operators,
            "streams": streams,
            "streams_shown": shown,
        }

    def _channels(self, first: bool) -> dict[str, Any]:
        """How far the channels of streams are, as plain values; each is told of by one bucket."""
        found: dict[str, Any] = {}
        for source in self._program.sources:
            if source.index not in self._accountable:
                continue
            if source.ordered:
                told = self._told.get(source.index)
                channels = told.channels if told else None
            else:
                alone = source.deliveries[0].owned
                intake = self._intakes[source.index]
                channels = intake.channels(source.spec.time, CHANNELS) if first or alone else None
            if channels is not None:
                found[source.spec.name] = dataclasses.asdict(channels) | {"now": self._now}
        return found

    def _completeness(self) -> list[tuple[Any, ...]]:
        """How complete the streams are whose promise is learned, as plain values."""
        own = [
            (source.spec.name, *each)
            for source in self._program.sources
            if not source.ordered and source.index in self._accountable
            for each in self._intakes[source.index].completeness()
        ]
        return [
            (stream, attribute, channel, *dataclasses.astuple(each))
            for stream, attribute, channel, each in (*own, *self._complete)
        ]

    def _report(self, notes: list[str], batch: int) -> Message:
        about = self._about() | {"batch": batch}
        for member in self._graph.members.values():
            about["operators"][member.part.where.title] |= vars(member.counts)
        first = self._id == self._program.ids[0]
        about["rows"] = {
            intake.spec.name: self._rows[index] + read
            if first and index in self._accountable
            else 0
            for index, intake in self._intakes.items()
            for read in [self._told[index].rows if index in self._told else 0]
        }
        for index, told in self._told.items():
            about["streams"][self._intakes[index].spec.name] |= told.marks
        about["spoken"] = {
            self._intakes[index].spec.name: count for index, count in self._spoken.items() if first
        }
        about["channels"] = self._channels(first)
        about["holding"] = self._holding
        lines = []
        for index, intake in self._intakes.items():
            own = intake.account.lines() if index in self._accountable else []
            both = [*own, *self._accounts[index].lines()]
            lines += [
                (x.stream, x.channel, x.reason, x.rows, x.longest_seconds, x.mean_seconds)
                for x in both
            ]
        lines += [
            (x.stream, x.channel, x.reason, x.rows, x.longest_seconds, x.mean_seconds)
            for x in self._late
        ]
        about["late"] = lines
        about["complete"] = self._completeness() if first else []
        about["ended"] = [s.spec.name for s in self._program.sources if s.index in self._ended]
        about["notes"] = notes
        if self._program.ask_folder is not None:
            about |= {
                "when": self._when,
                "waits": self._waits,
                "asks": self._program.ask_folder,
            }
        body = json.dumps(about, default=str).encode()
        return Message(self._last, self._program.ids[0], -1, Kind.REPORT, self._id, 0, body)
