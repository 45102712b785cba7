"""Joins of update streams: the newest row of a key of one with that of the other (UpStream §3.2).

Without a window (:class:`NewestJoin`) the newest row of each key and side is kept, and a new row is
joined with the newest of its key on the other side. Within a window a band join finds all pairs,
and :class:`NewestFilter` passes those that are newer than the last result of their key.

A row is *newer* than another if its time is greater. The result of a join has several times: the
greatest is compared first, then the next.

Without a window there is no linear punctuation on pairs: the partner of a row may be as old as its
key has been without updates.

Invariants: the row kept of a key and side is the newest that arrived; results of a key leave in the
order of their times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import polars as pl

from lowwater.operators.kernel import Kernel, Request
from lowwater.state.keyed_rows import KeyedRows
from lowwater.state.store import ChunkStore
from lowwater.stream.element import (
    BEGINNING,
    END_OF_TIME,
    ENDED,
    MARK,
    Chunk,
    Element,
    GroupPunctuation,
    Punctuation,
)

ROWS = ("rows0", "rows1")
SHOWN = "shown"
ALL = "__all"
"""The key column of rows without key columns: all of them update one thing."""
BEFORE = "_before"
SINCE, UNTIL = ("__since0", "__since1"), ("__until0", "__until1")
"""The columns of the ticks from which, and until which, a row of a side can have a partner."""
OVER = ("__over0", "__over1")
"""The columns that are true for the kept rows of a side whose keys have ended."""
MANY = 64
"""Rows that have ended are dropped when there are more than this and twice those left before."""


def newness(stamps: Sequence[str]) -> list[pl.Expr]:
    """Return columns with the times of a row, from the greatest to the least."""
    if len(stamps) == 1:
        return [pl.col(stamps[0]).alias(_name(0))]
    falling = pl.concat_list(stamps).list.sort(descending=True)
    return [falling.list.get(at).alias(_name(at)) for at in range(len(stamps))]


def _name(at: int) -> str:
    return f"__new{at}"


def _names(stamps: Sequence[str]) -> list[str]:
    return [_name(at) for at in range(len(stamps))]


def _newer(
    rows: Chunk, held: Chunk | None, keys: Sequence[str], news: Sequence[str], or_equal: bool
) -> Chunk:
    """Return the rows that are newer than the one held of their key or, with ``or_equal``, as
    new."""
    if held is None:
        return rows
    before = held.select(*keys, *(pl.col(name).alias(name + BEFORE) for name in news))
    later = pl.lit(or_equal)
    for name in reversed(news):
        one, two = pl.col(name), pl.col(name + BEFORE)
        later = (one > two) | ((one == two) & later)
    both = rows.join(before, on=list(keys), how="left", nulls_equal=True, maintain_order="left")
    known = pl.col(news[0] + BEFORE).is_not_null()
    return both.filter(later | ~known).select(rows.columns)


@dataclass(frozen=True)
class NewestShape:
    """The keys, times and condition by which two update streams are joined, and the output."""

    keys: tuple[tuple[str, ...], tuple[str, ...]]
    """The update key of each side. Here and below, columns of the right have the names they have
    inside the join."""
    stamps: tuple[tuple[str, ...], tuple[str, ...]]
    """The columns with the times of the rows of each side."""
    right_names: dict[str, str]
    """The name inside the join of each column of the right input."""
    output: tuple[str, ...]
    """The columns of the results."""
    check: pl.Expr | None
    """A condition on both rows; None if there is none."""
    lives: tuple[tuple[int | None, ...], tuple[int | None, ...]] = ((), ())
    """Number of ticks that a row lives after each of its times; None for ever."""
    merged: Mapping[str, str] = field(default_factory=dict)
    """The name in the output of each key column, by its name inside the join."""
    deletes: bool = False
    """True if keys of a side may be deleted."""

    @property
    def ends(self) -> bool:
        """True if rows of a side end."""
        return self.deletes or any(life is not None for side in self.lives for life in side)

    def outside(self, side: int, name: str) -> str:
        """Return the output name of a column of an input."""
        inside = self.right_names[name] if side else name
        return self.merged.get(inside, inside)

    def names(self, side: int) -> list[str]:
        """Return the key columns of a side, always at least one."""
        return list(self.keys[side]) or [ALL + str(side)]

    def prepared(self, side: int, chunk: Chunk) -> Chunk:
        """Return the rows of a side that can have a partner, the newest last, with their times as
        columns."""
        rows = chunk.rename(self.right_names) if side else chunk
        rows = rows.drop_nulls(list(self.keys[side])) if self.keys[side] else rows
        if not self.keys[side]:
            rows = rows.with_columns(pl.lit(0, dtype=pl.Int64).alias(ALL + str(side)))
        rows = rows.with_columns(*newness(self.stamps[side]), *self._life(side))
        return rows.sort(_names(self.stamps[side]), maintain_order=True)

    def _life(self, side: int) -> list[pl.Expr]:
        """Return columns with the ticks between which a row can have a partner and whether its key
        has ended, where rows end."""
        if not self.ends:
            return []
        ticks = [pl.col(name).to_physical() for name in self.stamps[side]]
        ends = [
            each + life
            for each, life in zip(ticks, self.lives[side], strict=True)
            if life is not None
        ]
        until = pl.min_horizontal(ends) if ends else pl.lit(END_OF_TIME, dtype=pl.Int64)
        since = pl.max_horizontal(ticks).alias(SINCE[side])
        return [since, until.alias(UNTIL[side]), pl.lit(value=False).alias(OVER[side])]

    def pairs(self, left: Chunk, right: Chunk, port: int) -> Chunk:
        """Return the results from rows of both sides, in the order of those of ``port``."""
        found = left.join(
            right,
            left_on=self.names(0),
            right_on=self.names(1),
            coalesce=False,
            maintain_order="right" if port else "left",
        )
        if self.ends:  # both live at the time of the later one
            found = found.filter(pl.max_horizontal(SINCE) < pl.min_horizontal(UNTIL))
        met = found if self.check is None else found.filter(self.check)
        return met.select(self.output)


class NewestJoin(Kernel):
    """Joins the newest row of each key of one input with that of the other."""

    rule: ClassVar[str] = "joint on both times: the partner of a row may be of any time"

    def __init__(self, store: ChunkStore, shape: NewestShape):
        super().__init__(store, 2)
        self._shape = shape
        self._rows = [KeyedRows(store, ROWS[side], shape.names(side)) for side in (0, 1)]
        self._bounds = [BEGINNING, BEGINNING]
        self._promised: list[dict[str, int]] = [{}, {}]
        self._emitted: dict[tuple[str, ...], tuple[int, ...]] = {}
        self._left = [0, 0]
        """Number of rows of each side after those that have ended were last dropped."""

    def on_chunk(self, port: int, chunk: Chunk) -> Sequence[Element]:
        """Join rows with the newest of the other side, and keep the newest of them."""
        shape, names = self._shape, self._shape.names(port)
        rows = shape.prepared(port, chunk)
        if rows.height:
            held = self._rows[port].look_up(rows.select(names).unique())
            rows = _newer(rows, held, names, _names(shape.stamps[port]), or_equal=True)
        if not rows.height:
            return []
        newest = rows.unique(names, keep="last", maintain_order=True)
        self._rows[port].replace(newest.select(names), newest)
        others = self._others(1 - port, newest.select(names))
        if others is None:
            return []
        self.comparisons += rows.height
        rows = rows.drop(_names(shape.stamps[port]))
        pairs = shape.pairs(*((rows, others) if port == 0 else (others, rows)), port)
        return [pairs, *self._over(port, others, newest)] if pairs.height else []

    def _over(self, port: int, others: Chunk, newest: Chunk) -> list[Element]:
        """Return the report of the results that left with rows of ended keys of the other side."""
        names = self._shape.names(port)
        if not self._shape.ends or not others[OVER[1 - port]].any():
            return []
        over = others.filter(pl.col(OVER[1 - port]))
        theirs = self._shape.names(1 - port)
        both = over.join(newest, left_on=theirs, right_on=names, coalesce=False)
        ends = pl.max_horizontal(UNTIL[1 - port], pl.col(SINCE[port]) + 1).alias(MARK)
        return [self._reported(both.select(*names, ends))]

    def _reported(self, ends: Chunk) -> GroupPunctuation:
        """Return the report of keys of results; they are in the first columns."""
        ends.columns = [*self._shape.names(0), MARK]
        return GroupPunctuation(ENDED, ends.select(*self._shape.keys[0], MARK))

    def _others(self, side: int, keys: Chunk) -> Chunk | None:
        """Return the rows kept of a side, for keys of the other."""
        keys.columns = self._shape.names(side)
        held = self._rows[side].look_up(keys)
        return None if held is None else held.drop(_names(self._shape.stamps[side]))

    def on_punctuation(self, port: int, promise: Punctuation) -> Sequence[Element]:
        """Drop rows of the other side that no row to come can join; return joint punctuation.

        A result to come has a row to come of at least one side, so it keeps the promise of one.
        """
        shape = self._shape
        inside = {shape.right_names[name] if port else name for name in promise.attributes}
        bound = min(promise.values)
        if not inside <= set(shape.stamps[port]) or bound <= self._bounds[port]:
            return []
        self._bounds[port] = bound
        self._promised[port] = {shape.outside(port, name): at for name, at in promise.bounds}
        self._drop(1 - port, bound)
        return self._punctuate()

    def _drop(self, side: int, bound: int) -> None:
        rows = self._rows[side]
        if self._shape.ends and rows.rows > 2 * self._left[side] + MANY:
            rows.keep(pl.col(UNTIL[side]) > bound)
            self._left[side] = rows.rows

    def _punctuate(self) -> list[Element]:
        one, two = self._promised
        if not one or not two:
            return []
        bounds = one | {name: min(mark, one.get(name, mark)) for name, mark in two.items()}
        promise = Punctuation.jointly(bounds)
        if not set(bounds) <= set(self._shape.output):
            return []
        if not promise.goes_beyond(self._emitted.get(promise.attributes)):
            return []
        self._emitted[promise.attributes] = promise.values
        return [promise]

    def on_group_punctuation(self, port: int, promise: GroupPunctuation) -> Sequence[Element]:
        """End the rows of keys that have ended, and report the keys of results that end with them.

        A result ends when one of its rows does, and not before the newer of both.
        """
        shape = self._shape
        if promise.attribute != ENDED:
            return []
        new = {name: shape.right_names[name] if port else name for name in promise.keys}
        if set(new.values()) != set(shape.keys[port]):
            return []
        if not new:
            return self._report(port, promise.marks.with_columns(pl.lit(0).alias(ALL + str(port))))
        return self._report(port, promise.marks.rename(new))

    def _report(self, port: int, marks: Chunk) -> list[Element]:
        """End the rows of a side by the marks of their keys; return the report of the results."""
        shape = self._shape
        names = shape.names(port)
        ends = marks.select(*names, MARK)
        held = self._rows[port].look_up(marks.select(names)) if shape.ends else None
        if held is not None:
            newest = pl.col(_name(0)).to_physical()
            dead = held.join(marks, on=names, how="inner").filter(newest < pl.col(MARK))
            end = pl.min_horizontal(UNTIL[port], MARK).alias(UNTIL[port])
            over = pl.lit(value=True).alias(OVER[port])
            dead = dead.with_columns(end, over).select(held.columns)
            self._rows[port].replace(dead.select(names), dead)
            keys = dead.select(names)
            keys.columns = shape.names(1 - port)
            others = self._rows[1 - port].look_up(keys) if keys.height else None
            if others is not None:  # a result is as new as the newer of both rows
                met = others.select(*shape.names(1 - port), (newest + 1).alias(MARK))
                met.columns = ends.columns
                ends = pl.concat([ends, met]).group_by(names, maintain_order=True).max()
        return [self._reported(ends)]

    def needs(self, attribute: str, mark: int) -> Sequence[Request]:
        """Request nothing: no mark of an input leads to linear punctuation."""
        return []

    def close_port(self, port: int) -> Sequence[Element]:
        """Drop all rows once both inputs have ended."""
        if not self._open:
            for each in self._rows:
                each.take()
        return []

    def snapshot(self) -> dict[str, Any]:
        """Return the snapshot."""
        return super().snapshot() | {
            "rows": [each.snapshot() for each in self._rows],
            "bounds": (list(self._bounds), self._promised, self._emitted, list(self._left)),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Set the state to that of a snapshot."""
        super().restore(saved)
        for each, state in zip(self._rows, saved["rows"], strict=True):
            each.restore(state)
        bounds, promised, emitted, left = saved["bounds"]
        self._bounds, self._left = list(bounds), list(left)
        self._promised, self._emitted = [dict(each) for each in promised], dict(emitted)


