"""The Spark engine's own code without Spark: sources, buckets and result, batch by batch.

What Spark does between them is done here by hand, and as unkindly as Spark may: messages are
shuffled, every bucket is built again from its pickled state in every batch, batches fail and are
run again, sources start over from their offsets, rows of a batch are read in parts of which some
know the marks that held before and some do not.
"""

from __future__ import annotations

import random
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import polars as pl
from pyspark import cloudpickle

from lowwater.api import Stream
from lowwater.engines.memory import MemoryBudget
from lowwater.engines.spark.driver.listener import ANSWERS, METRICS, WHOLE
from lowwater.engines.spark.driver.plan_program import make_program
from lowwater.engines.spark.driver.reports import Reports
from lowwater.engines.spark.sources import replay as replay_source
from lowwater.engines.spark.sources.replay import ReplayLog, ReplayStreamReader
from lowwater.engines.spark.wire import message as message_module
from lowwater.engines.spark.wire.buckets import spark_hash
from lowwater.engines.spark.wire.late_files import read_refused
from lowwater.engines.spark.wire.message import Kind, Message, as_batch
from lowwater.engines.spark.wire.program import Program, SourceProgram
from lowwater.engines.spark.wire.types import spark_type, taken_back
from lowwater.engines.spark.worker import bucket as bucket_module
from lowwater.engines.spark.worker import cache, hints, outgoing
from lowwater.engines.spark.worker import store as spark_store
from lowwater.engines.spark.worker.bucket import Bucket
from lowwater.engines.spark.worker.result import ResultStage
from lowwater.engines.spark.worker.source_stage import Reading, known
from lowwater.engines.spark.worker.task import Task
from lowwater.joins import shape as join_shape
from lowwater.metrics import RunMetrics
from lowwater.operators import aggregates, partials
from lowwater.plan.nodes import SourceNode
from lowwater.plan.physical.operator import PlanShape
from lowwater.plan.physical.planner import compile_plan
from lowwater.sources.replay import Replay
from lowwater.state import slicing
from lowwater.state import store as store_module
from lowwater.state.index import ChunkKey

SMALL = (
    (slicing, "FIRST_ROWS", 5),
    (slicing, "ROWS_PER_SLICE", 3),
    (partials, "FEWEST", 3),
    (partials, "TRY_AGAIN", 2),
    (aggregates, "MANY", 4),
    (aggregates, "FEW", 4),
    (store_module, "COMPACT_BELOW", 4),
    (join_shape, "FAR", 0),
    (spark_store, "LEAST", 0),
    (replay_source, "ROWS_A_TASK", 7),
    (outgoing, "SAMPLE", 4),
    (message_module, "LARGE", 2),
    (bucket_module, "AT_ONCE", 5),
)
"""Thresholds that decide only what things cost, so that small streams go where large ones would."""


BATCH_SECONDS = 1_000


def clock(batch: int) -> int:
    """The time of day of a batch, in nanoseconds."""
    return (batch + 1) * BATCH_SECONDS * 1_000_000_000


class Unordered:
    """A table that is read in batches without order, like a streaming DataFrame."""

    arrival = None

    def __init__(self, table: pl.DataFrame, batches: Sequence[int]):
        assert sum(batches) == table.height
        self.table, self.batches = table, list(batches)

    @property
    def schema(self) -> dict[str, pl.DataType]:
        return dict(self.table.schema)

    @property
    def origin(self) -> int:
        return id(self.table)

    def open(self) -> Any:
        raise AssertionError("only the Spark engine reads this")

    def channels(self, columns: Sequence[str]) -> tuple[Any, ...]:
        return ()


class MemoryShelf:
    """Bytes of chunks in a dict; what is not there cannot be read or erased."""

    def __init__(self, chunks: dict[tuple[str, ChunkKey], bytes] | None = None):
        self.chunks = {} if chunks is None else chunks
        self.done: list[tuple[str, ChunkKey]] = []

    def read(self, slot: str, key: ChunkKey) -> bytes:
        self.done.append(("read", key))
        return self.chunks[slot, key]

    def write(self, slot: str, key: ChunkKey, body: bytes) -> None:
        assert (slot, key) not in self.chunks, "chunks are immutable and named once"
        self.done.append(("write", key))
        self.chunks[slot, key] = body

    def erase(self, slot: str, key: ChunkKey) -> None:
        self.done.append(("erase", key))
        del self.chunks[slot, key]


