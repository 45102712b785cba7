"""The table of the newest answer of each key, for pull queries (UpStream Fig. 1).

Answers of a key leave in the order of their times, so the last one that left is the newest. A key
whose end is reported, because it was deleted or has expired, has no answer until another one
leaves. Answers are gathered as they leave and reduced when there are many, so that adding one costs
little and a table holds at most about two rows for each key.

Invariant: the table holds, for each key, the rows of the last answer that left after the last
report of its end, and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from lowwater.stream.element import ENDED, MARK, Chunk, GroupPunctuation
from lowwater.updates.options import Key

NEWEST, SHOWN, AT = "__newest", "__shown", "__at"
"""Columns beside an answer: its greatest time in ticks, the clock time at which it left in
nanoseconds, and the number of the element it came in."""
FEW_ROWS, FEW_CHUNKS = 4_096, 256
"""The table is reduced when more rows than this and twice those of the keys, or more chunks, were
gathered."""


@dataclass(frozen=True)
class QueueKeys:
    """A queue of updates behind the answers of a query, and how its keys name theirs."""

    operator: int
    """Index of the operator in the plan."""
    order: tuple[int, ...]
    """For each column of the answers' update key, the number of the column in the queue's key."""

    def key_of(self, key: Key | None) -> Key | None:
        """Return the key in the queue of a key of answers; None for None."""
        if key is None:
            return None
        by_place = dict(zip(self.order, key, strict=True))
        return tuple(by_place[at] for at in range(len(key)))


@dataclass(frozen=True)
class AnswerShape:
    """The columns of the answers of a query that ends with an update key."""

    schema: Mapping[str, pl.DataType]
    update_key: tuple[str, ...]
    """The columns of the update key: a newer answer replaces all rows of an older one."""
    key: tuple[str, ...]
    """The columns that name a row: the update key, or the groups of a window, which may be more."""
    stamps: tuple[str, ...]
    """The columns with the times of an answer; empty if none is in it."""
    queues: tuple[QueueKeys, ...]


class AnswerTable:
    """The newest answer of each key."""

    def __init__(self, shape: AnswerShape):
        self._shape = shape
        own = dict.fromkeys((NEWEST, SHOWN, AT), pl.Int64())
        self._rows = pl.DataFrame(schema={**shape.schema, **own})
        self._new: list[Chunk] = []
        self._ended: list[tuple[int, pl.DataFrame]] = []
        self._at = self._count = 0

    # ---- what leaves -----------------------------------------------------------------------

    def add(self, rows: Chunk, now: int) -> None:
        """Add answers that leave at ``now``, in clock nanoseconds."""
        if not rows.height:
            return
        self._at += 1
        newest = [pl.col(name).to_physical() for name in self._shape.stamps]
        latest = pl.max_horizontal(newest) if newest else pl.lit(self._at)
        own = {NEWEST: latest, SHOWN: pl.lit(now), AT: pl.lit(self._at)}
        columns = [value.cast(pl.Int64).alias(name) for name, value in own.items()]
        self._gather(rows.select(*self._shape.schema, *columns))

    def end(self, promise: GroupPunctuation) -> bool:
        """Drop the answers of keys whose end is reported; return false for other punctuation, which
        changes nothing."""
        if promise.attribute != ENDED or set(promise.keys) != set(self._shape.update_key):
            return False
        self.drop(promise.marks.drop(MARK))
        return True

    def drop(self, keys: pl.DataFrame) -> None:
        """Drop the answers of keys, in columns with the names of the update key."""
        self._at += 1
        names = self._shape.update_key
        typed = [pl.col(name).cast(self._shape.schema[name]) for name in names]
        self._ended.append((self._at, keys.select(typed)))
        if len(self._ended) > FEW_CHUNKS:
            self._reduce()

    # ---- reading ---------------------------------------------------------------------------

    def copy(self) -> AnswerTable:
        """Return a table with the same answers, which does not change when this one does."""
        found = AnswerTable(self._shape)
        found._rows, found._new, found._ended = self._rows, list(self._new), list(self._ended)
        found._at, found._count = self._at, self._count
        return found

    def only(self, key: Key) -> AnswerTable:
        """Return a table with the answers of one update key."""
        wanted = [
            pl.col(name).eq_missing(pl.lit(value, dtype=self._shape.schema[name]))
            for name, value in zip(self._shape.update_key, key, strict=True)
        ]
        found = self.copy()
        if wanted:
            found._rows = self._rows.filter(wanted)
            found._new = [each.filter(wanted) for each in self._new]
            found._ended = [(at, keys.filter(wanted)) for at, keys in self._ended]
        return found

    def rows(self) -> Chunk:
        """Return the newest answers with the columns ``NEWEST`` and ``SHOWN``, the key that was
        answered last at the end."""
        self._reduce()
        return self._rows.drop(AT)

    @property
    def size(self) -> int:
        """Number of answers that are kept now, with those that are to be dropped."""
        return self._rows.height + self._count

    def put(self, rows: Chunk) -> None:
        """Add answers that :meth:`rows` of another table returned."""
        if not rows.height:
            return
        self._at += 1
        self._gather(rows.with_columns(pl.lit(self._at, dtype=pl.Int64).alias(AT)))

    # ---- reducing --------------------------------------------------------------------------

    def _gather(self, rows: Chunk) -> None:
        self._new.append(rows)
        self._count += rows.height
        if self._count > 2 * self._rows.height + FEW_ROWS or len(self._new) > FEW_CHUNKS:
            self._reduce()

    def _reduce(self) -> None:
        """Drop the answers that newer ones replaced and those of ended keys."""
        if not self._new and not self._ended:
            return
        key, update_key = list(self._shape.key), list(self._shape.update_key)
        rows = pl.concat([self._rows, *self._new])
        rows = rows.unique(key, keep="last", maintain_order=True) if key else rows.tail(1)
        rows = self._alive(rows)
        if set(key) != set(update_key):
            newest = pl.col(NEWEST).max()
            rows = rows.filter(
                pl.col(NEWEST) == (newest.over(update_key) if update_key else newest)
            )
        self._rows, self._new, self._ended, self._count = rows, [], [], 0

    def _alive(self, rows: Chunk) -> Chunk:
        """Return the rows that left after the last report of the end of their keys."""
        if not self._ended:
            return rows
        key, since = list(self._shape.update_key), AT + "_end"
        if not key:
            return rows.filter(pl.col(AT) > self._ended[-1][0])
        ends = pl.concat(
            [keys.with_columns(pl.lit(at, dtype=pl.Int64).alias(since)) for at, keys in self._ended]
        )
        ends = ends.group_by(key).max()
        both = rows.join(ends, on=key, how="left", nulls_equal=True, maintain_order="left")
        return both.filter(pl.col(AT) > pl.col(since).fill_null(-1)).drop(since)
