"""Sinks: memory, a function, and one for each stream; and the functions engines use on any sink."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Protocol

import polars as pl
import pyarrow as pa

from lowwater.errors import OptionError
from lowwater.sinks.folder import Folder, FolderSink
from lowwater.stream.element import Chunk


class Sink(Protocol):
    """The destination of results. Calls come from one thread at a time."""

    def write(self, chunk: Chunk) -> None:
        """Write some rows."""

    def close(self) -> None:
        """Finish; no rows are written after this."""


class MemorySink:
    """Keeps results in memory."""

    def __init__(self, schema: Mapping[str, pl.DataType]):
        self._schema = dict(schema)
        self._chunks: list[Chunk] = []

    def write(self, chunk: Chunk) -> None:
        """Keep the rows."""
        self._chunks.append(chunk)

    def close(self) -> None:
        """Do nothing: there is nothing to finish."""

    def table(self) -> pa.Table:
        """Return all rows so far."""
        if not self._chunks:
            return pl.DataFrame(schema=self._schema).to_arrow()
        return pl.concat(self._chunks).to_arrow()


class LastRows:
    """Keeps the last ``limit`` rows that were added, to show them; none if the limit is zero."""

    def __init__(self, limit: int):
        self._limit = limit
        self._rows = pl.DataFrame()

    def add(self, chunk: Chunk) -> None:
        """Add rows; the oldest are dropped beyond the limit."""
        if self._limit and chunk.height:
            tail = chunk.tail(self._limit)
            self._rows = pl.concat([self._rows, tail], how="diagonal_relaxed").tail(self._limit)

    def table(self) -> Chunk:
        """Return the last rows, the newest last."""
        return self._rows


class FunctionSink:
    """Calls a function with each chunk of results, as a pyarrow table."""

    def __init__(self, function: Callable[[pa.Table], object]):
        self.function = function

    def write(self, chunk: Chunk) -> None:
        """Call the function."""
        self.function(chunk.to_arrow())

    def close(self) -> None:
        """Do nothing: there is nothing to finish."""


class SinkByStream:
    """Writes late rows to the sink of their stream; rows of a stream without one are dropped."""

    def __init__(self, sinks: Mapping[str, Sink]):
        self._sinks = sinks

    def write(self, chunk: Chunk) -> None:
        """Write rows to the sink of their stream; all must be of one stream."""
        sink = self._sinks.get(chunk["_stream"][0])
        if sink is not None:
            sink.write(chunk)

    def on_failure(self, act: Callable[[], None]) -> None:
        """Set the function to call if one of the sinks fails between two calls of ``write``."""
        for sink in self._sinks.values():
            on_failure(sink, act)

    def close(self) -> None:
        """Close all sinks, also if one of them cannot be closed."""
        with ExitStack() as closing:
            for sink in dict.fromkeys(self._sinks.values()):
                closing.callback(sink.close)


def count_delivered(sink: object, delivered: int) -> tuple[int, int]:
    """Return how many of ``delivered`` rows readers can see, and how many wait in the sink."""
    if isinstance(sink, FolderSink):
        return sink.rows_written, sink.rows_waiting
    return delivered, 0


def on_failure(sink: object, act: Callable[[], None]) -> None:
    """Set the function to call if a sink fails between two calls of ``write``, where it can."""
    if isinstance(sink, FolderSink | SinkByStream):
        sink.on_failure(act)


def complete(sink: object) -> None:
    """Complete the output of a sink after a run that did not fail."""
    if isinstance(sink, FolderSink):
        sink.complete()


def make_sink(target: object, schema: Mapping[str, pl.DataType]) -> Sink:
    """Return the sink for a user's ``sink=``: None, a function, a folder, a sink, or a mapping.

    ``schema`` is the columns of the results. A mapping has a target for each stream.
    """
    if target is None:
        return MemorySink(schema)
    if isinstance(target, str | Path):
        target = Folder(Path(target))
    if isinstance(target, Folder):
        return FolderSink(target, schema)
    if isinstance(target, Mapping):
        return _by_stream(target)
    if hasattr(target, "write") and hasattr(target, "close"):
        return target
    if callable(target):
        return FunctionSink(target)
    raise OptionError(
        f"sink= is a folder, a function of a pyarrow table, or an object with write and close,"
        f" not {type(target).__name__}"
    )


def _by_stream(targets: Mapping[str, object]) -> SinkByStream:
    """Return a sink for each stream; streams that go to one folder share its sink."""
    shared: dict[Path, Sink] = {}
    found: dict[str, Sink] = {}
    for stream, each in targets.items():
        path = Path(each) if isinstance(each, str | Path) else getattr(each, "path", None)
        if isinstance(path, Path):
            place = path.absolute()
            if place not in shared:
                shared[place] = make_sink(each, {})
            found[stream] = shared[place]
        else:
            found[stream] = make_sink(each, {})
    return SinkByStream(found)


class SinkCall:
    """The call of a sink that is under way, so that a run that waits for it can name the sink."""

    def __init__(self) -> None:
        self._now: tuple[object, int, float] | None = None

    @contextmanager
    def during(self, sink: object, rows: int) -> Iterator[None]:
        """Record that ``sink`` is writing ``rows`` rows; 0 rows stand for closing it."""
        self._now = sink, rows, time.monotonic()
        try:
            yield
        finally:
            self._now = None

    def blocked(self, seconds: float) -> str | None:
        """Return a phrase for people if the call has taken ``seconds`` or more; else None."""
        now = self._now
        if now is None or time.monotonic() - now[2] < seconds:
            return None
        sink, rows, since = now
        work = f"took {rows:,} rows" if rows else "began to close"
        return (
            f"the sink {_name(sink)} {work} {time.monotonic() - since:.1f} s ago and has not"
            " returned"
        )


def _name(sink: object) -> str:
    if isinstance(sink, FunctionSink):
        sink = sink.function
    if isinstance(sink, FolderSink):
        return str(sink.path)
    return str(getattr(sink, "__qualname__", type(sink).__qualname__))
