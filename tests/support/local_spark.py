"""The Spark engine's own code without Spark: sources, buckets and result, batch by batch.

What Spark does between them is done here by hand, and as unkindly as Spark may: messages are
shuffled, every bucket is built again from its pickled state in every batch, batches fail and are run
again, sources start over from their offsets, rows of a batch are read in parts of which some know
the marks that held before and some do not.
"""

from __future__ import annotations

import copy
import random
import shutil
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import polars as pl
import pyarrow as pa
from hypothesis import strategies as st
from pyspark import cloudpickle

from lowwater.api import Stream
from lowwater.engines.spark import hints
from lowwater.engines.spark.buckets import spark_hash
from lowwater.engines.spark.late import read_refused
from lowwater.engines.spark.message import Kind, Message, as_batch, unpickled
from lowwater.engines.spark.program import Program, SourceProgram, make_program
from lowwater.engines.spark.replay_source import Log, ReplayReader
from lowwater.engines.spark.result import ResultStage
from lowwater.engines.spark.source_stage import Reading
from lowwater.engines.spark.stage import Bucket
from lowwater.engines.spark.task import Task
from lowwater.engines.spark.types import spark_type, taken_back
from lowwater.joins import shape as join_shape
from lowwater.operators import aggregates, partials
from lowwater.plan.compile import PlanShape, compile_plan
from lowwater.plan.nodes import SourceNode
from lowwater.sources.replay import Replay
from lowwater.state import slicing
from lowwater.state import store as store_module
from lowwater.state.store import ChunkKey


class Unordered:
    """A table that is read in batches without order, like a streaming DataFrame."""

    arrival = None

    def __init__(self, table: pl.DataFrame, batches: Sequence[int]):
        self.table = table
        self.batches = list(batches)
        """The number of rows in each batch."""

    @property
    def schema(self) -> dict[str, pl.DataType]:
        return dict(self.table.schema)

    def open(self) -> Any:
        raise AssertionError("only the Spark engine reads this")

    def channels(self, columns: Sequence[str]) -> tuple[Any, ...]:
        return ()


class MemoryShelf:
    """Bytes of chunks in a dict; reading what is not there is an error, as on Spark."""

    def __init__(self, chunks: dict[tuple[str, ChunkKey], bytes] | None = None):
        self.chunks = {} if chunks is None else chunks
        self.written: list[ChunkKey] = []
        self.erased: list[ChunkKey] = []
        self.read_keys: list[ChunkKey] = []

    def read(self, slot: str, key: ChunkKey) -> bytes:
        self.read_keys.append(key)
        return self.chunks[slot, key]

    def write(self, slot: str, key: ChunkKey, body: bytes) -> None:
        assert (slot, key) not in self.chunks, "chunks are immutable and named once"
        self.written.append(key)
        self.chunks[slot, key] = body

    def erase(self, slot: str, key: ChunkKey) -> None:
        self.erased.append(key)
        del self.chunks[slot, key]


@dataclass
class Kept:
    """What Spark's state store keeps of one bucket."""

    index: bytes | None = None
    chunks: dict[tuple[str, ChunkKey], bytes] = field(default_factory=dict)


State = dict[tuple[int, int], Kept]


