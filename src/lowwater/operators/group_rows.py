"""Removal of stored rows that are below the marks of their groups.

A slice of a store is a stretch of time with rows of all groups. None of the rows of some groups is
left below the marks that these groups had before. So only the slices from there up to the new marks
are read, and only those that lose a row are written again.
"""

from __future__ import annotations

import polars as pl

from lowwater.state.store import ChunkStore, read, take
from lowwater.stream.element import BEGINNING, MARK, Chunk, GroupPunctuation


def take_promised_rows(
    store: ChunkStore,
    name: str,
    promise: GroupPunctuation,
    ticks: pl.Expr,
    width: int,
    least: int = BEGINNING,
) -> Chunk | None:
    """Remove and return the rows below their group's mark in a promise; None if there are none.

    ``name`` is that of the rows in the store. ``ticks`` is the expression of the time that slices
    of ``width`` ticks follow. The store has no rows below ``least``.
    """
    return take_group_rows(store, name, promise.marks, ticks, width, max(promise.before, least))


def take_group_rows(
    store: ChunkStore, name: str, marks: Chunk, ticks: pl.Expr, width: int, low: int
) -> Chunk | None:
    """Remove and return the rows below their group's mark; None if there are none.

    ``marks`` has the mark of each group. The store has no rows of these groups below ``low``.
    """
    high = int(marks[MARK].max())  # type: ignore[arg-type]
    first = None if low == BEGINNING else low // width
    held = read(store, name, first, (high - 1) // width + 1)
    if held is None:
        return None
    keys = [column for column in marks.columns if column != MARK]
    gone = _marked(held, marks, keys).filter(ticks < pl.col(MARK)).drop(MARK)
    if not gone.height:
        return None
    for slice_ in gone.select((ticks // width).unique()).to_series().to_list():
        rows = take(store, name, slice_, slice_ + 1)
        assert rows is not None
        passed = (ticks < pl.col(MARK)).fill_null(False)
        stay = _marked(rows, marks, keys, "left").filter(~passed).drop(MARK)
        if stay.height:
            store.put(name, slice_, stay)
    return gone


def _marked(rows: Chunk, marks: Chunk, keys: list[str], how: str = "inner") -> Chunk:
    return rows.join(marks, on=keys, how=how, maintain_order="left")  # type: ignore[arg-type]
