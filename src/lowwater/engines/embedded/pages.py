"""A paged store is a chunk store that keeps the chunks of some names in files.

Each of these chunks is written to a file of its own, in the Arrow IPC format, and read from there
by :meth:`PagedStore.get`. The files are in a folder of the store's own, which is made with the
first of them and removed with the store, whatever ends the run.

Invariant: a chunk is read as it was written, or an error names the file. ``rows`` and ``bytes``
count the chunks in memory; ``disk_rows`` and ``disk_bytes`` count those in files.
"""

from __future__ import annotations

import io
import shutil
import weakref
import zlib
from pathlib import Path
from typing import NamedTuple

import polars as pl

from lowwater.engines.clock import average_time, stopwatch
from lowwater.engines.scratch import scratch_folder
from lowwater.errors import StateError
from lowwater.state.index import ChunkKey
from lowwater.state.store import MemoryStore
from lowwater.stream.element import Chunk

GUESS = 2_000_000
"""The nanoseconds assumed for writing a page and reading it back, until both are measured."""


class _Page(NamedTuple):
    """A file: its rows, its bytes and the CRC-32 of its content."""

    path: Path
    rows: int
    bytes: int
    check: int


class PagedStore(MemoryStore):
    """A store with the chunks of some names in files and all others in memory.

    The names are those given to :meth:`set_aside`.
    """

    def __init__(self, folder: str | Path | None = None) -> None:
        super().__init__()
        self._parent = folder
        self._folder: Path | None = None
        self._aside: set[str] = set()
        self._pages: dict[int, _Page] = {}
        self._write = self._read = GUESS // 2
        self._measured = False
        self.disk_rows = 0
        self.disk_bytes = 0

    @property
    def round_trip(self) -> int:
        """The nanoseconds it lately took to write a page and read it back."""
        return self._write + self._read

    @property
    def read_time(self) -> int:
        """Nanoseconds that it lately took to read a page; 0 if none was read."""
        return self._read if self._measured else 0

    def set_aside(self, name: str) -> None:
        """Write the chunks put under a name from now on to files."""
        self._aside.add(name)

    def put(self, name: str, slice_: int, chunk: Chunk) -> ChunkKey:
        """Add a chunk to a slice, after the ones that are there."""
        if name not in self._aside:
            return super().put(name, slice_, chunk)
        begun = stopwatch()
        key = super().put(name, slice_, chunk.clear())
        body = io.BytesIO()
        chunk.write_ipc(body, compression="lz4")
        written = body.getvalue()
        path = self._home() / f"{name}-{key.sequence}.arrow"
        try:
            path.write_bytes(written)
        except OSError as error:
            raise StateError(f"rows cannot be put on disk, in {path}: {error}") from error
        page = _Page(path, chunk.height, len(written), zlib.crc32(written))
        self._pages[key.sequence] = page
        self.disk_rows += page.rows
        self.disk_bytes += page.bytes
        self._write = average_time(self._write, stopwatch() - begun)
        return key

    def get(self, key: ChunkKey) -> Chunk:
        """Read one chunk."""
        if key.sequence not in self._pages:
            return super().get(key)
        begun = stopwatch()
        chunk = self._load(key)
        took = stopwatch() - begun
        self._read = average_time(self._read, took) if self._measured else took
        self._measured = True
        return chunk

    def _load(self, key: ChunkKey) -> Chunk:
        page = self._pages[key.sequence]
        try:
            body = page.path.read_bytes()
        except OSError as error:
            raise StateError(f"rows that were put on disk are gone: {error}") from error
        if len(body) != page.bytes or zlib.crc32(body) != page.check:
            raise StateError(f"rows that were put on disk have changed there: {page.path}")
        return pl.read_ipc(io.BytesIO(body))

    def remove(self, key: ChunkKey) -> None:
        """Drop one chunk."""
        super().remove(key)
        page = self._pages.pop(key.sequence, None)
        if page is not None:
            page.path.unlink(missing_ok=True)
            self.disk_rows -= page.rows
            self.disk_bytes -= page.bytes

    def rows_at(self, key: ChunkKey) -> int:
        """Return the number of rows of a chunk."""
        page = self._pages.get(key.sequence)
        return super().rows_at(key) if page is None else page.rows

    def rows_in(self, name: str, slice_: int) -> int:
        """Return the number of rows in one slice, without reading them."""
        if name not in self._aside:
            return super().rows_in(name, slice_)
        keys = self.scan(name, slice_, slice_ + 1)
        return sum(self._pages[key.sequence].rows for key in keys)

    def _home(self) -> Path:
        if self._folder is None:
            self._folder = scratch_folder("pages", self._parent)
            self._end = weakref.finalize(self, shutil.rmtree, self._folder, True)
        return self._folder

    def close(self) -> None:
        """Remove the folder."""
        if self._folder is not None:
            self._end()
