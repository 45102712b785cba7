"""Partial aggregates of one time slice, kept small by merging when they have doubled.

New partials are set beside the merged ones and folded in when there are as many of them as there
are merged ones. So a row takes part in a bounded number of merges on average, however the stream
is cut, and a slice holds at most about twice its distinct groups (plus one small buffer).
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from lowwater.operators.aggregates import Aggregate, merge
from lowwater.state.store import ChunkStore, add, take
from lowwater.stream.element import Chunk

MERGED, FRESH = "merged", "fresh"
FEWEST = 8_192
"""Fresh partials are not folded in before there are this many."""


class Partials:
    """Partial aggregates by slice."""

    def __init__(self, store: ChunkStore, keys: Sequence[str], aggregates: Sequence[Aggregate]):
        self._store, self._keys, self._aggregates = store, list(keys), list(aggregates)

    def put(self, slice_: int, partials: Chunk) -> None:
        """Add partials to a slice."""
        if partials.height >= FEWEST:
            partials = self._merge(partials)
        store = self._store
        fresh = store.rows_in(FRESH, slice_) + partials.height
        if fresh < max(FEWEST, store.rows_in(MERGED, slice_)):
            add(store, FRESH, slice_, partials)
            return
        folded = self._merge(_together(self.take(slice_), partials))
        store.put(MERGED, slice_, folded)

    def get(self, slice_: int) -> Chunk | None:
        """All partials of a slice, several per key perhaps."""
        held = [
            self._store.get(key)
            for name in (MERGED, FRESH)
            for key in self._store.scan(name, slice_, slice_ + 1)
        ]
        return pl.concat(held) if held else None

    def take(self, slice_: int) -> Chunk | None:
        """All partials of a slice, which is empty afterwards."""
        held = [take(self._store, name, slice_, slice_ + 1) for name in (MERGED, FRESH)]
        some = [chunk for chunk in held if chunk is not None]
        return pl.concat(some) if some else None

    def slices(self, low: int | None = None, high: int | None = None) -> list[int]:
        """The slices that hold something, in order."""
        both = {*self._store.slices(MERGED, low, high), *self._store.slices(FRESH, low, high)}
        return sorted(both)

    def _merge(self, partials: Chunk) -> Chunk:
        return merge(partials, self._keys, self._aggregates)


def _together(held: Chunk | None, partials: Chunk) -> Chunk:
    return partials if held is None else pl.concat([held, partials])