@dataclass
class Kept:
    """What Spark's state store keeps of one bucket."""

    index: bytes | None = None
    chunks: dict[tuple[str, ChunkKey], bytes] = field(default_factory=dict)

    def copy(self) -> Kept:
        return Kept(self.index, dict(self.chunks))


State = dict[tuple[int, int], Kept]


class LocalSpark:
    """Runs a query to the end and checks on the way that state and messages go where they should.

    Which rows a batch has follows from ``seed`` alone, so that runs on different numbers of buckets
    can be compared batch by batch. After :meth:`results`, ``answers`` holds the rows of each batch.
    """

    def __init__(
        self,
        query: Stream,
        seed: int,
        buckets: int = 2,
        shape: PlanShape = "out-of-order",
        memory: int | None = None,
        answers: Path | None = None,
        admission: str = "warn",
    ):
        self._schedule = random.Random(seed)
        self._chance = random.Random(f"{seed} {buckets} {shape}")
        self.plan = compile_plan(query._node, shape)
        self._folder = Path(tempfile.mkdtemp(prefix="lowwater-test-"))
        self._late_folder = str(self._folder / "late")
        kept = None if answers is None else str(answers)  # the folder of the newest answers
        program = make_program(
            self.plan, buckets, False, self._late_folder, memory=memory, answer_folder=kept
        )
        self.program: Program = cloudpickle.loads(cloudpickle.dumps(program))  # as workers get it
        self._buckets = buckets
        self._run = f"test-{uuid.uuid4()}"
        self._state: State = {}
        self._batch = 0
        self._ticking = False
        self.answers: list[pl.DataFrame] = []
        budget = None if memory is None else MemoryBudget.of(memory, admission)
        self._reports = Reports(self.plan, self.program, budget)
        self._reported: list[str] = []
        self._refused: dict[str, pl.DataFrame | None] = {}
        self._feeds: list[_ReplayFeed | _UnorderedFeed] = [
            self._feed(source, operator.node)
            for source, operator in zip(self.program.sources, self.plan.sources, strict=True)
        ]

    def _feed(self, source: SourceProgram, node: Any) -> _ReplayFeed | _UnorderedFeed:
        assert isinstance(node, SourceNode)
        if isinstance(node.source, Replay):
            rows, steps = node.source.rows, self._schedule.randint(0, 4)
            inner = sorted(self._schedule.randint(0, rows) for _ in range(steps))
            return _ReplayFeed(source, node.source, inner, self._folder, self._chance)
        assert isinstance(node.source, Unordered)
        return _UnorderedFeed(source, node.source, self._run, self._schedule, self._chance)

    # ---- a run -----------------------------------------------------------------------------

    def results(self) -> pl.DataFrame:
        """Run to the end and give all results."""
        try:
            with ExitStack() as small:
                if self._chance.random() < 0.5:
                    for module, name, value in SMALL:
                        small.enter_context(mock.patch.object(module, name, value))
                self._play()
            for source in self.program.sources:
                name = source.spec.name
                self._refused[name] = read_refused(self._late_folder, name)
        finally:
            hints.FOLDERS.forget(self._run)
            cache.FOLDERS.forget(self._run)
            shutil.rmtree(self._folder)
        return taken_back(pl.concat(self.answers), dict(self.program.schema))

    @property
    def notes(self) -> list[str]:
        """The warnings of the run so far."""
        return self._reports.notes

    @property
    def refusal(self) -> BaseException | None:
        """The error by which the run would be ended for lack of memory."""
        return self._reports.refusal

    def late(self, stream: str) -> pl.DataFrame | None:
        """The side output of a stream, after the run; None if it is empty."""
        return self._refused[stream]

    def _play(self) -> None:
        while not all(feed.ended for feed in self._feeds):
            for feed in self._feeds:
                feed.advance()
            self._ticking = self._schedule.random() < 0.5 and any(
                source.spec.idle or source.spec.punctuate for source in self.program.sources
            )
            self._run_batch(self._read)
        if not all(source.ordered for source in self.program.sources):
            self._run_batch(self._closing)
        for (stage, bucket), kept in self._state.items():
            assert not kept.chunks, f"stage {stage}, bucket {bucket} left {list(kept.chunks)}"

    def _read(self) -> Iterator[Message]:
        for feed in self._feeds:
            yield from feed.messages(self._batch)
        if self._ticking:
            yield from self._tick(b"")

    def _closing(self) -> Iterator[Message]:
        """The clock's last tick: sources that cannot say so have ended."""
        return self._tick(message_module.LAST_TICK)

    def _tick(self, body: bytes) -> Iterator[Message]:
        for stage in self.program.stages:
            for bucket in stage.ids if stage.sources or stage.stamps else ():
                yield Message(stage.number, bucket, -1, Kind.TICK, -1, clock(self._batch), body)

    def _run_batch(self, read: Callable[[], Iterable[Message]]) -> None:
        if self._chance.random() < 0.25:  # a try that fails after all its work was done
            self._tried(read())
            for feed in self._feeds:
                feed.start_over()
            if self._chance.random() < 0.5:
                cache.FOLDERS.forget(self._run)
        answers, self._state = self._tried(read())
        self.answers.append(answers)
        self._reports.take(self._progress(answers))
        self._batch += 1

    def _progress(self, answers: pl.DataFrame) -> Any:
        """What Spark would tell a listener of the batch."""
        observed = {METRICS: {"reports": self._reported}, ANSWERS: {"rows": answers.height}}
        began = datetime.fromtimestamp(clock(self._batch) / 1e9, UTC)
        return SimpleNamespace(
            batchId=self._batch,
            observedMetrics=observed,
            durationMs={WHOLE: 1_000},
            timestamp=began.isoformat(),
        )

    def metrics(self) -> RunMetrics:
        """The metrics of the run, as the driver gathers them."""
        return self._reports.metrics()

    def _tried(self, messages: Iterable[Message]) -> tuple[pl.DataFrame, State]:
        """The answers and the state after the batch, from the state before it."""
        state = {place: kept.copy() for place, kept in self._state.items()}
        flowing = self._shuffled(messages)
        for stage in self.program.stages:
            by_bucket: dict[int, list[Message]] = {}
            for message in flowing:
                assert message.stage >= stage.number, f"{message} came too late for its stage"
                by_bucket.setdefault(message.bucket, []).append(message)
            passing: list[Message] = []
            for bucket, given in by_bucket.items():
                mine = [message for message in given if message.stage == stage.number]
                passing += [message for message in given if message.stage != stage.number]
                if mine:
                    kept = state.setdefault((stage.number, bucket), Kept())
                    passing += self._worked(stage.number, bucket, mine, kept)
            flowing = self._shuffled(passing)
        return self._result(flowing), state

    def _worked(self, stage: int, number: int, mine: list[Message], kept: Kept) -> list[Message]:
        program = self.program.stages[stage]
        assert number in program.ids, f"bucket {number} is not one of stage {stage}"
        shelf, copies = MemoryShelf(kept.chunks), cache.ChunkCache(self._run, stage, number)
        bucket = Bucket(program, self.program.end, number, shelf, copies)
        bucket.open(kept.index)
        left = list(bucket.work(mine, Task(self._run, self._batch, 0)))
        kept.index = bucket.saved()[1]
        return left

    def _shuffled(self, messages: Iterable[Message]) -> list[Message]:
        """As Spark hands messages over: in any order, as rows of a batch."""
        rows = as_batch(messages).to_pylist()
        self._chance.shuffle(rows)
        return [Message(**row) for row in rows]

    def _result(self, flowing: list[Message]) -> pl.DataFrame:
        assert {message.kind for message in flowing} <= {Kind.RESULT, Kind.REPORT}
        self._reported = [m.body.decode() for m in flowing if m.kind == Kind.REPORT]
        partitions: dict[int, list[Message]] = {}
        for message in flowing:
            together = self.program.combined is not None
            number = spark_hash(message.bucket) if together else self._chance.randint(0, 1)
            partitions.setdefault(number % self._buckets, []).append(message)
        stage = ResultStage(self.program.combined, self.program.tail, self.program.schema)
        types = {n: spark_type(n, dtype)[1] for n, dtype in self.program.schema.items()}
        found = [pl.DataFrame(schema=types)]
        for messages in partitions.values():
            for batch in stage([as_batch(messages)]):
                rows = pl.from_arrow(batch)
                assert isinstance(rows, pl.DataFrame)
                assert dict(rows.schema) == types
                found.append(rows)
        return pl.concat(found)


