"""Messages carry rows and promises between the stages of a query on Spark.

A message is one small row with a blob in it: rows as Arrow, or promises. Spark shuffles messages by
their bucket and never looks inside.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Literal, NamedTuple, cast

import numpy as np
import polars as pl
import pyarrow as pa

from lowwater.progress.completeness import Completeness
from lowwater.progress.late import LateRows
from lowwater.progress.marks import ChannelSummary
from lowwater.stream.element import Chunk


class Kind(IntEnum):
    """The kind of a message's content."""

    RAW = 0
    """Rows of a source that are not judged yet."""
    ROWS = 1
    """Rows that were let in, after the row-wise operators next to their source."""
    PARTIALS = 2
    """Rows reduced for the aggregate they are on the way to."""
    DIGEST = 3
    """The digest of rows, from which the marks of their source follow."""
    ELEMENTS = 4
    """Promises, and the end."""
    REFUSED = 5
    """Rows that were not let in, and the account of them."""
    TICK = 6
    """The time of day."""
    RESULT = 7
    """Rows of the result."""
    REPORT = 8
    """The report of a bucket, as JSON."""


@dataclass(frozen=True)
class ReaderReport:
    """The numbers of a reader of a source; sent together with the rows it refused."""

    late: Sequence[LateRows] = ()
    notes: Sequence[str] = ()
    complete: Sequence[tuple[str, str, Hashable, Completeness]] = ()
    rows: int = 0
    """Rows read, if the buckets do not count them."""
    marks: Mapping[str, int] = field(default_factory=dict)
    """The marks of the stream by attribute, if the buckets do not have them."""
    channels: ChannelSummary | None = None
    strays: int = 0
    """Stray rows found by a reader that judges rows in order."""
    backward: int = 0
    """Marks of the producer that went back, or are no times, found by the reader."""


class Message(NamedTuple):
    """One message."""

    stage: int
    """The stage it goes to; the number of stages, for messages of the last stage."""
    bucket: int
    """The id of the bucket it goes to."""
    port: int
    """The operator whose output it is."""
    kind: int
    sender: int
    """The bucket of the stage before that sent it; of rows of a source, the number of their part of
    the batch; -1 for digests, promises and ticks."""
    at: int
    """The clock of the batch, in nanoseconds; 0 if the query does not depend on it."""
    body: bytes


LAST_TICK = b"end"
"""The body of the clock's last tick, with which sources end that have no end of their own; the body
of every other tick is empty."""
DDL = "stage int, bucket int, port int, kind int, sender int, at bigint, body binary"
SCHEMA = pa.schema(
    [
        ("stage", pa.int32()),
        ("bucket", pa.int32()),
        ("port", pa.int32()),
        ("kind", pa.int32()),
        ("sender", pa.int32()),
        ("at", pa.int64()),
        ("body", pa.binary()),
    ]
)


def as_batch(messages: Iterable[Message]) -> pa.RecordBatch:
    """Return messages as Spark takes them, made from arrays: lists would load pandas in every
    worker."""
    sent = list(messages)
    arrays = []
    for at, column in enumerate(SCHEMA):
        if column.name == "body":
            arrays.append(_bodies([message.body for message in sent]))
        else:
            width = np.int64 if column.type == pa.int64() else np.int32
            numbers = np.fromiter((each[at] for each in sent), width, len(sent))
            buffers = [None, pa.py_buffer(numbers.tobytes())]
            arrays.append(pa.Array.from_buffers(column.type, len(sent), buffers))
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def _bodies(bodies: list[bytes]) -> pa.Array:
    ends = np.zeros(len(bodies) + 1, np.int32)
    np.cumsum([len(body) for body in bodies], out=ends[1:])
    buffers = [None, pa.py_buffer(ends.tobytes()), pa.py_buffer(b"".join(bodies))]
    return pa.Array.from_buffers(pa.binary(), len(bodies), buffers)


LARGE = 2_000
"""Number of rows from which Arrow's reader and writer are faster than Polars'."""


def packed(chunk: Chunk, compressed: bool = False) -> bytes:
    """Return rows as bytes; Spark compresses what it shuffles, so messages are not compressed."""
    compression: Literal["lz4"] | None = "lz4" if compressed else None
    if chunk.height < LARGE:
        small = io.BytesIO()
        chunk.write_ipc_stream(small, compression=compression or "uncompressed")
        return small.getvalue()
    table = chunk.to_arrow(compat_level=pl.CompatLevel.newest())
    large = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(large, table.schema, options=options) as writer:
        writer.write_table(table)
    return bytes(large.getvalue())


def unpacked(body: bytes | pa.Buffer) -> Chunk:
    """Return rows from bytes made by :func:`packed`."""
    if len(body) < LARGE * _LEAST_WIDTH:
        return pl.read_ipc_stream(body if isinstance(body, bytes) else body.to_pybytes())
    return cast(Chunk, pl.from_arrow(pa.ipc.open_stream(body).read_all()))


_LEAST_WIDTH = 8


def pickled(value: Any) -> bytes:
    """Return a value as bytes, for our own processes only."""
    return pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)


def unpickled(body: bytes) -> Any:
    """Return a value from bytes made by :func:`pickled`."""
    return pickle.loads(body)
