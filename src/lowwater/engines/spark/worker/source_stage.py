"""The source stage turns the rows of a streaming DataFrame into messages, partition by partition.

If hints hold the marks before the batch, rows are judged here, pass the row-wise operators next to
the source and are reduced for the aggregate that reads them. Otherwise they are sent as they are.
Either way every bucket gets their digest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from lowwater.engines.spark.wire.errors import carrying
from lowwater.engines.spark.wire.message import (
    Kind,
    Message,
    ReaderReport,
    as_batch,
    packed,
    pickled,
)
from lowwater.engines.spark.wire.program import SourceProgram
from lowwater.engines.spark.worker import hints
from lowwater.engines.spark.worker.outgoing import deliver, deliver_digest, deliver_raw
from lowwater.engines.spark.worker.task import current_task
from lowwater.progress.intake import BatchIntake
from lowwater.progress.rows import pure_rows
from lowwater.stream.element import SEQUENCE, Chunk

NOW = "__now"
"""The column with the time of the batch, if the query depends on the clock."""
ROWS_AT_ONCE = 2_000_000
"""Number of rows from which Spark's batches are put together to one chunk."""


class SourceStage:
    """Reads one source's part of a batch."""

    def __init__(self, source: SourceProgram):
        self._source = source

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the messages of rows; Spark calls this once a partition and batch."""
        with carrying():
            yield from self._run(batches)

    def _run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = current_task()
        reading = Reading(self._source, task.partition, known(self._source, task.run, task.batch))
        for rows in _gathered(batches):
            at = int(rows[NOW].dt.epoch("us")[0]) * 1_000 if self._source.clocked else 0
            yield as_batch(reading.take(rows.drop(NOW, strict=False), at))
        yield as_batch(reading.close())


def known(source: SourceProgram, run: str, batch: int) -> Any:
    """Return the marks of a source before a batch, by attribute; None if there are no hints."""
    first = source.deliveries[0]
    buckets = first.ids if first.owned else ()
    found = hints.read(run, batch - 1, first.stage, buckets)
    if found is None:
        return None
    one, *others = [marks[source.index] for marks in found]
    return {name: held.merged([each[name] for each in others]) for name, held in one.items()}


class Reading:
    """The rows of one partition of one batch, on their way to messages."""

    def __init__(self, source: SourceProgram, partition: int, marks: Any):
        self._source, self._partition = source, partition
        self._intake = BatchIntake(source.spec, source.demands)
        self._intake.floor = source.floor
        jump = source.spec.jump
        self._judging = (
            marks is not None
            and not source.clocked
            and SEQUENCE not in source.demands  # rows are numbered where they all meet
            and (jump is None or jump.then == "warn")
        )
        self._standing = marks or {}
        self._digests: list[Chunk] = []
        self._refused: list[Chunk] = []
        self._tried: dict[int, bool] = {}
        self._at = 0
        self._read = False
        self._rows = 0  # without those that are punctuation only

    def take(
        self, rows: Chunk, at: int, arrivals: NDArray[np.int64] | None = None
    ) -> Iterator[Message]:
        """Yield the messages of some rows.

        ``at`` is the time of the batch in nanoseconds, 0 if the query does not depend on the clock.
        ``arrivals`` are the times at which the rows arrived, if they are known.
        """
        source = self._source
        if rows.height:
            self._at = at
            self._read = True
        rows = self._intake.conform(rows, self._at, arrivals)
        self._rows += rows.height - int(pure_rows(source.spec, rows).sum())
        found = self._intake.digest(rows)
        if found is not None:
            self._digests.append(found)
        if not self._judging:
            if SEQUENCE not in source.demands:
                rows = self._intake.needed(rows)
            for delivery in source.deliveries:
                yield from deliver_raw(source.index, rows, delivery, self._partition, self._at)
            return
        rows = self._intake.judge(rows, self._standing)
        refused = self._intake.refused()
        if refused is not None:
            self._refused.append(refused)
        for delivery in source.deliveries:
            yield from deliver(rows, delivery, self._partition, self._at, self._tried)

    def close(self) -> Iterator[Message]:
        """Yield the messages of the digest, to every bucket, and of refused rows, to one."""
        source = self._source
        if not self._read:
            return
        found = pl.concat(self._digests) if self._digests else None
        for delivery in source.deliveries:
            yield from deliver_digest(source.index, found, self._rows, delivery, self._at)
        account = self._intake.account
        if account.lines() or account.backward_marks:
            first = source.deliveries[0]
            rows = packed(pl.concat(self._refused, how="diagonal")) if self._refused else b""
            body = pickled((ReaderReport(account.lines(), backward=account.backward_marks), rows))
            yield Message(first.stage, first.ids[0], source.index, Kind.REFUSED, -1, self._at, body)


def _gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[Chunk]:
    """Yield the rows of Spark's batches in larger chunks."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        held.append(batch)
        rows += batch.num_rows
        if rows >= ROWS_AT_ONCE:
            yield _frame(held)
            held, rows = [], 0
    if held:
        yield _frame(held)


def _frame(batches: list[pa.RecordBatch]) -> Chunk:
    frame = pl.from_arrow(pa.Table.from_batches(batches))
    assert isinstance(frame, pl.DataFrame)
    zoned = [
        pl.col(name).dt.convert_time_zone("UTC")
        for name, dtype in frame.schema.items()
        if isinstance(dtype, pl.Datetime) and dtype.time_zone not in (None, "UTC")
    ]
    return frame.with_columns(zoned) if zoned else frame
