"""Rows of a join for the account of what it lost: their keys as hashes, and which were late."""

from __future__ import annotations

import polars as pl

from lowwater.joins.multi_shape import MultiShape
from lowwater.joins.oblivious.losses import Keys, Losses, hashes
from lowwater.joins.oblivious.places import Places
from lowwater.joins.oblivious.records import Ticks
from lowwater.stream.element import Chunk


class Accounts:
    """Counts rows of all inputs as they are joined or given up."""

    def __init__(self, shape: MultiShape, places: Places, losses: Losses):
        self._shape, self._places, self._losses = shape, places, losses

    def take(self, port: int, rows: Chunk, gone: int, made: pl.Series | None = None) -> None:
        """Rows were joined, or given up. Rows that others had below ``gone`` were dropped;
        ``made`` has for each match the number of the row."""
        keys, ticks, rows_that_match = self._keyed(port, rows)
        found = keys[:0] if made is None else keys[made.to_numpy()]
        if rows_that_match is not None:
            keys, ticks = keys[rows_that_match], ticks[rows_that_match]
        self._losses.take(port, keys, ticks, ticks < gone, found)

    def put_back(self, port: int, rows: Chunk) -> None:
        """Rows that were joined and had nothing to meet will be joined again."""
        keys, ticks, rows_that_match = self._keyed(port, rows)
        own = slice(None) if rows_that_match is None else rows_that_match
        self._losses.put_back(port, keys[own], ticks[own])

    def _keyed(self, port: int, rows: Chunk) -> tuple[Keys, Ticks, Ticks | None]:
        """Hashes of what rows are joined on, their ticks, and the rows whose key has no null;
        None if that is all."""
        ticks = self._places.ticks(port, rows)
        if len(self._shape.on) == 1:
            return hashes(ticks), ticks, None
        keys = self._shape.keys(port, rows)
        whole = ~keys.select(pl.any_horizontal(pl.all().is_null())).to_series().to_numpy()
        return keys.hash_rows(seed=0).to_numpy(), ticks, whole.nonzero()[0]
