"""Kernel state is in Spark's state store as chunks under (operator, name, slice, sequence).

Within a batch chunks are kept in memory. At its end the chunks that are new are written, and those
that are gone are removed. A chunk is read when a kernel first gets it. The index, with the address
and size of every chunk, is one small value a bucket.
"""

from __future__ import annotations

from typing import Any, Protocol

from lowwater.engines.clock import average_time, stopwatch
from lowwater.engines.spark.wire.message import packed, unpacked
from lowwater.engines.spark.worker.cache import LEAST, LIMIT, ChunkCache
from lowwater.state.index import ChunkIndex, ChunkKey
from lowwater.stream.element import Chunk


class Shelf(Protocol):
    """Keeps the chunks of a bucket between batches, as bytes."""

    def read(self, slot: str, key: ChunkKey) -> bytes:
        """Return the bytes of a chunk."""

    def write(self, slot: str, key: ChunkKey, body: bytes) -> None:
        """Keep the bytes of a chunk."""

    def erase(self, slot: str, key: ChunkKey) -> None:
        """Drop a chunk."""


Entry = tuple[int, int, str]
"""The rows and bytes of a chunk, and the token of its copy in the cache; "" if there is none."""


class SparkStore:
    """The chunks of one operator in one bucket."""

    def __init__(self, slot: str, shelf: Shelf, saved: Any = None, cache: ChunkCache | None = None):
        self._slot, self._shelf, self._cache = slot, shelf, cache
        self._index: ChunkIndex[Entry] = (
            ChunkIndex(saved["index"], saved["sequence"]) if saved else ChunkIndex()
        )
        self._fresh: set[ChunkKey] = set()
        self._gone: dict[ChunkKey, str] = {}
        self._chunks: dict[ChunkKey, Chunk] = {}
        self._aside: set[str] = set()
        self._read: int = saved["read"] if saved else 0

    @property
    def rows(self) -> int:
        """Rows held now."""
        return sum(rows for rows, _, _ in self._index)

    @property
    def bytes(self) -> int:
        """Bytes held now."""
        return sum(size for _, size, _ in self._index)

    @property
    def chunks(self) -> int:
        """Chunks held now."""
        return sum(1 for _ in self._index)

    def put(self, name: str, slice_: int, chunk: Chunk) -> ChunkKey:
        """Add a chunk to a slice, after the ones that are there."""
        entry = (chunk.height, int(chunk.estimated_size()), "")
        key = self._index.add(name, slice_, entry)
        self._chunks[key] = chunk
        self._fresh.add(key)
        return key

    def get(self, key: ChunkKey) -> Chunk:
        """Read one chunk."""
        chunk = self._chunks.get(key)
        if chunk is None:
            chunk = self._chunks[key] = self._fetched(key)
        return chunk

    def _fetched(self, key: ChunkKey) -> Chunk:
        token = self._index[key][2]
        if token and self._cache is not None:
            chunk = self._cache.get(self._slot, key, token)
            if chunk is not None:
                return chunk
        begun = stopwatch()
        chunk = unpacked(self._shelf.read(self._slot, key))
        if key.name in self._aside:
            took = stopwatch() - begun
            self._read = average_time(self._read, took) if self._read else took
        return chunk

    def replace(self, key: ChunkKey, chunk: Chunk) -> None:
        """Put another chunk at an address that is in use."""
        token = self._index[key][2]
        if key not in self._fresh:
            self._gone[key] = token  # what is there is erased before the new chunk is written
        self._index[key] = (chunk.height, int(chunk.estimated_size()), "")
        self._chunks[key] = chunk
        self._fresh.add(key)

    def remove(self, key: ChunkKey) -> None:
        """Drop one chunk."""
        token = self._index.pop(key)[2]
        self._chunks.pop(key, None)
        if key in self._fresh:
            self._fresh.discard(key)
        else:
            self._gone[key] = token

    def scan(self, name: str, low: int | None = None, high: int | None = None) -> list[ChunkKey]:
        """Return the addresses of the chunks in slices ``low <= slice < high``, by slice and
        sequence."""
        return self._index.scan(name, low, high)

    def slices(self, name: str, low: int | None = None, high: int | None = None) -> list[int]:
        """Return the slices that hold something, in order."""
        return self._index.slices(name, low, high)

    def rows_at(self, key: ChunkKey) -> int:
        """Return the number of rows of one chunk, without reading it."""
        return self._index[key][0]

    def rows_in(self, name: str, slice_: int) -> int:
        """Return the number of rows in one slice, without reading them."""
        return sum(rows for rows, _, _ in self._index.of(name, slice_))

    def bytes_of(self, name: str) -> int:
        """Return the number of bytes held under a name."""
        return sum(size for _, size, _ in self._index.of(name))

    def set_aside(self, name: str) -> None:
        """Keep chunks under a name out of the cache, in Spark's state only."""
        self._aside.add(name)

    @property
    def round_trip(self) -> int:
        """0: a chunk is read again in a later batch, which takes longer than any disk."""
        return 0

    @property
    def read_time(self) -> int:
        """Nanoseconds that it lately took to read a chunk out of the cache from Spark's state; 0 if
        none was read."""
        return self._read

    def save(self) -> dict[str, Any]:
        """Write the chunks that changed and return the index as it is now."""
        for key, token in self._gone.items():
            self._shelf.erase(self._slot, key)
            if token and self._cache is not None:
                self._cache.drop(self._slot, key, token)
        kept = sum(size for _, size, token in self._index if token)
        for key in sorted(self._fresh):
            chunk = self._chunks[key]
            self._shelf.write(self._slot, key, packed(chunk, compressed=True))
            rows, size, _ = self._index[key]
            near = key.name not in self._aside
            cache = self._cache if near and LEAST <= size <= LIMIT - kept else None
            if cache is not None and cache.put(self._slot, key, chunk):
                self._index[key] = (rows, size, cache.token)
                kept += size
        self._fresh.clear()
        self._gone.clear()
        return {"index": self._index.entries, "sequence": self._index.sequence, "read": self._read}
