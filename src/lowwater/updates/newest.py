"""Joins of update streams: the newest row of a key of one with that of the other (UpStream §3.2).

Without a window (:class:`NewestJoin`) one row a key and side is kept, the newest; a new one of
either side is joined with what the other shows. Within a window all pairs are found by a join of
times near each other, and :class:`Newest` lets those out that are newer than what left of their
key.

What is *newer* goes by the times of a row: the greatest, then, where a row has several (it is the
result of a join itself), the next.

No promise can be made of pairs without a window: what a row is joined with may be as old as its key
has been quiet.

Invariants: of a key and side one row is kept, and none newer has come; results of a key leave in
the order of their times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from lowwater.operators.kernel import Ask, Kernel
from lowwater.state.by_key import ByKey
from lowwater.state.store import ChunkStore
from lowwater.stream.element import Chunk, Element, GroupPunctuation, Punctuation

ROWS = ("rows0", "rows1")
SHOWN = "shown"
ALL = "__all"
"""The key of rows that have none: they are all updates of one thing."""
BEFORE = "_before"


def newness(stamps: Sequence[str]) -> list[pl.Expr]:
    """The times of a row from the greatest to the least, as columns of their own."""
    if len(stamps) == 1:
        return [pl.col(stamps[0]).alias(_name(0))]
    falling = pl.concat_list(stamps).list.sort(descending=True)
    return [falling.list.get(at).alias(_name(at)) for at in range(len(stamps))]


def _name(at: int) -> str:
    return f"__new{at}"


def _names(stamps: Sequence[str]) -> list[str]:
    return [_name(at) for at in range(len(stamps))]


def _not_older(
    rows: Chunk, held: Chunk | None, keys: Sequence[str], news: Sequence[str], or_equal: bool
) -> Chunk:
    """The rows that are newer than what is held of their key."""
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
    """What two update streams are joined by, and what comes out."""

    keys: tuple[tuple[str, ...], tuple[str, ...]]
    """The update key of each side; columns of the right have their inside names, here and below."""
    stamps: tuple[tuple[str, ...], tuple[str, ...]]
    """The times of each side's rows."""
    right_names: dict[str, str]
    """Right column to the name it has inside the join."""
    output: tuple[str, ...]
    check: pl.Expr | None
    """A condition on both rows."""

    def names(self, side: int) -> list[str]:
        """The key columns of a side, of which there is always one."""
        return list(self.keys[side]) or [ALL + str(side)]

    def prepared(self, side: int, chunk: Chunk) -> Chunk:
        """Rows of a side that can have a partner, the newest last, with how new each is."""
        rows = chunk.rename(self.right_names) if side else chunk
        rows = rows.drop_nulls(list(self.keys[side])) if self.keys[side] else rows
        if not self.keys[side]:
            rows = rows.with_columns(pl.lit(0, dtype=pl.Int64).alias(ALL + str(side)))
        rows = rows.with_columns(newness(self.stamps[side]))
        return rows.sort(_names(self.stamps[side]), maintain_order=True)

    def pairs(self, left: Chunk, right: Chunk, port: int) -> Chunk:
        """Rows of both sides by key, in the order of those of a port, as they come out."""
        found = left.join(
            right,
            left_on=self.names(0),
            right_on=self.names(1),
            coalesce=False,
            maintain_order="right" if port else "left",
        )
        met = found if self.check is None else found.filter(self.check)
        return met.select(self.output)


class NewestJoin(Kernel):
    """Joins the newest row of each key of one input with that of the other."""

    rule: ClassVar[str] = "none: what a row is joined with may be of any time"

    def __init__(self, store: ChunkStore, shape: NewestShape):
        super().__init__(store, 2)
        self._shape = shape
        self._rows = [ByKey(store, ROWS[side], shape.names(side)) for side in (0, 1)]

    def on_chunk(self, port: int, chunk: Chunk) -> Sequence[Element]:
        """Join rows with the newest of the other side, and keep the newest of them."""
        shape, names = self._shape, self._shape.names(port)
        rows = shape.prepared(port, chunk)
        if rows.height:
            held = self._rows[port].look_up(rows.select(names).unique())
            rows = _not_older(rows, held, names, _names(shape.stamps[port]), or_equal=True)
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
        return [pairs] if pairs.height else []

    def _others(self, side: int, keys: Chunk) -> Chunk | None:
        """What a side shows of keys of the other."""
        keys.columns = self._shape.names(side)
        held = self._rows[side].look_up(keys)
        return None if held is None else held.drop(_names(self._shape.stamps[side]))

    def on_punctuation(self, port: int, promise: Punctuation) -> Sequence[Element]:
        """Nothing follows."""
        return []

    def needs(self, attribute: str, mark: int) -> Sequence[Ask]:
        """No promise is made, whatever the inputs promise."""
        return []

    def closing(self, port: int) -> Sequence[Element]:
        """What an input showed last counts until the other has ended, too."""
        if not self._open:
            for each in self._rows:
                each.take()
        return []

    def snapshot(self) -> dict[str, Any]:
        """How rows are kept."""
        return super().snapshot() | {"rows": [each.snapshot() for each in self._rows]}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        super().restore(saved)
        for each, state in zip(self._rows, saved["rows"], strict=True):
            each.restore(state)


class Newest(Kernel):
    """Lets results out that are newer than what left of their key, one of each time.

    The time of a result is the greatest of the times in it; of several with the same one, that
    with the newest partner is let out. What left last is remembered, of each key.
    """

    rule: ClassVar[str] = "promises pass through"

    def __init__(self, store: ChunkStore, key: Sequence[str], stamps: Sequence[str]):
        super().__init__(store)
        self._key, self._stamps = list(key) or [ALL], list(stamps)
        self._shown = ByKey(store, SHOWN, self._key)

    def on_chunk(self, port: int, chunk: Chunk) -> Sequence[Element]:
        """Leave out what is older than what left."""
        news = _names(self._stamps)
        rows = chunk.with_columns(newness(self._stamps))
        if self._key == [ALL]:
            rows = rows.with_columns(pl.lit(0, dtype=pl.Int64).alias(ALL))
        held = self._shown.look_up(rows.select(self._key).unique())
        rows = _not_older(rows, held, self._key, news, or_equal=False)
        if not rows.height:
            return []
        rows = rows.sort(news, maintain_order=True)
        rows = rows.unique([*self._key, news[0]], keep="last", maintain_order=True)
        newest = rows.select(*self._key, *news).unique(self._key, keep="last")
        self._shown.replace(newest.select(self._key), newest)
        return [rows.select(chunk.columns)]

    def on_group_punctuation(self, port: int, promise: GroupPunctuation) -> Sequence[Element]:
        """What holds of all results holds of those that are let out."""
        return [promise]

    def jointly_needs(self, bounds: Sequence[tuple[str, int]]) -> Sequence[Ask]:
        """The same of the input."""
        return [Ask.jointly(0, bounds)]

    def closing(self, port: int) -> Sequence[Element]:
        """Forget what left."""
        self._shown.take()
        return []

    def snapshot(self) -> dict[str, Any]:
        """How what left is kept."""
        return super().snapshot() | {"shown": self._shown.snapshot()}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        super().restore(saved)
        self._shown.restore(saved["shown"])
