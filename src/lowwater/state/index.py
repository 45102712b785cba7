"""The index of a chunk store: an entry for each address, in the order of slices.

Invariant: a slice is in the index exactly while it has an entry, the slices of a name are sorted,
and an address is used once.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import Generic, NamedTuple, TypeVar

Entry = TypeVar("Entry")


class ChunkKey(NamedTuple):
    """The address of a chunk: a name, a time slice, and a number that no other chunk has."""

    name: str
    slice: int
    sequence: int


class ChunkIndex(Generic[Entry]):
    """One entry for each chunk, by name, slice and sequence.

    A snapshot needs only ``entries`` and ``sequence``, the number of addresses given so far.
    """

    def __init__(
        self, entries: dict[str, dict[int, dict[int, Entry]]] | None = None, sequence: int = 0
    ):
        self.entries = entries if entries is not None else {}
        self.sequence = sequence
        self._slices = {name: sorted(slices) for name, slices in self.entries.items()}

    def add(self, name: str, slice_: int, entry: Entry) -> ChunkKey:
        """Add an entry at the end of a slice; return its address."""
        by_slice = self.entries.setdefault(name, {})
        if slice_ not in by_slice:
            by_slice[slice_] = {}
            insort(self._slices.setdefault(name, []), slice_)
        self.sequence += 1
        by_slice[slice_][self.sequence] = entry
        return ChunkKey(name, slice_, self.sequence)

    def __getitem__(self, key: ChunkKey) -> Entry:
        return self.entries[key.name][key.slice][key.sequence]

    def __setitem__(self, key: ChunkKey, entry: Entry) -> None:
        """Replace the entry of an address that is in use."""
        self.entries[key.name][key.slice][key.sequence] = entry

    def pop(self, key: ChunkKey) -> Entry:
        """Remove the entry of an address and return it."""
        by_slice = self.entries[key.name]
        entry = by_slice[key.slice].pop(key.sequence)
        if not by_slice[key.slice]:
            del by_slice[key.slice]
            slices = self._slices[key.name]
            del slices[bisect_left(slices, key.slice)]
        return entry

    def scan(self, name: str, low: int | None = None, high: int | None = None) -> list[ChunkKey]:
        """Return the addresses in slices ``low <= slice < high``, by slice and sequence."""
        by_slice = self.entries.get(name, {})
        return [
            ChunkKey(name, slice_, sequence)
            for slice_ in self.slices(name, low, high)
            for sequence in by_slice[slice_]
        ]

    def slices(self, name: str, low: int | None = None, high: int | None = None) -> list[int]:
        """Return the slices ``low <= slice < high`` that have an entry, in order."""
        slices = self._slices.get(name, [])
        first = 0 if low is None else bisect_left(slices, low)
        last = len(slices) if high is None else bisect_left(slices, high)
        return slices[first:last]

    def of(self, name: str, slice_: int | None = None) -> Iterator[Entry]:
        """Yield the entries of a name, or of one of its slices."""
        by_slice = self.entries.get(name, {})
        for each in by_slice.values() if slice_ is None else (by_slice.get(slice_, {}),):
            yield from each.values()

    def __iter__(self) -> Iterator[Entry]:
        for name in self.entries:
            yield from self.of(name)
