"""Spark calls the stateful stage with messages and state of one bucket; it returns messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from lowwater.engines.spark.wire.errors import carrying
from lowwater.engines.spark.wire.message import Message
from lowwater.engines.spark.wire.program import StageProgram
from lowwater.engines.spark.worker.bucket import Bucket
from lowwater.engines.spark.worker.cache import FOLDERS, ChunkCache
from lowwater.engines.spark.worker.task import current_task, end_quietly
from lowwater.errors import CheckpointError
from lowwater.state.index import ChunkKey

CHUNK_KEY = "slot string, name string, slice bigint, sequence bigint"
INDEX = "about string, body binary"


class StageProcessor(StatefulProcessor):
    """A stage; Spark calls it once a bucket and batch."""

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
        """Process the messages of a bucket in one batch."""
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
                    FOLDERS.sweep()
                bucket.open(saved[1] if saved is not None else None)
                yield from map(_row, bucket.work(mine, task))
                self._index.update(bucket.saved())

    def close(self) -> None:
        """Do nothing: Spark closes the state."""


def _row(message: Message) -> Row:
    return Row(**message._asdict())


class _Shelf:
    """Chunks in Spark's map state."""

    def __init__(self, chunks: Any):
        self._chunks = chunks

    def read(self, slot: str, key: ChunkKey) -> bytes:
        """Return the bytes of a chunk."""
        value = self._chunks.getValue((slot, key.name, key.slice, key.sequence))
        if value is None:
            raise CheckpointError(
                f"the checkpoint is damaged: the state of {slot} lacks a chunk that its index"
                f" lists, {key}. Put back a copy of the whole checkpoint, or start from a new one"
            )
        return bytes(value[0])

    def write(self, slot: str, key: ChunkKey, body: bytes) -> None:
        """Keep the bytes of a chunk."""
        self._chunks.updateValue((slot, key.name, key.slice, key.sequence), (body,))

    def erase(self, slot: str, key: ChunkKey) -> None:
        """Drop a chunk."""
        self._chunks.removeKey((slot, key.name, key.slice, key.sequence))
