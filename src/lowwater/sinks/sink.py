"""Where results go: memory, a function, or a folder of Parquet, CSV or JSON files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

import polars as pl
import pyarrow as pa

from lowwater.errors import OptionError
from lowwater.sinks.folder import Folder, FolderSink
from lowwater.stream.element import Chunk


class Sink(Protocol):
    """Takes results as they come."""

    def write(self, chunk: Chunk) -> None:
        """Take some rows."""

    def close(self) -> None:
        """Take note that nothing more will come."""


class MemorySink:
    """Keeps results in memory."""

    def __init__(self, schema: Mapping[str, pl.DataType]):
        self._schema = dict(schema)
        self._chunks: list[Chunk] = []

    def write(self, chunk: Chunk) -> None:
        """Keep rows."""
        self._chunks.append(chunk)

    def close(self) -> None:
        """Nothing to do."""

    def table(self) -> pa.Table:
        """All rows so far."""
        if not self._chunks:
            return pl.DataFrame(schema=self._schema).to_arrow()
        return pl.concat(self._chunks).to_arrow()


class LastRows:
    """Keeps the last rows that passed, for looking at; none if the limit is zero."""

    def __init__(self, limit: int):
        self._limit = limit
        self._rows = pl.DataFrame()

    def add(self, chunk: Chunk) -> None:
        """Take note of rows."""
        if self._limit and chunk.height:
            tail = chunk.tail(self._limit)
            self._rows = pl.concat([self._rows, tail], how="diagonal_relaxed").tail(self._limit)

    def table(self) -> Chunk:
        """The last rows, the newest last."""
        return self._rows


class FunctionSink:
    """Hands each chunk of results to a function, as a pyarrow table."""

    def __init__(self, function: Callable[[pa.Table], object]):
        self.function = function

    def write(self, chunk: Chunk) -> None:
        """Call the function."""
        self.function(chunk.to_arrow())

    def close(self) -> None:
        """Nothing to do."""


class SinkByStream:
    """Late rows to the sink of their stream; rows of streams that have none are let go."""

    def __init__(self, sinks: Mapping[str, Sink]):
        self._sinks = sinks

    def write(self, chunk: Chunk) -> None:
        """Hand rows on; all are of one stream."""
        sink = self._sinks.get(chunk["_stream"][0])
        if sink is not None:
            sink.write(chunk)

    def on_failure(self, act: Callable[[], None]) -> None:
        """Say what to do when one of them fails on its own."""
        for sink in self._sinks.values():
            on_failure(sink, act)

    def close(self) -> None:
        """Close them all, also if one cannot be closed."""
        with ExitStack() as closing:
            for sink in dict.fromkeys(self._sinks.values()):
                closing.callback(sink.close)


def standing(sink: object, delivered: int) -> tuple[int, int]:
    """Of ``delivered`` rows those that readers can see, and those that wait in the sink."""
    if isinstance(sink, FolderSink):
        return sink.rows_written, sink.rows_waiting
    return delivered, 0


def on_failure(sink: object, act: Callable[[], None]) -> None:
    """Say what to do when a sink fails on its own, while nobody hands rows over."""
    if isinstance(sink, FolderSink | SinkByStream):
        sink.on_failure(act)


def complete(sink: object) -> None:
    """Tell a sink that its run did not fail."""
    if isinstance(sink, FolderSink):
        sink.complete()


def make_sink(target: object, schema: Mapping[str, pl.DataType]) -> Sink:
    """A sink from what a user gives: nothing, a function, a folder, a sink, or one by stream."""
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
    """A sink for each stream; streams that go to one folder share its sink."""
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
