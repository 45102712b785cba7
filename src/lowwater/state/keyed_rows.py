"""Rows by key, in slices by the hash of the key.

The number of slices grows when there are more than ``ROWS_PER_SLICE`` rows for each. Only the
slices of the keys concerned are read to look rows up or to replace them.

Invariant: a row is in the slice of its key's hash, whatever the number of slices.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import xor
from typing import Any

import polars as pl

from lowwater.state.store import ChunkStore, read, split, take
from lowwater.stream.element import Chunk

ROWS_PER_SLICE = 4_096
"""Average number of rows in a slice above which the number of slices grows."""
SEED = 31
"""The seed of the hash, so that slices are independent of buckets and of other hashes of keys."""


class KeyedRows:
    """The rows under a name in a store, by the values of the key columns; null is a value."""

    def __init__(self, store: ChunkStore, name: str, keys: Sequence[str]):
        self._store, self._name, self._keys = store, name, list(keys)
        self._slices = 1
        self._rows = 0

    @property
    def rows(self) -> int:
        """Number of rows held."""
        return self._rows

    def keep(self, condition: pl.Expr) -> None:
        """Drop all rows but those for which a condition is true; this reads all rows."""
        held = self.take()
        kept = None if held is None else held.filter(condition)
        if kept is not None and kept.height:
            self._put(kept)

    def look_up(self, keys: Chunk) -> Chunk | None:
        """Return the rows that have one of the keys; None if there are none."""
        held = self._near(keys)
        if held is None:
            return None
        found = held.join(keys, on=self._keys, how="semi", nulls_equal=True)
        return found if found.height else None

    def replace(self, keys: Chunk, rows: Chunk | None) -> None:
        """Replace all rows that have one of the keys by ``rows``, whose keys are among them."""
        numbers = self._numbers(keys)
        near = [taken for number in numbers if (taken := self._take(number)) is not None]
        parts = [] if rows is None or not rows.height else [rows]
        if near:
            held = pl.concat(near)
            rest = held.join(keys, on=self._keys, how="anti", nulls_equal=True)
            self._rows -= held.height
            parts += [rest] if rest.height else []
        if parts:
            self._put(pl.concat(parts))

    def take(self) -> Chunk | None:
        """Remove and return all rows; None if there are none."""
        self._rows = 0
        return take(self._store, self._name)

    def _put(self, rows: Chunk) -> None:
        self._rows += rows.height
        if self._rows > self._slices * ROWS_PER_SLICE:
            held = take(self._store, self._name)
            rows = rows if held is None else pl.concat([rows, held])
            while self._rows > self._slices * ROWS_PER_SLICE:
                self._slices *= 2
            self._slices *= 2
        for number, part in split(rows, self._slice(rows)):
            self._store.put(self._name, number, part)

    def _near(self, keys: Chunk) -> Chunk | None:
        found = (read(self._store, self._name, each, each + 1) for each in self._numbers(keys))
        parts = [part for part in found if part is not None]
        return pl.concat(parts) if parts else None

    def _take(self, number: int) -> Chunk | None:
        return take(self._store, self._name, number, number + 1)

    def _numbers(self, keys: Chunk) -> list[int]:
        if self._slices == 1:
            return [0]
        numbers: list[int] = keys.select(self._slice(keys).unique()).to_series().to_list()
        return numbers

    def _slice(self, rows: Chunk) -> pl.Expr:
        if self._slices == 1:
            return pl.lit(0, dtype=pl.Int64)
        return (hash_of(rows.schema, self._keys, SEED) % self._slices).cast(pl.Int64)

    def snapshot(self) -> tuple[int, int]:
        """Return the number of slices and of rows."""
        return self._slices, self._rows

    def restore(self, saved: Any) -> None:
        """Set the state to that of a snapshot."""
        self._slices, self._rows = saved


def hash_of(schema: Mapping[str, pl.DataType], keys: Iterable[str], seed: int) -> pl.Expr:
    """Return the hash of some key columns, which is the same in every process."""
    hashes = (_hashable(pl.col(n), schema[n]).hash(seed + at) for at, n in enumerate(keys))
    return reduce(xor, hashes)


def _hashable(column: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """Return a column whose hash is the same in every process, and the same for 0.0 and -0.0."""
    if isinstance(dtype, pl.Categorical | pl.Enum):
        return column.cast(pl.String)
    return column + 0.0 if dtype.is_float() else column
