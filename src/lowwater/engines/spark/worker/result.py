"""The result stage turns messages of the last stateful stage into rows of the result.

It combines the output of an operator that was spread over buckets: partial answers of an aggregate,
or rows to be put in order. It needs no state, because a promise reaches all buckets in one batch:
all parts of an answer, and all rows up to a mark, are in that batch too.

Invariant: the order in which messages of the buckets come does not change the order of the rows,
which is that in which they were finished.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter

import polars as pl
import pyarrow as pa

from lowwater.engines.members import Part
from lowwater.engines.spark.wire.errors import carrying
from lowwater.engines.spark.wire.message import Kind, unpacked
from lowwater.engines.spark.wire.program import finisher_kernel, idle_kernel
from lowwater.engines.spark.wire.types import spark_batches
from lowwater.engines.spark.worker.task import begin_task
from lowwater.engines.step import call, step
from lowwater.stream.element import Chunk


class ResultStage:
    """Turns messages into rows."""

    def __init__(
        self, combined: Part | None, tail: tuple[Part, ...], schema: Mapping[str, pl.DataType]
    ):
        self._combined, self._tail, self._columns = combined, tail, list(schema)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the result; Spark calls this once a partition and batch."""
        begin_task()
        with carrying():
            parts = _results(batches)
            for chunk in (
                map(itemgetter(1), parts) if self._combined is None else self._whole(parts)
            ):
                rows = self._through(chunk)
                if rows.height:
                    yield from spark_batches(rows.select(self._columns))

    def _whole(self, parts: Iterable[tuple[int, Chunk]]) -> Iterator[Chunk]:
        """Yield the answers that the parts of all buckets combine to."""
        held = [rows for _, rows in sorted(parts, key=itemgetter(0))]
        if self._combined is not None and held:
            finisher = finisher_kernel(self._combined)
            yield call(self._combined.where, finisher.finished, pl.concat(held))

    def _through(self, rows: Chunk) -> Chunk:
        for part in self._tail:
            passed = step(idle_kernel(part), 0, rows, part.where) if rows.height else ()
            chunks = [each for each in passed if isinstance(each, pl.DataFrame)]
            if not chunks:
                return pl.DataFrame(schema=dict.fromkeys(self._columns, pl.Null()))
            rows = chunks[0]
        return rows


def _results(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, Chunk]]:
    """Yield the rows that each bucket sent, with its number."""
    for batch in batches:
        kinds, senders = batch.column("kind").to_pylist(), batch.column("sender").to_pylist()
        for kind, sender, body in zip(kinds, senders, batch.column("body"), strict=True):
            if kind == Kind.RESULT:
                yield sender, unpacked(body.as_buffer())
