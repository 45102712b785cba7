"""Kernel state in Spark's state store: chunks under (operator, name, slice, sequence).

Within a batch chunks are kept in memory. At its end the chunks that are new are written, and those
that are gone are removed. A chunk is read when a kernel first gets it. The index, with the address
and size of every chunk, is one small value a bucket.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Any, Protocol

from lowwater.engines.spark.wire.message import packed, unpacked
from lowwater.engines.spark.worker.cache import LEAST, LIMIT, ChunkCache
from lowwater.state.store import ChunkKey
from lowwater.stream.element import Chunk


class Shelf(Protocol):
    """Where chunks are kept between batches."""

    def read(self, slot: str, key: ChunkKey) -> bytes:
        """The bytes of a chunk."""

    def write(self, slot: str, key: ChunkKey, body: bytes) -> None:
        """Keep the bytes of a chunk."""

    def erase(self, slot: str, key: ChunkKey) -> None:
        """Drop a chunk."""


Entry = tuple[int, int, str]
"""The rows and bytes of a chunk, and the token of its copy in the cache; "" if there is none."""
Index = dict[str, dict[int, dict[int, Entry]]]
"""The entries of all chunks, by name, slice and sequence."""


class SparkStore:
    """The chunks of one operator in one bucket."""

    def __init__(self, slot: str, shelf: Shelf, saved: Any = None, cache: ChunkCache | None = None):
        self._slot, self._shelf, self._cache = slot, shelf, cache
        self._index: Index = saved["index"] if saved else {}
        self._sequence: int = saved["sequence"] if saved else 0
        self._order = {name: sorted(slices) for name, slices in self._index.items()}
        self._fresh: set[ChunkKey] = set()
        self._gone: dict[ChunkKey, str] = {}
        self._chunks: dict[ChunkKey, Chunk] = {}
        self._aside: set[str] = set()

    def _entries(self) -> Iterator[Entry]:
        for slices in self._index.values():
            for chunks in slices.values():
                yield from chunks.values()

    @property
    def rows(self) -> int:
        """Rows held now."""
        return sum(entry[0] for entry in self._entries())

    @property
    def bytes(self) -> int:
        """Bytes held now."""
        return sum(entry[1] for entry in self._entries())

    @property
    def chunks(self) -> int:
        """Chunks held now."""
        return sum(1 for _ in self._entries())

    def put(self, name: str, slice_: int, chunk: Chunk) -> ChunkKey:
        """Add a chunk to a slice, after the ones that are there."""
        self._sequence += 1
        key = ChunkKey(name, slice_, self._sequence)
        slices = self._index.setdefault(name, {})
        if slice_ not in slices:
            slices[slice_] = {}
            order = self._order.setdefault(name, [])
            order.insert(bisect_left(order, slice_), slice_)
        slices[slice_][self._sequence] = (chunk.height, int(chunk.estimated_size()), "")
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
        token = self._index[key.name][key.slice][key.sequence][2]
        if token and self._cache is not None:
            chunk = self._cache.get(self._slot, key, token)
            if chunk is not None:
                return chunk
        return unpacked(self._shelf.read(self._slot, key))

    def remove(self, key: ChunkKey) -> None:
        """Drop one chunk."""
        chunks = self._index[key.name][key.slice]
        token = chunks.pop(key.sequence)[2]
        self._chunks.pop(key, None)
        if key in self._fresh:
            self._fresh.discard(key)
        else:
            self._gone[key] = token
        if not chunks:
            del self._index[key.name][key.slice]
            order = self._order[key.name]
            del order[bisect_left(order, key.slice)]

    def scan(self, name: str, low: int | None = None, high: int | None = None) -> list[ChunkKey]:
        """Addresses of all chunks in slices ``low <= slice < high``, by slice and sequence."""
        slices = self._index.get(name, {})
        return [
            ChunkKey(name, slice_, sequence)
            for slice_ in self.slices(name, low, high)
            for sequence in slices[slice_]
        ]

    def slices(self, name: str, low: int | None = None, high: int | None = None) -> list[int]:
        """The slices that hold something, in order."""
        order = self._order.get(name, [])
        first = 0 if low is None else bisect_left(order, low)
        last = len(order) if high is None else bisect_left(order, high)
        return order[first:last]

    def rows_in(self, name: str, slice_: int) -> int:
        """Rows held in one slice, known without reading it."""
        return sum(entry[0] for entry in self._index.get(name, {}).get(slice_, {}).values())

    def bytes_of(self, name: str) -> int:
        """Bytes held under a name."""
        slices = self._index.get(name, {}).values()
        return sum(entry[1] for chunks in slices for entry in chunks.values())

    def set_aside(self, name: str) -> None:
        """Keep chunks under a name out of the cache, in Spark's state only."""
        self._aside.add(name)

    @property
    def round_trip(self) -> int:
        """0: a chunk is read again in a later batch, which takes longer than any disk."""
        return 0

    def save(self) -> dict[str, Any]:
        """Write the chunks that changed and return the index as it is now."""
        for key, token in self._gone.items():
            self._shelf.erase(self._slot, key)
            if token and self._cache is not None:
                self._cache.drop(self._slot, key, token)
        kept = sum(size for _, size, token in self._entries() if token)
        for key in sorted(self._fresh):
            chunk = self._chunks[key]
            self._shelf.write(self._slot, key, packed(chunk, compressed=True))
            entries = self._index[key.name][key.slice]
            rows, size, _ = entries[key.sequence]
            near = key.name not in self._aside
            cache = self._cache if near and LEAST <= size <= LIMIT - kept else None
            if cache is not None and cache.put(self._slot, key, chunk):
                entries[key.sequence] = (rows, size, cache.token)
                kept += size
        self._fresh.clear()
        self._gone.clear()
        return {"index": self._index, "sequence": self._sequence}
