"""Partial aggregates by time slice, kept small by merging when they have doubled.

New partials are set beside the merged ones and folded in once there are as many of them as there
are merged ones, when a chunk comes that is at most half of them: the last chunks of a slice are
merged when it is answered, and need not be before. So a row takes part in a bounded number of
merges on average, however the stream is cut, and a slice holds at most about twice its distinct
groups and three chunks. A chunk is reduced before it is set beside, as long as that makes it
smaller. What is about to be written somewhere is folded before, if it has doubled.

Rows can also be kept as they are (*buffered*) and reduced when their slice is read. One slice may
hold both, so the choice can change at any row and no answer depends on it.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from lowwater.operators.aggregates import Aggregate, lift, merge
from lowwater.state.slicing import reslice
from lowwater.state.store import ChunkStore, add, read, split, take
from lowwater.stream.element import Chunk

MERGED, FRESH, ROWS = "merged", "fresh", "rows"
FEWEST = 8_192
"""Fresh partials are not folded in before there are this many."""
WORTH = 0.5
"""Chunks are reduced on arrival while that leaves at most this share of their rows."""
TRY_AGAIN = 16
"""After a reduction that was not worth it, this many chunks go by before the next try."""


class Partials:
    """Partial aggregates by slice; ``place`` is a key that also tells which slice a row is in."""

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
        self._skip = 0  # chunks to let by unreduced; a matter of cost, never of answers

    def buffer(self, rows: Chunk, slice_: pl.Expr) -> int:
        """Add rows as they are, and give their size in bytes."""
        needed = rows.select(self._columns[0], *self._needed)
        for number, part in split(needed, slice_):
            add(self._store, self._raw, number, part)
        return int(needed.estimated_size())

    def size_as_rows(self, rows: Chunk) -> int:
        """How many bytes rows would take as they are."""
        return int(rows.select(self._needed).estimated_size())

    def put(self, rows: Chunk, slice_: pl.Expr) -> None:
        """Add rows; ``slice_`` computes the slice from the place."""
        for number, partials in split(lift(rows, self._columns, self._aggregates), slice_):
            self._put(number, self._reduced(partials))

    def reduced(self, rows: Chunk) -> Chunk:
        """Rows as partials, one per place and key; nothing is put."""
        lifted = lift(rows, self._columns, self._aggregates)
        return self._merge(lifted) if lifted.height else lifted

    def put_partials(self, partials: Chunk, slice_: pl.Expr) -> None:
        """Add what :meth:`reduced` gave, here or elsewhere."""
        for number, part in split(partials, slice_):
            self._put(number, part)

    def _reduced(self, lifted: Chunk) -> Chunk:
        if self._skip > 0:
            self._skip -= 1
            return lifted
        if lifted.height < 2:
            return lifted
        reduced = self._merge(lifted)
        if reduced.height > WORTH * lifted.height:
            self._skip = TRY_AGAIN
        return reduced

    def _put(self, slice_: int, partials: Chunk) -> None:
        if self._doubled(slice_, 2 * partials.height):
            self._fold(slice_)
        add(self._store, self._fresh, slice_, partials)

    def settle(self) -> None:
        """Fold the slices that have doubled."""
        for slice_ in list(self._store.slices(self._fresh)):
            if self._doubled(slice_):
                self._fold(slice_)

    def _doubled(self, slice_: int, least: int = 0) -> bool:
        merged, fresh = (self._store.rows_in(name, slice_) for name in (self._merged, self._fresh))
        return fresh >= max(FEWEST, merged, least)

    def _fold(self, slice_: int) -> None:
        held = self._take(slice_)
        assert held is not None
        self._store.put(self._merged, slice_, self._merge(held))

    def _merge(self, partials: Chunk) -> Chunk:
        """One partial per place and key; grouping leaves the place out where there is only one."""
        name, *others = self._keys
        place = partials[name]
        if place.min() != place.max():
            return merge(partials, self._keys, self._aggregates)
        merged = merge(partials, others, self._aggregates)
        return merged.insert_column(0, place.head(1).new_from_index(0, merged.height))

    def replace(self, slice_: int, partials: Chunk) -> None:
        """Put partials in the place of what a slice holds."""
        self.take(slice_)
        if partials.height:
            self._store.put(self._merged, slice_, partials)

    def regroup(self, slice_: pl.Expr) -> None:
        """Cut everything that is held into other slices."""
        reslice(self._store, self._raw, slice_)
        held = [chunk for each in self.slices() if (chunk := self._take(each)) is not None]
        for number, partials in split(pl.concat(held), slice_) if held else ():
            self._put(number, partials)

    def get(self, slice_: int) -> Chunk | None:
        """All partials of a slice, several per key perhaps."""
        held = [
            self._store.get(key)
            for name in (self._merged, self._fresh)
            for key in self._store.scan(name, slice_, slice_ + 1)
        ]
        return self._with_rows(held, read(self._store, self._raw, slice_, slice_ + 1))

    def take(self, slice_: int) -> Chunk | None:
        """All partials of a slice, which is empty afterwards."""
        held = self._take(slice_)
        rows = take(self._store, self._raw, slice_, slice_ + 1)
        return self._with_rows([held] if held is not None else [], rows)

    def _take(self, slice_: int) -> Chunk | None:
        """The partials of a slice; rows that are kept as they are stay."""
        held = [take(self._store, name, slice_, slice_ + 1) for name in (self._merged, self._fresh)]
        some = [chunk for chunk in held if chunk is not None]
        return pl.concat(some) if some else None

    def _with_rows(self, held: list[Chunk], rows: Chunk | None) -> Chunk | None:
        if rows is not None:
            held.append(self._merge(lift(rows, self._columns, self._aggregates)))
        return pl.concat(held) if held else None

    def rows_in(self, low: int, high: int) -> int:
        """How many partials and rows some slices hold, known without reading them."""
        return sum(
            self._store.rows_in(name, slice_)
            for name in (self._merged, self._fresh, self._raw)
            for slice_ in self._store.slices(name, low, high)
        )

    def drop(self, slice_: int) -> None:
        """Forget a slice."""
        for name in (self._merged, self._fresh, self._raw):
            for key in self._store.scan(name, slice_, slice_ + 1):
                self._store.remove(key)

    def snapshot(self) -> int:
        """What was learned about the rows."""
        return self._skip

    def restore(self, saved: int) -> None:
        """Go on with what was learned."""
        self._skip = saved

    def slices(self, low: int | None = None, high: int | None = None) -> list[int]:
        """The slices that hold something, in order."""
        names = (self._merged, self._fresh, self._raw)
        found = {slice_ for name in names for slice_ in self._store.slices(name, low, high)}
        return sorted(found)


def _columns_read(expressions: Sequence[pl.Expr]) -> list[str]:
    """The columns expressions read, each once."""
    return list(dict.fromkeys(n for each in expressions for n in each.meta.root_names()))
