"""The keyed-chunk interface through which every kernel keeps its rows.

A kernel never holds its state in one piece: it puts immutable chunks under ``(name, slice,
sequence)``, reads only the slices that concern an element, and purges by dropping slices. A slice
is a stretch of time, numbered by its position. In the embedded engine chunks are in memory; another
engine may keep them in its own state store by implementing :class:`ChunkStore`.

Invariant: ``rows`` and ``bytes`` are the sums over all chunks, and a slice exists exactly while it
holds a chunk.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import polars as pl

from lowwater.state.index import ChunkIndex, ChunkKey
from lowwater.stream.element import Chunk


class ChunkStore(Protocol):
    """Chunks by name, time slice and sequence."""

    @property
    def rows(self) -> int:
        """Number of rows held."""

    @property
    def bytes(self) -> int:
        """Approximate number of bytes of the rows held."""

    def put(self, name: str, slice_: int, chunk: Chunk) -> ChunkKey:
        """Add a chunk at the end of a slice; return its address."""

    def get(self, key: ChunkKey) -> Chunk:
        """Read one chunk."""

    def replace(self, key: ChunkKey, chunk: Chunk) -> None:
        """Put another chunk at an address in use, under a name that was not set aside."""

    def remove(self, key: ChunkKey) -> None:
        """Drop one chunk."""

    def scan(self, name: str, low: int | None = None, high: int | None = None) -> list[ChunkKey]:
        """Return the addresses of the chunks in slices ``low <= slice < high``, by slice and
        sequence."""

    def slices(self, name: str, low: int | None = None, high: int | None = None) -> list[int]:
        """Return the slices ``low <= slice < high`` that hold a chunk, in order."""

    def rows_at(self, key: ChunkKey) -> int:
        """Return the number of rows of a chunk, without reading it."""

    def rows_in(self, name: str, slice_: int) -> int:
        """Return the number of rows in a slice, without reading it."""

    def bytes_of(self, name: str) -> int:
        """Return the bytes of the chunks under a name."""

    def set_aside(self, name: str) -> None:
        """Allow the store to keep chunks under a name out of memory; none will be read soon."""

    @property
    def round_trip(self) -> int:
        """Approximate nanoseconds to write a chunk out of memory and read it back."""

    @property
    def read_time(self) -> int:
        """Nanoseconds that it lately took to read a chunk that was out of memory; 0 if it is not
        known."""


class MemoryStore:
    """Chunks in this process's memory."""

    def __init__(self) -> None:
        self._index: ChunkIndex[tuple[Chunk, int]] = ChunkIndex()
        self._names: dict[str, int] = {}
        self._rows = 0
        self._bytes = 0

    @property
    def rows(self) -> int:
        """Number of rows held."""
        return self._rows

    @property
    def bytes(self) -> int:
        """Approximate number of bytes of the rows held."""
        return self._bytes

    def put(self, name: str, slice_: int, chunk: Chunk) -> ChunkKey:
        """Add a chunk at the end of a slice; return its address."""
        entry = (chunk, int(chunk.estimated_size()))
        self._count(name, entry, 1)
        return self._index.add(name, slice_, entry)

    def replace(self, key: ChunkKey, chunk: Chunk) -> None:
        """Put another chunk at an address that is in use."""
        entry = (chunk, int(chunk.estimated_size()))
        self._count(key.name, self._index[key], -1)
        self._count(key.name, entry, 1)
        self._index[key] = entry

    def _count(self, name: str, entry: tuple[Chunk, int], times: int) -> None:
        chunk, size = entry
        self._rows += times * chunk.height
        self._bytes += times * size
        self._names[name] = self._names.get(name, 0) + times * size

    def get(self, key: ChunkKey) -> Chunk:
        """Read one chunk."""
        return self._index[key][0]

    def remove(self, key: ChunkKey) -> None:
        """Drop one chunk."""
        self._count(key.name, self._index.pop(key), -1)

    def scan(self, name: str, low: int | None = None, high: int | None = None) -> list[ChunkKey]:
        """Return the addresses of the chunks in slices ``low <= slice < high``, by slice and
        sequence."""
        return self._index.scan(name, low, high)

    def slices(self, name: str, low: int | None = None, high: int | None = None) -> list[int]:
        """Return the slices ``low <= slice < high`` that hold a chunk, in order."""
        return self._index.slices(name, low, high)

    def rows_at(self, key: ChunkKey) -> int:
        """Return the number of rows of a chunk."""
        return self._index[key][0].height

    def rows_in(self, name: str, slice_: int) -> int:
        """Return the number of rows in a slice."""
        return sum(chunk.height for chunk, _ in self._index.of(name, slice_))

    def bytes_of(self, name: str) -> int:
        """Return the bytes of the chunks under a name."""
        return self._names.get(name, 0)

    def set_aside(self, name: str) -> None:
        """Do nothing: all chunks are in memory."""

    @property
    def round_trip(self) -> int:
        """0: all chunks are in memory."""
        return 0

    @property
    def read_time(self) -> int:
        """0: all chunks are in memory."""
        return 0

    def __iter__(self) -> Iterator[tuple[ChunkKey, Chunk]]:
        for name in self._index.entries:
            for key in self.scan(name):
                yield key, self.get(key)


