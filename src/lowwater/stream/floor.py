"""Floors bound the rows that are needed; they travel against the rows (feedback punctuation).

A punctuation states which rows will not come any more; a floor states which rows are not needed any
more: *a row is not needed if one of its columns is below the floor of that column*. A floor holds
for one arc, and only rises. An operator may drop rows that its consumers do not need.

The field calls this feedback punctuation (Fernández-Moctezuma, Tufte and Li, 2009).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

import polars as pl

from lowwater.stream.element import Chunk

Floor: TypeAlias = Mapping[str, int]
"""The least ticks, by column, of rows that are needed. A row that is null in a column is not below
its floor. An empty floor: all rows are needed."""


def raised(one: Floor, two: Floor) -> dict[str, int]:
    """Return the floor of a consumer that needs no row that is below one of two floors."""
    found = dict(one)
    for name, ticks in two.items():
        found[name] = max(ticks, found.get(name, ticks))
    return found


def least(floors: Iterable[Floor]) -> dict[str, int]:
    """Return the floor of a producer: all of its consumers agree that rows below are not needed."""
    first, *others = floors
    return {
        name: min(ticks, *(each[name] for each in others)) if others else ticks
        for name, ticks in first.items()
        if all(name in each for each in others)
    }


def is_needed(floor: Floor, columns: Iterable[str]) -> pl.Expr | None:
    """Return the condition that a row with these columns is needed; None if all such rows are."""
    parts = [
        (pl.col(name).to_physical().cast(pl.Int64) >= floor[name]).fill_null(True)
        for name in columns
        if name in floor
    ]
    return pl.all_horizontal(parts) if parts else None


def needed_rows(chunk: Chunk, floor: Floor) -> Chunk:
    """Return the rows of a chunk that are needed."""
    condition = is_needed(floor, chunk.columns) if floor else None
    return chunk if condition is None else chunk.filter(condition)