class _ReplayFeed:
    """A replay, read by the reader that Spark would use."""

    def __init__(
        self,
        source: SourceProgram,
        replay: Replay,
        inner: Sequence[int],
        folder: Path,
        chance: random.Random,
    ):
        rows, self._path = folder / f"rows-{source.index}", folder / f"log-{source.index}"
        replay.table.write_ipc(rows)
        log = ReplayLog(source, str(rows), replay.times, (0, *inner, replay.rows), False)
        self._path.write_bytes(cloudpickle.dumps(log))
        self._chance = chance
        self._reader = ReplayStreamReader(str(self._path))
        self._start = self._end = self._reader.initialOffset()

    @property
    def ended(self) -> bool:
        return bool(self._end["ended"])

    def advance(self) -> None:
        """Decide what the next batch holds."""
        self._start = self._end
        self._end = self._reader.latestOffset(self._start, self._reader.getDefaultReadLimit())

    def start_over(self) -> None:
        """The driver was started again: another reader, the same offsets."""
        if self._chance.random() < 0.5:
            self._reader = ReplayStreamReader(str(self._path))

    def messages(self, batch: int) -> Iterator[Message]:
        del batch
        worker = cloudpickle.loads(cloudpickle.dumps(self._reader))
        for share in self._reader.partitions(self._start, self._end):
            for each in worker.read(share):
                yield from (Message(**row) for row in each.to_pylist())


