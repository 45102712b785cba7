"""Where results go: memory, a function, or a folder of Parquet files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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


class FunctionSink:
    """Hands each chunk of results to a function, as a pyarrow table."""

    def __init__(self, function: Callable[[pa.Table], object]):
        self._function = function

    def write(self, chunk: Chunk) -> None:
        """Call the function."""
        self._function(chunk.to_arrow())

    def close(self) -> None:
        """Nothing to do."""


class ParquetSink:
    """Writes results as Parquet files into a folder, each complete before it has its name."""

    def __init__(self, folder: Path, rows_per_file: int = 1_000_000):
        self._folder, self._limit = folder, rows_per_file
        self._held: list[Chunk] = []
        self._rows = 0
        self._files = 0
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SinkError(f"cannot write results to {folder}: {error}") from None
        if any(folder.glob("*.parquet")):
            raise SinkError(f"{folder} already holds Parquet files; give an empty folder")

    def write(self, chunk: Chunk) -> None:
        """Gather rows and write a file when there are enough."""
        self._held.append(chunk)
        self._rows += chunk.height
        if self._rows >= self._limit:
            self._flush()

    def close(self) -> None:
        """Write what is left."""
        if self._held:
            self._flush()

    def _flush(self) -> None:
        target = self._folder / f"part-{self._files:05d}.parquet"
        unfinished = target.with_suffix(".unfinished")
        try:
            pl.concat(self._held, how="diagonal").write_parquet(unfinished)
            unfinished.rename(target)
        except OSError as error:
            raise SinkError(f"cannot write {target}: {error}") from None
        self._held, self._rows, self._files = [], 0, self._files + 1


def make_sink(target: object, schema: Mapping[str, pl.DataType]) -> Sink:
    """A sink from what a user gives: nothing, a function, a folder, or a sink."""
    if target is None:
        return MemorySink(schema)
    if isinstance(target, str | Path):
        return ParquetSink(Path(target))
    if hasattr(target, "write") and hasattr(target, "close"):
        return target
    if callable(target):
        return FunctionSink(target)
    raise OptionError(
        f"sink= is a folder, a function of a pyarrow table, or an object with write and close,"
        f" not {type(target).__name__}"
    )
