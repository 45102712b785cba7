"""Partial aggregates by time slice.

Partials of single values, such as sums, extremes and the first value, are *folded*: after every
step there is exactly one for each place and key (`operators/folded_partials.py`).

Partials that hold many values, such as lists, sets and sketches, are merged when they have doubled
instead, since a merge copies all that they hold. In a slice, fresh partials are kept apart from
merged ones. When a chunk comes, they are merged if they are at least as many as the merged ones and
at least twice as many as the rows of the chunk. Fresh partials that remain are merged by the reader
of the slice. So a row takes part in a bounded number of merges on average, however the stream is
cut, and a slice holds at most about twice its distinct groups and three chunks. A chunk is reduced
on arrival, as long as that makes it smaller. Before the state is saved, slices that have doubled
are merged.

Rows can also be kept as they are (*buffered*) and reduced when their slice is read. One slice may
hold both, so the choice can change at any row, and no answer depends on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from lowwater.operators.aggregates import Aggregate, lift, merge
from lowwater.operators.folded_partials import FoldedPartials, can_fold
from lowwater.state.slicing import reslice
from lowwater.state.store import FEW_SLICES, ChunkStore, add, read, split, take
from lowwater.stream.element import Chunk

MERGED, FRESH, ROWS = "merged", "fresh", "rows"
FEWEST = 8_192
"""Number of fresh partials of many values below which they are not merged."""
WORTH = 0.5
"""The next chunk is reduced too if a reduction leaves at most this share of the rows."""
TRY_AGAIN = 16
"""Number of chunks that are not reduced after a reduction that left a greater share."""


class Partials:
    """Partial aggregates by slice, place and key.

    ``place`` is the expression that slices follow, such as the pane of a row; ``keys`` are the
    other key columns; ``prefix`` begins the names of the chunks in the store.
    """

    def __init__(
        self,
        store: ChunkStore,
        place: pl.Expr,
        keys: Sequence[str],
        aggregates: Sequence[Aggregate],
        prefix: str = "",
    ):
        self._store, self._aggregates = store, list(aggregates)
        self._merged, self._fresh, self._raw = prefix + MERGED, prefix + FRESH, prefix + ROWS
        place_name = place.meta.output_name()
        others = [name for name in keys if name != place_name]
        self._keys = [place_name, *others]
        self._columns = [place, *(pl.col(name) for name in others)]
        read_ = _columns_read([*self._columns, *(part for a in aggregates for part in a.lift)])
        self._needed = [pl.col(name) for name in read_ if name != place_name]
        self._folded = FoldedPartials(store, self._merged, self._keys, self._merge, self._adds)
        self._skip = 0  # chunks to leave unreduced; it changes the cost only

    def buffer(self, rows: Chunk, slice_: pl.Expr) -> int:
        """Add rows as they are, and return their size in bytes."""
        needed = rows.select(self._columns[0], *self._needed)
        for number, part in split(needed, slice_):
            add(self._store, self._raw, number, part)
        return int(needed.estimated_size())

    def size_as_rows(self, rows: Chunk) -> int:
        """Return the bytes that rows would take as they are."""
        return int(rows.select(self._needed).estimated_size())

    def put(self, rows: Chunk, slice_: pl.Expr) -> None:
        """Add rows; ``slice_`` is the expression of the slice, from the place."""
        lifted = lift(rows, self._columns, self._aggregates)
        if can_fold(lifted):
            self.put_partials(lifted, slice_)
            return
        for number, partials in split(lifted, slice_):
            self._put(number, self._reduced(partials))

    def reduced(self, rows: Chunk) -> Chunk:
        """Return rows as partials, one for each place and key; nothing is stored."""
        lifted = lift(rows, self._columns, self._aggregates)
        return self._merge(lifted, self._keys) if lifted.height else lifted

    def put_partials(self, partials: Chunk, slice_: pl.Expr) -> None:
        """Add partials that :meth:`reduced` returned, here or elsewhere."""
        parts, fold = split(partials, slice_), can_fold(partials)
        distinct = fold and len(parts) > FEW_SLICES
        if distinct:  # one merge for all slices; of few, each is merged with what it holds
            parts = split(self._merge(partials, self._keys), slice_)
        for number, part in parts:
            if fold:
                self._folded.put(number, part, distinct)
            else:
                self._put(number, part)

    def _reduced(self, lifted: Chunk) -> Chunk:
        if self._skip > 0:
            self._skip -= 1
            return lifted
        if lifted.height < 2:
            return lifted
        reduced = self._merge(lifted, self._keys)
        if reduced.height > WORTH * lifted.height:
            self._skip = TRY_AGAIN
        return reduced

    def _put(self, slice_: int, partials: Chunk) -> None:
        if self._doubled(slice_, 2 * partials.height):
            self._fold(slice_)
        add(self._store, self._fresh, slice_, partials)

    def settle(self) -> None:
        """Merge the slices that have doubled, before an engine saves the state.

        Those of folded partials hold nothing that is fresh.
        """
        for slice_ in list(self._store.slices(self._fresh)):
            if self._doubled(slice_):
                self._fold(slice_)

    def _doubled(self, slice_: int, least: int = 0) -> bool:
        merged, fresh = (self._store.rows_in(name, slice_) for name in (self._merged, self._fresh))
        return fresh >= max(FEWEST, merged, least)

    def _fold(self, slice_: int) -> None:
        held = self._take(slice_)
        assert held is not None
        self._store.put(self._merged, slice_, self._merge(held, self._keys))

    def _merge(self, partials: Chunk, keys: Sequence[str]) -> Chunk:
        """Return one partial for each value of the keys; a single place is not grouped by."""
        name, *others = keys
        place = partials[name]
        if not others or place.min() != place.max():
            return merge(partials, keys, self._aggregates)
        merged = merge(partials, others, self._aggregates)
        return merged.insert_column(0, place.head(1).new_from_index(0, merged.height))

    def _adds(self, partials: Chunk) -> bool:
        return all(each.adds is not None and each.adds(partials) for each in self._aggregates)

    def replace(self, slice_: int, partials: Chunk) -> None:
        """Replace everything in a slice by partials."""
        self.take(slice_)
        if partials.height:
            self._store.put(self._merged, slice_, partials)

    def regroup(self, slice_: pl.Expr) -> None:
        """Move everything to other slices."""
        reslice(self._store, self._raw, slice_)
        held = [chunk for each in self.slices() if (chunk := self._take(each)) is not None]
        if held:
            self.put_partials(pl.concat(held), slice_)

    def get(self, slice_: int) -> Chunk | None:
        """Return all partials of a slice; None if it is empty. One of many values may be there
        several times for a key."""
        held = [
            self._store.get(key)
            for name in (self._merged, self._fresh)
            for key in self._store.scan(name, slice_, slice_ + 1)
        ]
        return self._with_rows(held, read(self._store, self._raw, slice_, slice_ + 1))

    def items(self, low: int | None = None, high: int | None = None) -> Iterator[tuple[int, Chunk]]:
        """Yield the slices that are not empty, in order, each with all its partials."""
        for slice_ in self.slices(low, high):
            if (partials := self.get(slice_)) is not None:
                yield slice_, partials

    def take(self, slice_: int) -> Chunk | None:
        """Remove and return all partials of a slice; None if it is empty."""
        held = self._take(slice_)
        rows = take(self._store, self._raw, slice_, slice_ + 1)
        return self._with_rows([held] if held is not None else [], rows)

    def _take(self, slice_: int) -> Chunk | None:
        """Remove and return the partials of a slice; rows kept as they are stay."""
        self._folded.forget(slice_)
        held = [take(self._store, name, slice_, slice_ + 1) for name in (self._merged, self._fresh)]
        some = [chunk for chunk in held if chunk is not None]
        return pl.concat(some) if some else None

    def _with_rows(self, held: list[Chunk], rows: Chunk | None) -> Chunk | None:
        if rows is None:
            return pl.concat(held) if held else None
        lifted = lift(rows, self._columns, self._aggregates)
        if can_fold(lifted):
            return self._merge(pl.concat([*held, lifted]), self._keys)
        return pl.concat([*held, self._merge(lifted, self._keys)])

    def is_folded(self, low: int | None = None, high: int | None = None) -> bool:
        """Return true if some slices hold no rows and one partial for each place and key."""
        return not any(self._store.slices(name, low, high) for name in (self._fresh, self._raw))

    @property
    def index_bytes(self) -> int:
        """The size of the indexes by which partials are found, beside the store."""
        return self._folded.bytes

    def rows_in(self, low: int, high: int) -> int:
        """Return the number of partials and rows in some slices, without reading them."""
        return sum(
            self._store.rows_in(name, slice_)
            for name in (self._merged, self._fresh, self._raw)
            for slice_ in self._store.slices(name, low, high)
        )

    def drop(self, slice_: int) -> None:
        """Drop a slice."""
        self._folded.forget(slice_)
        for name in (self._merged, self._fresh, self._raw):
            for key in self._store.scan(name, slice_, slice_ + 1):
                self._store.remove(key)

    def snapshot(self) -> int:
        """Return the number of chunks to leave unreduced."""
        return self._skip

    def restore(self, saved: int) -> None:
        """Set the number of chunks to leave unreduced."""
        self._skip = saved

    def slices(self, low: int | None = None, high: int | None = None) -> list[int]:
        """Return the slices that are not empty, in order."""
        names = (self._merged, self._fresh, self._raw)
        found = {slice_ for name in names for slice_ in self._store.slices(name, low, high)}
        return sorted(found)


def _columns_read(expressions: Sequence[pl.Expr]) -> list[str]:
    """Return the columns that expressions read, each once."""
    return list(dict.fromkeys(n for each in expressions for n in each.meta.root_names()))