class _UnorderedFeed:
    """Batches without order, each read in parts."""

    def __init__(
        self,
        source: SourceProgram,
        given: Unordered,
        run: str,
        schedule: random.Random,
        chance: random.Random,
    ):
        self._source, self._given, self._run = source, given, run
        self._schedule, self._chance = schedule, chance
        self._at = self._step = 0
        self._rows = given.table.clear()

    @property
    def ended(self) -> bool:
        return self._step == len(self._given.batches)

    def advance(self) -> None:
        """Decide what the next batch holds: some rows, or for once none."""
        self._rows = self._given.table.clear()
        if not self.ended and self._schedule.random() < 0.75:
            many = self._given.batches[self._step]
            self._rows = self._given.table.slice(self._at, many)
            self._at += many
            self._step += 1

    def start_over(self) -> None:
        """The offsets say which rows a batch has."""

    def messages(self, batch: int) -> Iterator[Message]:
        for number, rows in enumerate(self._parts(batch)):
            lucky = self._chance.random() < 0.7
            marks = known(self._source, self._run, batch) if lucky else None
            reading = Reading(self._source, number, marks)
            for part in self._cut(rows, 1):
                yield from reading.take(part, clock(batch) if self._source.clocked else 0)
            yield from reading.close()

    def _parts(self, batch: int) -> list[pl.DataFrame]:
        """The rows of the batch in some order, as some tasks read them."""
        order = list(range(self._rows.height))
        self._chance.shuffle(order)
        return self._cut(self._rows[order], 2)

    def _cut(self, rows: pl.DataFrame, most: int) -> list[pl.DataFrame]:
        cuts = [self._chance.randint(0, rows.height) for _ in range(self._chance.randint(0, most))]
        edges = [0, *sorted(cuts), rows.height]
        return [rows.slice(first, last - first) for first, last in pairwise(edges)]