class LocalSpark:
    """Runs a query to the end and checks on the way that state and messages go where they should.

    ``draw`` decides about everything Spark may decide about. After :meth:`results`, ``answers``
    holds the rows of each batch and ``late(name)`` the side output of a stream.
    """

    def __init__(
        self,
        query: Stream,
        draw: Any,
        shape: PlanShape = "out-of-order",
        buckets: int = 2,
        cuts: Sequence[Sequence[int]] | None = None,
    ):
        self._draw = draw
        self.plan = compile_plan(query._node, shape)
        self._folder = Path(tempfile.mkdtemp(prefix="lowwater-test-"))
        self._late = self._folder / "late"
        program = make_program(self.plan, buckets, False, str(self._late))
        self.program: Program = unpickled(cloudpickle.dumps(program))  # as workers get it
        self._buckets = buckets
        self._run = f"test-{uuid.uuid4()}"
        self._state: State = {}
        self._batch = 0
        self.answers: list[pl.DataFrame] = []
        self.reports: list[Message] = []
        self._feeds = [
            self._feed(source, operator.node, cuts[at] if cuts is not None else None)
            for at, (source, operator) in enumerate(
                zip(self.program.sources, self.plan.sources, strict=True)
            )
        ]

    def _feed(self, source: SourceProgram, node: Any, cuts: Sequence[int] | None) -> Any:
        assert isinstance(node, SourceNode)
        if isinstance(node.source, Replay):
            inner = cuts if cuts is not None else self._drawn_cuts(node.source.rows)
            return _ReplayFeed(source, node.source, inner, self._folder)
        assert isinstance(node.source, Unordered)
        return _UnorderedFeed(source, node.source, self._run, self._draw)

    def _drawn_cuts(self, rows: int) -> list[int]:
        return sorted(self._draw(st.lists(st.integers(0, rows), max_size=4)))

    # ---- a run -----------------------------------------------------------------------------

    def results(self) -> pl.DataFrame:
        """Run to the end and give all results.

        Thresholds that decide only what things cost are made small half of the time, so that
        small streams go through the same code as large ones.
        """
        try:
            if not self._draw(st.booleans()):
                return self._results()
            with (
                mock.patch.object(slicing, "FIRST_ROWS", 5),
                mock.patch.object(slicing, "ROWS_PER_SLICE", 3),
                mock.patch.object(partials, "FEWEST", 3),
                mock.patch.object(partials, "TRY_AGAIN", 2),
                mock.patch.object(aggregates, "MANY", 4),
                mock.patch.object(aggregates, "FEW", 4),
                mock.patch.object(store_module, "COMPACT_BELOW", 4),
                mock.patch.object(join_shape, "FAR", 0),
            ):
                return self._results()
        finally:
            hints.forget(self._run)
            self._refused = {
                source.spec.name: read_refused(str(self._late), source.spec.name)
                for source in self.program.sources
            }
            shutil.rmtree(self._folder)

    def _results(self) -> pl.DataFrame:
        while not all(feed.ended for feed in self._feeds):
            for feed in self._feeds:
                feed.advance(self._draw)
            self._run_batch(self._feeds)
        if not all(source.ordered for source in self.program.sources):
            self._run_batch([_Closing(self.program)])
        for (stage, bucket), kept in self._state.items():
            assert not kept.chunks, f"stage {stage}, bucket {bucket} left {list(kept.chunks)}"
        schema = dict(self.program.schema)
        if not self.answers:
            return pl.DataFrame(schema=schema)
        return taken_back(pl.concat(self.answers, how="vertical"), schema)

    def late(self, stream: str) -> pl.DataFrame | None:
        """The side output of a stream, after the run; None if it is empty."""
        return self._refused[stream]

    def _run_batch(self, feeds: Sequence[Any]) -> None:
        if self._draw(st.integers(0, 3)) == 0:  # a try that fails after all work was done
            self._tried(feeds, copy.deepcopy(self._state))
            for feed in feeds:
                feed.start_over(self._draw)
        state = copy.deepcopy(self._state)
        self.answers.append(self._tried(feeds, state))
        self._state = state
        self._batch += 1

    def _tried(self, feeds: Sequence[Any], state: State) -> pl.DataFrame:
        flowing = self._shuffled([m for feed in feeds for m in feed.messages(self._batch)])
        for stage in self.program.stages:
            by_bucket: dict[int, list[Message]] = {}
            for message in flowing:
                assert message.stage >= stage.number, f"{message} came too late for its stage"
                by_bucket.setdefault(message.bucket, []).append(message)
            flowing = []
            for bucket, given in by_bucket.items():
                mine = [message for message in given if message.stage == stage.number]
                flowing += [message for message in given if message.stage != stage.number]
                if mine:
                    flowing += self._worked(stage.number, bucket, mine, state)
            flowing = self._shuffled(flowing)
        return self._result(flowing)

    def _worked(
        self, stage: int, number: int, mine: list[Message], state: State
    ) -> Iterator[Message]:
        program = self.program.stages[stage]
        assert number in program.ids, f"bucket {number} is not one of stage {stage}"
        kept = state.setdefault((stage, number), Kept())
        bucket = Bucket(program, self.program.end, number, MemoryShelf(kept.chunks))
        bucket.open(kept.index)
        left = list(bucket.work(mine, Task(self._run, self._batch, 0)))
        kept.index = bucket.saved()[1]
        return iter(left)

    def _shuffled(self, messages: list[Message]) -> list[Message]:
        order = _drawn_order(self._draw, len(messages))
        return [Message(**row) for row in as_batch(messages[at] for at in order).to_pylist()]

    def _result(self, flowing: list[Message]) -> pl.DataFrame:
        assert {message.kind for message in flowing} <= {Kind.RESULT, Kind.REPORT}
        self.reports += [message for message in flowing if message.kind == Kind.REPORT]
        shares: dict[int, list[Message]] = {}
        for message in flowing:
            if self.program.combined is None:
                share = self._draw(st.integers(0, 1))
            else:
                share = spark_hash(message.bucket) % self._buckets
            shares.setdefault(share, []).append(message)
        stage = ResultStage(self.program.combined, self.program.tail, self.program.schema)
        batches: list[pa.RecordBatch] = []
        for share in shares.values():
            batches += stage([as_batch(share)])
        rows = [pl.from_arrow(batch) for batch in batches]
        if not rows:
            return pl.DataFrame(schema=_handed_schema(self.program))
        return pl.concat(rows)


