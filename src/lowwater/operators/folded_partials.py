"""Partials of which a slice holds exactly one for each key, after every step.

A slice is a few chunks, in the order in which their keys came first. New partials are merged with
those of their keys only: an index finds the places of the keys, and the merged values are written
there into a copy of the columns. Keys that are new go to the end. Where a slice is not larger than
what comes, or small, all of it is merged instead.

Cost: time in proportion to the partials that come, and one copy of the columns of values of each
chunk that has one of their keys. Chunks have at most 131,072 rows.

Invariant: all keys of a slice differ. The index of a slice has the hashes of its keys, in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import polars as pl

from lowwater.state.index import ChunkKey
from lowwater.state.key_index import UNKNOWN, Hashes, KeyIndex, Places
from lowwater.state.keyed_rows import hash_of
from lowwater.state.store import ChunkStore, read, take
from lowwater.stream.element import Chunk

FEW = 8_192
"""Number of partials up to which a slice is merged as a whole."""
SEED = 43
"""The seed of the hash, so that indexes are independent of other hashes of keys."""
LARGEST = 262_144
"""Number of rows from which a chunk gets no more keys."""
GROWTH = 4
"""The last chunk of a slice has less than one in so many rows of the chunk before it."""
_PLACE = "__place"


class FoldedPartials:
    """The partials under a name in a store, one for each slice and key.

    ``merge`` returns one partial for each value of some key columns; ``adds`` returns true for
    partials that are merged by adding. The other columns of a partial are values of a fixed size.
    """

    def __init__(
        self,
        store: ChunkStore,
        name: str,
        keys: Sequence[str],
        merge: Callable[[Chunk, Sequence[str]], Chunk],
        adds: Callable[[Chunk], bool],
    ):
        self._store, self._name, self._keys = store, name, list(keys)
        self._merge, self._adds = merge, adds
        self._indexes: dict[int, KeyIndex] = {}  # of slices that have one; made again when needed

    @property
    def bytes(self) -> int:
        """The size of the indexes."""
        return sum(index.bytes for index in self._indexes.values())

    def put(self, slice_: int, partials: Chunk, distinct: bool = False) -> None:
        """Add partials to a slice; ``distinct`` states that all their keys differ."""
        distinct = distinct or partials.height == 1
        held = self._store.rows_in(self._name, slice_)
        if not held:
            self._append(slice_, partials if distinct else self._merge(partials, self._keys))
            return
        if slice_ not in self._indexes and held <= max(FEW, partials.height):
            self._fold(slice_, partials)
            return
        index = self._index(slice_, partials.height)
        places = index.find(self._hashes(partials))
        if not self._update(slice_, partials, places):
            self._fold(slice_, partials)  # a key has the hash of another
            return
        new = np.flatnonzero(places == UNKNOWN)
        if len(new):
            fresh = partials if len(new) == partials.height else partials[new]
            if not distinct and len(new) > 1:
                fresh = self._merge(fresh, self._keys)
            index.add(self._hashes(fresh))
            self._append(slice_, fresh)

    def forget(self, slice_: int) -> None:
        """Drop the index of a slice, whose partials are about to change in another way."""
        self._indexes.pop(slice_, None)

    def _fold(self, slice_: int, partials: Chunk) -> None:
        """Merge all of a slice with what comes."""
        self.forget(slice_)
        held = take(self._store, self._name, slice_, slice_ + 1)
        assert held is not None
        self._append(slice_, self._merge(pl.concat([held, partials]), self._keys))

    def _append(self, slice_: int, fresh: Chunk) -> None:
        """Add partials of new keys at the end: to the last chunk, and this to the one before it if
        it is a fourth of its size; so a slice has few chunks, and a key is seldom copied."""
        addresses = self._store.scan(self._name, slice_, slice_ + 1)
        parts, count = [fresh], fresh.height
        for share in (0, GROWTH):
            rows = self._store.rows_at(addresses[-1]) if addresses else LARGEST
            if rows >= LARGEST or rows * share > count:
                break
            address = addresses.pop()
            parts.append(self._store.get(address))
            self._store.remove(address)
            count += rows
        if len(parts) > 1:
            fresh = pl.concat(reversed(parts), rechunk=True)
        self._store.put(self._name, slice_, fresh)

    def _hashes(self, partials: Chunk) -> Hashes:
        return partials.select(hash_of(partials.schema, self._keys, SEED)).to_series().to_numpy()

    def _index(self, slice_: int, room: int) -> KeyIndex:
        """Return the index of a slice, with room for so many new keys."""
        index = self._indexes.get(slice_)
        if index is None or not index.has_room(room):
            held = read(self._store, self._name, slice_, slice_ + 1)
            assert held is not None
            index = self._indexes[slice_] = KeyIndex(self._hashes(held), room)
        return index

    # ---- known keys ------------------------------------------------------------------------

    def _update(self, slice_: int, partials: Chunk, places: Places) -> bool:
        """Merge partials into those at their places; return false if a key is another there."""
        parts = list(self._parts(slice_, places))
        for _, chunk, came, at in parts:
            if not all(chunk[name][at].equals(partials[name][came]) for name in self._keys):
                return False
        for address, chunk, came, at in parts:
            both = pl.concat([chunk, partials])
            merge = self._added if self._adds(both) else self._merged
            written = chunk.clone()
            for column in merge(chunk, partials, came, at):
                written.replace_column(chunk.get_column_index(column.name), column)
            self._store.replace(address, written)
        return True

    def _parts(
        self, slice_: int, places: Places
    ) -> Iterator[tuple[ChunkKey, Chunk, pl.Series, pl.Series]]:
        """Yield the chunks of a slice that have some of the places, with the positions of these
        among the places and in the chunk."""
        first = 0
        for address in self._store.scan(self._name, slice_, slice_ + 1):
            last = first + self._store.rows_at(address)
            inside = np.flatnonzero((places >= first) & (places < last))
            if len(inside):
                at = pl.Series((places[inside] - first).astype(np.uint32))
                yield address, self._store.get(address), pl.Series(inside.astype(np.uint32)), at
            first = last

    def _values(self, chunk: Chunk) -> list[str]:
        return [n for n, dtype in chunk.schema.items() if n not in self._keys and dtype != pl.Null]

    def _added(
        self, chunk: Chunk, partials: Chunk, came: pl.Series, at: pl.Series
    ) -> Iterator[pl.Series]:
        """Yield the columns of a chunk, to which some partials were added at some positions."""
        for name in self._values(chunk):
            total = chunk[name].to_numpy().copy()
            np.add.at(total, at.to_numpy(), partials[name][came].to_numpy())
            yield pl.Series(name, total)

    def _merged(
        self, chunk: Chunk, partials: Chunk, came: pl.Series, at: pl.Series
    ) -> Iterator[pl.Series]:
        """Yield the columns of a chunk, merged with some partials at some positions."""
        values = self._values(chunk)
        touched = at.unique()
        both = pl.concat([chunk[values][touched], partials[values][came]])
        both.insert_column(0, pl.concat([touched, at]).alias(_PLACE))
        merged = self._merge(both, [_PLACE])
        for name in values:
            yield chunk[name].scatter(merged[_PLACE], merged[name])


def can_fold(partials: Chunk) -> bool:
    """Return true if all columns of partials are single values, not lists, rows or sketches."""
    return not any(dtype.is_nested() or dtype == pl.Object for dtype in partials.dtypes)
