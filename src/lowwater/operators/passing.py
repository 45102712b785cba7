"""Taking rows out of a store that a promise per group has passed.

Slices are stretches of time and hold rows of all groups. Below the marks the groups had before,
none of their rows is left. So only the slices from there up to the new marks are looked at, and
only those that lose a row are written again.
"""

from __future__ import annotations

import polars as pl

from lowwater.state.store import ChunkStore, read, take
from lowwater.stream.element import BEGINNING, MARK, Chunk, GroupPunctuation


def drop_passed(
    store: ChunkStore,
    name: str,
    promise: GroupPunctuation,
    ticks: pl.Expr,
    width: int,
    least: int = BEGINNING,
) -> Chunk | None:
    """Take out the rows below the mark of their group; None if there are none.

    ``ticks`` is the time slices of ``width`` go by; nothing below ``least`` is held.
    """
    return take_passed(store, name, promise.marks, ticks, width, max(promise.before, least))


def take_passed(
    store: ChunkStore, name: str, marks: Chunk, ticks: pl.Expr, width: int, low: int
) -> Chunk | None:
    """The same, where a frame says which groups have passed what and ``low`` where to begin."""
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
