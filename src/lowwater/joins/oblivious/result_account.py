"""The keys by which the results of a window-oblivious join are counted (``lost_results``).

The key of a row is the hash of the columns that must be equal, the time among them. In a join of
near times, rows match others in a *stretch* of time. Then a key has one number for each time in
its *block*, whose length is a power of two: the upper bits are the hash of key and block, the lower
bits the place in the block. So the rows of a stretch have neighbouring numbers, in one or two.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from lowwater.joins.multi_shape import MultiShape
from lowwater.joins.oblivious.disorder import Ticks
from lowwater.joins.oblivious.lost_results import Keys, LostResults, Near, hashes
from lowwater.joins.oblivious.stored_rows import StoredRows
from lowwater.stream.element import Chunk

BLOCKS = 8
"""Least number of stretches of partners that a block is long."""


class ResultAccount:
    """Counts the rows of all inputs as they are joined or given up, by the hash of their key."""

    def __init__(self, shape: MultiShape, stored: StoredRows, losses: LostResults):
        self._shape, self._stored, self._losses = shape, stored, losses
        self._bits = 0  # of the place in a block, in a join of near times
        if any(shape.windows):
            self._bits = max(1, (BLOCKS * sum(shape.windows)).bit_length())

    def take(self, port: int, rows: Chunk, gone: int, made: pl.Series | None = None) -> None:
        """Count rows of an input that were joined or given up.

        Rows below ``gone`` are late, because rows of other inputs below it were dropped. ``made``
        has the index of the row of each match; None if the rows were not joined.
        """
        known = self._keyed(port, rows)
        made_ = known.keys[:0] if made is None else known.keys[made.to_numpy()]
        late = known.times < gone
        own = known.rows_that_match
        near = None
        if self._bits:
            near = [(a[own], b[own], c[own]) for a, b, c in self._near(port, known)]
        self._losses.take(port, known.keys[own], known.ticks[own], late[own], made_, near)

    def put_back(self, port: int, rows: Chunk) -> None:
        """Subtract joined rows that matched nothing from the counts; they will be joined again."""
        known = self._keyed(port, rows)
        own = known.rows_that_match
        self._losses.put_back(port, known.keys[own], known.ticks[own])

    def tell(self, port: int, rows: Chunk) -> None:
        """Count rows of an input that are told as unmatched."""
        if rows.height:
            known = self._keyed(port, rows)
            own = known.rows_that_match
            self._losses.tell(port, known.keys[own], known.ticks[own])

    def _keyed(self, port: int, rows: Chunk) -> _Keyed:
        """Return the keys of rows."""
        ticks = self._stored.ticks(port, rows)
        if len(self._shape.on) == 1 and not self._bits:
            return _Keyed(hashes(ticks), ticks, ticks)
        keys = self._shape.keys(port, rows)
        hashed, own = np.zeros(len(ticks), dtype=np.uint64), np.arange(len(ticks))
        if keys.width:
            whole = ~keys.select(pl.any_horizontal(pl.all().is_null())).to_series().to_numpy()
            hashed, own = keys.hash_rows(seed=0).to_numpy(), whole.nonzero()[0]
        if not self._bits:
            return _Keyed(hashed, ticks, ticks, own)
        return _Keyed(self._numbers(hashed, ticks), self._starts(ticks), ticks, own, hashed)

    # ---- near times ------------------------------------------------------------------------

    def _starts(self, ticks: Ticks) -> Ticks:
        """Return the first tick of the block of each row."""
        return ticks >> self._bits << self._bits

    def _numbers(self, hashed: Keys, ticks: Ticks) -> Keys:
        """Return the number of each key at a time."""
        bits = np.uint64(self._bits)
        block = hashes(hashed ^ hashes(ticks >> self._bits)) >> bits << bits
        place = (ticks - self._starts(ticks)).astype(np.uint64)
        numbers: Keys = block | place
        return numbers

    def _near(self, port: int, known: _Keyed) -> Near:
        """Return the stretches of partners of rows: the part in the first block, and the rest."""
        windows = self._shape.windows
        low, high = known.times - windows[1 - port], known.times + windows[port]
        edge = np.minimum(high, self._starts(low) + (1 << self._bits) - 1)
        rest = np.maximum(self._starts(high), edge + 1)
        after = np.minimum(rest, high)  # an empty rest is in the block of the end
        first = self._numbers(known.hashed, low), self._numbers(known.hashed, edge)
        second = self._numbers(known.hashed, after), self._numbers(known.hashed, high)
        none = rest > high
        second[0][none] += np.uint64(1)
        return [(*first, self._starts(low)), (*second, self._starts(high))]


@dataclass(frozen=True)
class _Keyed:
    """The keys of rows of an input."""

    keys: Keys
    ticks: Ticks
    """The ticks by which a key is placed on a level."""
    times: Ticks
    """The ticks of the rows."""
    rows_that_match: Any = field(default_factory=lambda: slice(None))
    """The rows whose key has no null."""
    hashed: Keys = field(default_factory=lambda: np.empty(0, dtype=np.uint64))
    """The hash of each key without its time."""
