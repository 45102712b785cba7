"""Where results go: memory, a function, or a folder of Parquet, CSV or JSON files."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import polars as pl
import pyarrow as pa

from lowwater.errors import OptionError, SinkError
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


class Handing:
    """What is being handed to a sink now: a run that waits for a sink can say for which."""

    def __init__(self) -> None:
        self._now: tuple[object, int, float] | None = None

    @contextmanager
    def over(self, sink: object, rows: int) -> Iterator[None]:
        """While a sink takes so many rows, or is closed."""
        self._now = sink, rows, time.monotonic()
        try:
            yield
        finally:
            self._now = None

    def blocked(self, seconds: float) -> str | None:
        """Which sink has not returned for so long, and what it holds; None if there is none."""
        now = self._now
        if now is None or time.monotonic() - now[2] < seconds:
            return None
        sink, rows, since = now
        work = f"took {rows:,} rows" if rows else "was told to close"
        return (
            f"the sink {_called(sink)} {work} {time.monotonic() - since:.1f} s ago and has not"
            " returned"
        )


def _called(sink: object) -> str:
    if isinstance(sink, FunctionSink):
        sink = sink.function
    if isinstance(sink, FolderSink):
        return str(sink.path)
    return str(getattr(sink, "__qualname__", type(sink).__qualname__))


FORMATS = {"parquet": "Parquet", "csv": "CSV", "json": "JSON"}
"""Formats of files, and what people call them."""


@dataclass(frozen=True)
class Folder:
    """A folder of files, as any engine can write them."""

    path: Path
    format: str = "parquet"

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            raise OptionError(f"results are written as {', '.join(FORMATS)}, not {self.format!r}")

    def refuse_if_used(self) -> None:
        """Refuse a folder in which results could not be told from what is there."""
        if any(self.path.glob(f"*.{self.format}")) or (self.path / "_spark_metadata").exists():
            raise SinkError(
                f"{self.path} already holds {FORMATS[self.format]} files; give an empty folder"
            )


class FolderSink:
    """Writes results as files into a folder, each complete before it has its name."""

    def __init__(
        self,
        folder: Folder,
        schema: Mapping[str, pl.DataType] | None = None,
        rows_per_file: int = 1_000_000,
    ):
        self._folder, self._limit = folder, rows_per_file
        self._schema = schema if folder.format != "json" else None  # JSON names no columns
        self._held: list[Chunk] = []
        self._rows = 0
        self._files = 0
        self._lock = threading.Lock()
        try:
            folder.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SinkError(f"cannot write results to {folder.path}: {error}") from None
        folder.refuse_if_used()

    @property
    def path(self) -> Path:
        """The folder."""
        return self._folder.path

    def write(self, chunk: Chunk) -> None:
        """Gather rows and write a file when there are enough."""
        with self._lock:
            self._held.append(chunk)
            self._rows += chunk.height
            if self._rows >= self._limit:
                self._write()

    def flush(self) -> None:
        """Write what is held; may be called from any thread."""
        with self._lock:
            if self._held:
                self._write()

    def complete(self) -> None:
        """Show the columns if there were no rows, so that the folder can be read."""
        with self._lock:
            if self._schema and not self._held and not self._files:
                self._held = [pl.DataFrame(schema=self._schema)]

    def close(self) -> None:
        """Write what is left."""
        self.flush()

    def _write(self) -> None:
        target = self._folder.path / f"part-{self._files:05d}.{self._folder.format}"
        unfinished = target.with_name(f".{target.name}")
        rows = pl.concat(self._held, how="diagonal")
        try:
            if self._folder.format == "csv":
                rows.write_csv(unfinished)
            elif self._folder.format == "json":
                rows.write_ndjson(unfinished)
            else:
                rows.write_parquet(unfinished)
            unfinished.rename(target)
        except (OSError, pl.exceptions.PolarsError) as error:
            raise SinkError(f"cannot write {target}: {str(error).splitlines()[0]}") from None
        self._held, self._rows, self._files = [], 0, self._files + 1


class SinkByStream:
    """Late rows to the sink of their stream; rows of streams that have none are let go."""

    def __init__(self, sinks: Mapping[str, Sink]):
        self._sinks = sinks

    def write(self, chunk: Chunk) -> None:
        """Hand rows on; all are of one stream."""
        sink = self._sinks.get(chunk["_stream"][0])
        if sink is not None:
            sink.write(chunk)

    def flush(self) -> None:
        """Have what is held written."""
        for sink in self._sinks.values():
            flush(sink)

    def close(self) -> None:
        """Close them all."""
        for sink in self._sinks.values():
            sink.close()


def flush(sink: object) -> None:
    """Have a sink write what it holds, if it holds anything."""
    if isinstance(sink, FolderSink | SinkByStream):
        sink.flush()


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
        return SinkByStream({stream: make_sink(each, {}) for stream, each in target.items()})
    if hasattr(target, "write") and hasattr(target, "close"):
        return target
    if callable(target):
        return FunctionSink(target)
    raise OptionError(
        f"sink= is a folder, a function of a pyarrow table, or an object with write and close,"
        f" not {type(target).__name__}"
    )