def _handed_schema(program: Program) -> dict[str, Any]:
    return {name: spark_type(name, dtype)[1] for name, dtype in program.schema.items()}


def _drawn_order(draw: Any, count: int) -> list[int]:
    order = list(range(count))
    seed = draw(st.integers(0, 9)) if count > 1 else 0
    if seed:
        random.Random(seed).shuffle(order)
    return order


class _Closing:
    """The clock's last tick: sources that cannot say so have ended."""

    def __init__(self, program: Program):
        self._program = program

    def start_over(self, draw: Any) -> None:
        """The offset says it all."""

    def messages(self, batch: int) -> list[Message]:
        del batch
        return [
            Message(stage.number, bucket, -1, Kind.TICK, -1, 1, b"end")
            for stage in self._program.stages
            if stage.sources
            for bucket in stage.ids
        ]


class _ReplayFeed:
    """A replay, read by the reader that Spark would use."""

    def __init__(
        self, source: SourceProgram, replay: Replay, inner: Sequence[int], folder: Path
    ):
        rows, self._path = folder / f"rows-{source.index}", folder / f"log-{source.index}"
        replay.table.write_ipc(rows)
        cuts = (0, *inner, replay.rows)
        log = Log(source, str(rows), replay.times, cuts, False)
        self._path.write_bytes(cloudpickle.dumps(log))
        self._reader = ReplayReader(str(self._path))
        self._reader.prepareForTriggerAvailableNow()
        self._start = self._end = self._reader.initialOffset()

    @property
    def ended(self) -> bool:
        return bool(self._end["ended"])

    def advance(self, draw: Any) -> None:
        """Decide what the next batch holds."""
        del draw
        self._start = self._end
        self._end = self._reader.latestOffset(self._start, self._reader.getDefaultReadLimit())

    def start_over(self, draw: Any) -> None:
        """The driver was started again: another reader, the same offsets."""
        if draw(st.booleans()):
            self._reader = ReplayReader(str(self._path))

    def messages(self, batch: int) -> list[Message]:
        del batch
        shares = self._reader.partitions(self._start, self._end)
        worker = cloudpickle.loads(cloudpickle.dumps(self._reader))
        batches = [each for share in shares for each in worker.read(share)]
        return [Message(**row) for each in batches for row in each.to_pylist()]


class _UnorderedFeed:
    """Batches without order, each read in parts."""

    def __init__(self, source: SourceProgram, given: Unordered, run: str, draw: Any):
        self._source, self._given, self._run, self._draw = source, given, run, draw
        self._at = self._step = 0
        self._rows = given.table.clear()

    @property
    def ended(self) -> bool:
        return self._step == len(self._given.batches)

    def advance(self, draw: Any) -> None:
        """Decide what the next batch holds."""
        self._rows = self._given.table.clear()
        if not self.ended and draw(st.integers(0, 3)):
            many = self._given.batches[self._step]
            self._rows = self._given.table.slice(self._at, many)
            self._at += many
            self._step += 1

    def start_over(self, draw: Any) -> None:
        """The offsets say which rows a batch has."""

    def messages(self, batch: int) -> list[Message]:
        found: list[Message] = []
        stage = self._source.deliveries[0].stage
        for number, rows in enumerate(self._parts()):
            known = self._draw(st.booleans())
            marks = hints.find(self._run, batch - 1, stage) if known else None
            reading = Reading(self._source, number, marks)
            half = self._draw(st.integers(0, rows.height))
            for part in (rows.slice(0, half), rows.slice(half)):
                if part.height:
                    found += reading.take(part)
            found += reading.close()
        return found

    def _parts(self) -> list[pl.DataFrame]:
        """The rows of the batch in some order, cut into some parts."""
        rows = self._rows[_drawn_order(self._draw, self._rows.height)]
        cuts = self._draw(st.lists(st.integers(0, rows.height), max_size=2))
        edges = [0, *sorted(cuts), rows.height]
        return [rows.slice(a, b - a) for a, b in zip(edges, edges[1:], strict=False)]