def read(
    store: ChunkStore, name: str, low: int | None = None, high: int | None = None
) -> Chunk | None:
    """Return the rows of the slices ``low <= slice < high``; None if there are none."""
    chunks = [store.get(key) for key in store.scan(name, low, high)]
    return pl.concat(chunks) if chunks else None


def take(
    store: ChunkStore, name: str, low: int | None = None, high: int | None = None
) -> Chunk | None:
    """Remove and return the rows of slices ``low <= slice < high``; None if there are none."""
    keys = store.scan(name, low, high)
    chunks = [store.get(key) for key in keys]
    for key in keys:
        store.remove(key)
    return pl.concat(chunks) if chunks else None


COMPACT_BELOW = 65_536
"""Number of rows from which :func:`add` no longer merges a chunk with the next."""


def add(store: ChunkStore, name: str, slice_: int, chunk: Chunk) -> None:
    """Add a chunk to a slice, merged with small chunks before it so that a slice holds few chunks.

    A chunk is merged with its predecessor while that one is not larger. So sizes grow geometrically
    and a row is copied at most a logarithmic number of times, however small the chunks are.
    """
    merged = [chunk]
    rows = chunk.height
    for key in reversed(store.scan(name, slice_, slice_ + 1)):
        before = store.get(key)
        if before.height > rows or before.height >= COMPACT_BELOW:
            break
        store.remove(key)
        merged.append(before)
        rows += before.height
    if len(merged) > 1:
        chunk = pl.concat(reversed(merged), rechunk=True)
    store.put(name, slice_, chunk)


FEW_SLICES = 4
"""Number of slices from which partitioning a chunk is faster than filtering each slice out."""


def split(chunk: Chunk, slice_column: pl.Expr) -> list[tuple[int, Chunk]]:
    """Return the parts of a chunk by slice; rows keep their order.

    ``slice_column`` is the expression of a row's slice number.
    """
    numbers = chunk.select(slice_column.alias("__slice"))["__slice"]
    low, high = numbers.min(), numbers.max()
    if low is None:
        return []
    first, last = int(low), int(high)  # type: ignore[arg-type]
    if first == last:
        return [(first, chunk)]
    if last - first < FEW_SLICES:
        parts = ((number, chunk.filter(numbers == number)) for number in range(first, last + 1))
        return [(number, part) for number, part in parts if part.height]
    apart = chunk.with_columns(numbers).partition_by(
        "__slice", as_dict=True, include_key=False, maintain_order=True
    )
    return [(int(key[0]), part) for key, part in apart.items()]
