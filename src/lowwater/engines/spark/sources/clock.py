"""The clock is a Spark source that ticks when a bucket requests it, and once a period, if any.

The time of a tick is its offset, so it is in the query's log: a batch that is run again has the
same time. Without a request or a period, the clock stands still and causes no batch.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from lowwater.engines.spark.wire.message import DDL, LAST_TICK, Kind, Message, as_batch, unpickled
from lowwater.engines.spark.wire.tick_requests import earliest_request
from lowwater.engines.spark.worker.task import begin_task, end_quietly

FORMAT = "lowwater-clock"


class ClockReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans ticks on the driver's machine, once a trigger."""

    def __init__(self, options: dict[str, str]):
        end_quietly()
        targets: list[tuple[int, tuple[int, ...]]] = unpickled(bytes.fromhex(options["targets"]))
        self._targets = targets
        self._folder = options["requests"] or None
        self._period = int(options["period"])
        self._ends = options["end"] == "true"
        self._bounded = False
        self._first = True

    def initialOffset(self) -> dict[str, Any]:
        """Return the offset before the first tick."""
        return {"tick": 0, "end": False}

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return the limit of a batch: one tick."""
        return ReadMaxRows(1)

    def prepareForTriggerAvailableNow(self) -> None:
        """Note that the run ends with the rows that are there now; then only rows that wait in
        queues cause ticks."""
        self._bounded = True

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return the time if a tick is due, else the offset of the last tick."""
        del limit
        if self._ends:
            now = max(time.time_ns(), start["tick"] + 1)
            return start if start["end"] else {"tick": now, "end": True}
        now = time.time_ns()
        if now <= start["tick"]:
            return start
        if self._bounded:
            waits = self._earliest_request(waiting=True) is not None
            return {"tick": now, "end": False} if waits else start
        return {"tick": now, "end": False} if self._due(start["tick"], now) else start

    def _due(self, last: int, now: int) -> bool:
        if self._period and now - last >= self._period:
            return True
        if self._folder is None:
            return False
        if self._first:  # after a start no request is saved yet, whatever operators hold
            self._first = False
            return True
        when = self._earliest_request()
        return when is not None and when <= now

    def _earliest_request(self, waiting: bool = False) -> int | None:
        return None if self._folder is None else earliest_request(self._folder, waiting)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return one partition for a tick."""
        if start == end:
            return []
        return [InputPartition((end["tick"], bool(end["end"])))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the tick as a message to every bucket that depends on the clock."""
        begin_task()
        tick, ends = partition.value
        body = LAST_TICK if ends else b""
        yield as_batch(
            Message(stage, bucket, -1, Kind.TICK, -1, tick, body)
            for stage, ids in self._targets
            for bucket in ids
        )


class ClockSource(DataSource):
    """The clock as a format that Spark reads."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return FORMAT

    def schema(self) -> str:
        """Return the columns of messages."""
        end_quietly()
        return DDL

    def streamReader(self, schema: Any) -> ClockReader:
        """Make a reader."""
        del schema
        return ClockReader(dict(self.options))