class NewestFilter(Kernel):
    """Passes results that are newer than the last one of their key, one for each time.

    The time of a result is the greatest of the times in it; of several results with the same time,
    the one with the newest partner passes. The times of the last result of a key are kept until no
    older one can arrive.
    """

    rule: ClassVar[str] = "promises pass through"

    def __init__(self, store: ChunkStore, key: Sequence[str], stamps: Sequence[str]):
        super().__init__(store)
        self._key, self._stamps = list(key) or [ALL], list(stamps)
        self._shown = KeyedRows(store, SHOWN, self._key)
        self._bound = BEGINNING
        self._left = 0

    def on_punctuation(self, port: int, promise: Punctuation) -> Sequence[Element]:
        """Drop keys of which no result older than the last can arrive; pass the punctuation on."""
        if set(promise.attributes) <= set(self._stamps):
            self._bound = max(self._bound, min(promise.values))
            if self._shown.rows > 2 * self._left + MANY:
                self._shown.keep(pl.col(_name(0)).to_physical() >= self._bound)
                self._left = self._shown.rows
        return [promise]

    def on_chunk(self, port: int, chunk: Chunk) -> Sequence[Element]:
        """Return the results that are newer than the last of their key."""
        news = _names(self._stamps)
        rows = chunk.with_columns(newness(self._stamps))
        if self._key == [ALL]:
            rows = rows.with_columns(pl.lit(0, dtype=pl.Int64).alias(ALL))
        held = self._shown.look_up(rows.select(self._key).unique())
        rows = _newer(rows, held, self._key, news, or_equal=False)
        if not rows.height:
            return []
        rows = rows.sort(news, maintain_order=True)
        rows = rows.unique([*self._key, news[0]], keep="last", maintain_order=True)
        newest = rows.select(*self._key, *news).unique(self._key, keep="last")
        self._shown.replace(newest.select(self._key), newest)
        return [rows.select(chunk.columns)]

    def on_group_punctuation(self, port: int, promise: GroupPunctuation) -> Sequence[Element]:
        """Pass the punctuation on: it holds for all results, so also for those that pass."""
        return [promise]

    def needs_any(self, bounds: Sequence[tuple[str, int]]) -> Sequence[Request]:
        """Request the same promise of the input."""
        return [Request.any_of(0, bounds)]

    def close_port(self, port: int) -> Sequence[Element]:
        """Drop all keys."""
        self._shown.take()
        return []

    def snapshot(self) -> dict[str, Any]:
        """Return the snapshot."""
        return super().snapshot() | {
            "shown": self._shown.snapshot(),
            "bound": (self._bound, self._left),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Set the state to that of a snapshot."""
        super().restore(saved)
        self._shown.restore(saved["shown"])
        self._bound, self._left = saved["bound"]
