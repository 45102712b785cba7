"""Partial aggregates by time slice, kept small by merging when they have doubled.

New partials are set beside the merged ones and folded in when there are as many of them as there
are merged ones. So a row takes part in a bounded number of merges on average, however the stream
is cut, and a slice holds at most about twice its distinct groups (plus one small buffer). A chunk
is reduced before it is set beside, as long as that makes it smaller.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from lowwater.operators.aggregates import Aggregate, lift, merge
from lowwater.state.store import ChunkStore, add, split, take
from lowwater.stream.element import Chunk

MERGED, FRESH = "merged", "fresh"
SLICE = "__at"
FEWEST = 8_192
"""Fresh partials are not folded in before there are this many."""
WORTH = 0.5
"""Chunks are reduced on arrival while that leaves at most this share of their rows."""
TRY_AGAIN = 16
"""After a reduction that was not worth it, this many chunks go by before the next try."""


class Partials:
    """Partial aggregates by slice."""

    def __init__(self, store: ChunkStore, keys: Sequence[str], aggregates: Sequence[Aggregate]):
        self._store, self._keys, self._aggregates = store, list(keys), list(aggregates)
        self._columns = [pl.col(name) for name in keys]
        self._skip = 0  # chunks to let by unreduced; a matter of cost, never of answers

    def put(self, rows: Chunk, slice_: pl.Expr) -> None:
        """Add rows, each to the slice it computes."""
        keys = [slice_.alias(SLICE), *self._columns]
        lifted = self._reduced(lift(rows, keys, self._aggregates))
        for number, partials in split(lifted, pl.col(SLICE)):
            self.put_back(number, partials.drop(SLICE))

    def _reduced(self, lifted: Chunk) -> Chunk:
        if self._skip > 0:
            self._skip -= 1
            return lifted
        if lifted.height < 2:
            return lifted
        reduced = merge(lifted, [SLICE, *self._keys], self._aggregates)
        if reduced.height > WORTH * lifted.height:
            self._skip = TRY_AGAIN
        return reduced

    def put_back(self, slice_: int, partials: Chunk) -> None:
        """Add partials to a slice."""
        store = self._store
        fresh = store.rows_in(FRESH, slice_) + partials.height
        if fresh < max(FEWEST, store.rows_in(MERGED, slice_)):
            add(store, FRESH, slice_, partials)
            return
        held = self.take(slice_)
        together = partials if held is None else pl.concat([held, partials])
        store.put(MERGED, slice_, merge(together, self._keys, self._aggregates))

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
