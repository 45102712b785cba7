"""Windows that slide by rows (partitioned windows, OOP A.2.2): every so many rows of a key are
answered, for its last rows or for its rows of the last stretch of time.

Rows of a key are counted from 1 in order of time; rows of equal time in ascending order of the
columns that the aggregates read, from left to right, nulls last. Rows that are equal in all of
these may change places: no answer depends on it. A row is counted when the mark is above its time,
so that its number follows from the rows alone, not from how they came or were cut.

Each row whose number is a multiple of ``slide`` is answered: for the last ``rows`` rows of its key
up to it, or for those with ``t - range < ts <= t``, where ``t`` is its time. Rows after the last
such row have no answer of their own.

A key is forgotten ``expire`` ticks after its newest row: its next row has number 1 again, and no
row before it is in a window any more.

Invariant: all rows below the mark are counted. Of a key are kept: its newest row, which has its
number, and the rows that a later answer needs, at most ``rows`` - 1 or those of a range.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lowwater.operators.aggregates import Aggregate, finish, lift
from lowwater.operators.kernel import Kernel, Request
from lowwater.operators.sliding_sums import ALL, TIME
from lowwater.operators.span_merge import Positions, merge_spans
from lowwater.operators.window_aggregate import END
from lowwater.operators.window_state import START
from lowwater.state.keyed_rows import KeyedRows
from lowwater.state.store import ChunkStore
from lowwater.state.time_buffer import TimeBuffer
from lowwater.stream.element import BEGINNING, END_OF_TIME, Chunk, Element, Punctuation
from lowwater.stream.time_domain import TimeDomain

HELD, PAST = "held", "past"
NUMBER = "__row"
OFTEN = 8
"""Rows that have become too old are dropped this many times a range, or time of expiry."""


@dataclass(frozen=True)
class LastRows:
    """The windows of the rows of each key: of a number of rows or of a range of time."""

    slide: int
    """Number of rows of a key from one answer to the next."""
    rows: int | None
    """Number of rows of a window; None if it has a range of time."""
    range: int
    """Length of a window in ticks, if it has no number of rows."""
    keys: tuple[str, ...]
    """The columns whose values have windows of their own; empty for windows of all rows."""
    expire: int | None
    """Ticks after its newest row at which a key is forgotten; None for never."""

    @property
    def counts(self) -> bool:
        """True if the newest row of a key is kept for its number."""
        return self.rows is not None or self.slide > 1

    @property
    def keeps_keys(self) -> bool:
        """True if what is kept of a key is kept for ever."""
        return bool(self.keys) and self.counts and self.expire is None


class LastRowsAggregate(Kernel):
    """Aggregates the last rows of each key. ``reads`` are the columns that the aggregates read."""

    rule: ClassVar[str] = (
        "rows below the mark are counted and answered, then window ends are promised up to it"
    )

    def __init__(
        self,
        store: ChunkStore,
        time: str,
        domain: TimeDomain,
        window: LastRows,
        aggregates: Sequence[Aggregate],
        reads: Sequence[str],
        slice_ticks: int,
    ):
        super().__init__(store)
        self._time, self._domain, self._window = time, domain, window
        self._aggregates, self._keys = list(aggregates), list(window.keys) or [ALL]
        self._ties = [name for name in reads if name != time]
        self._columns = list(dict.fromkeys([*window.keys, time, *reads]))
        self._held = TimeBuffer(store, HELD, TIME, slice_ticks)
        self._past = KeyedRows(store, PAST, self._keys)
        self._mark = self._swept = BEGINNING

    # ---- rows ------------------------------------------------------------------------------

    def on_chunk(self, port: int, chunk: Chunk) -> Sequence[Element]:
        """Hold rows until the mark has passed them."""
        rows = chunk.select(
            self._domain.to_ticks(pl.col(self._time)).alias(TIME),
            *([] if self._window.keys else [pl.lit(0, pl.Int8).alias(ALL)]),
            *self._columns,
        )
        self._held.put(rows)
        return []

    # ---- answers ---------------------------------------------------------------------------

    def on_punctuation(self, port: int, promise: Punctuation) -> Sequence[Element]:
        """Return the answers of rows below the mark, and the promises that follow."""
        if promise.attributes != (self._time,) or promise.values[0] <= self._mark:
            return []
        self._mark = promise.values[0]
        answers = self._count(self._held.take(self._mark))
        self._sweep()
        promises: list[Element] = [Punctuation.linear(END, self._mark)]
        if self._window.rows is None:
            promises.append(Punctuation.linear(START, self._mark - self._window.range))
        return [*answers, *promises]

    def close_port(self, port: int) -> Sequence[Element]:
        """Return the answers of all rows that are left."""
        self._mark = END_OF_TIME
        answers = self._count(self._held.take())
        self._past.take()
        return answers

    def _count(self, fresh: Chunk | None) -> list[Element]:
        """Count rows, keep those that later answers need, and return the answers."""
        if fresh is None:
            return []
        keys = fresh.select(self._keys).unique()
        past = self._past.look_up(keys)
        rows = fresh.with_columns(pl.lit(None, pl.Int64).alias(NUMBER))
        if past is not None:
            rows = pl.concat([past.select(rows.columns), rows])
        # Rows that have a number are earlier than all rows of their key that have none.
        order = [*self._keys, NUMBER, TIME, *self._ties]
        rows = rows.sort(order, nulls_last=True, maintain_order=True)
        counted = _Counted.of(rows, self._keys, self._window.expire)
        self._past.replace(keys, self._needed(rows, counted))
        new = rows[NUMBER].is_null().to_numpy()
        at = np.flatnonzero(new & (counted.numbers % self._window.slide == 0))
        return [self._answered(rows, counted, at)] if len(at) else []

    def _answered(self, rows: Chunk, counted: _Counted, at: Positions) -> Chunk:
        """Return the answers of the rows at some positions."""
        window = self._window
        first = counted.firsts[at]
        if window.rows is not None:
            first = np.maximum(first, at - window.rows + 1)
        else:
            first = _first_above(counted.times, first, at, counted.times[at] - window.range)
        lifted = lift(rows, [], self._aggregates)
        merged = merge_spans(lifted, first, at + 1, self._aggregates)
        start = (
            counted.times[first] if window.rows is not None else counted.times[at] - window.range
        )
        edges = pl.DataFrame({START: start, END: counted.times[at]})
        keys = rows[at].select(self._window.keys)
        answers = pl.concat([edges, keys, merged], how="horizontal")
        answers = answers.sort([END, *self._window.keys], maintain_order=True)
        begin, end = (self._domain.from_ticks(pl.col(name)).alias(name) for name in (START, END))
        return finish(answers, [begin, end, *map(pl.col, self._window.keys)], self._aggregates)

    # ---- rows that are kept ----------------------------------------------------------------

    def _needed(self, rows: Chunk, counted: _Counted) -> Chunk:
        """Return the rows that later answers need, with their numbers."""
        window = self._window
        at = np.arange(rows.height)
        lasts = counted.lasts[at]
        current = counted.firsts[at] == counted.firsts[lasts]  # not before a key was forgotten
        if window.rows is not None:
            last = counted.numbers[lasts]
            due = (last // window.slide + 1) * window.slide
            needed = counted.numbers > due - window.rows
        else:
            needed = counted.times > self._mark - window.range
        if window.counts:
            needed |= at == lasts
        if window.expire is not None and self._mark < END_OF_TIME:
            current &= counted.times[lasts] + window.expire > self._mark
        numbered = rows.with_columns(pl.Series(NUMBER, counted.numbers))
        return numbered.filter(pl.Series(needed & current))

    def _sweep(self) -> None:
        """Drop rows that have become too old, of keys that had no rows lately."""
        window = self._window
        spans = [window.expire] if window.expire is not None else []
        spans += [window.range] if window.rows is None else []
        if not spans or self._mark - self._swept <= min(spans) // OFTEN:
            return
        self._swept = self._mark
        newest = pl.col(TIME).max().over(self._keys)
        keep = pl.lit(True)
        if window.rows is None:
            keep = pl.col(TIME) > self._mark - window.range
            if window.counts:
                keep |= pl.col(NUMBER) == pl.col(NUMBER).max().over(self._keys)
        if window.expire is not None:
            keep &= newest + window.expire > self._mark
        self._past.keep(keep)

    # ---- requests and saving ---------------------------------------------------------------

    def requests(self) -> Sequence[Request]:
        """Request a mark just above the earliest row that waits."""
        least = self._held.least
        return [Request(0, self._time, least + 1)] if least < END_OF_TIME else []

    def needs(self, attribute: str, mark: int) -> Sequence[Request]:
        """Request the mark itself for ends, and a range more for starts."""
        if attribute == END:
            return [Request(0, self._time, mark)]
        if attribute == START and self._window.rows is None:
            return [Request(0, self._time, mark + self._window.range)]
        return []

    def marks(self) -> dict[str, int]:
        """Return the mark of the input."""
        return {self._time: self._mark}

    def snapshot(self) -> dict[str, Any]:
        """Return the marks, and the state of the rows that wait and of those that are kept."""
        return super().snapshot() | {
            "mark": self._mark,
            "swept": self._swept,
            "held": self._held.snapshot(),
            "past": self._past.snapshot(),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Set the state to that of a snapshot."""
        super().restore(saved)
        self._mark, self._swept = saved["mark"], saved["swept"]
        self._held.restore(saved["held"])
        self._past.restore(saved["past"])


@dataclass(frozen=True)
class _Counted:
    """The numbers of rows that are sorted by key and in each key as they are counted."""

    times: Positions
    numbers: Positions
    """The number of each row, from 1."""
    firsts: Positions
    """The position of the first row of the same key, since it was last forgotten."""
    lasts: Positions
    """The position of the last row of the same key."""

    @classmethod
    def of(cls, rows: Chunk, keys: Sequence[str], expire: int | None) -> _Counted:
        """Count rows; those counted before have their numbers already."""
        times, positions = rows[TIME].to_numpy(), np.arange(rows.height)
        alone = rows[keys[0]] if len(keys) == 1 else rows.select(pl.struct(keys)).to_series()
        runs = alone.rle_id().to_numpy()
        opens = np.concatenate([[True], runs[1:] != runs[:-1]])
        ends = np.concatenate([np.flatnonzero(opens)[1:], [rows.height]]) - 1
        lasts = np.repeat(ends, np.diff(np.flatnonzero(np.concatenate([opens, [True]]))))
        known = rows[NUMBER]
        if expire is not None:
            apart = np.concatenate([[False], times[1:] - times[:-1] >= expire])
            opens = opens | (apart & known.is_null().to_numpy())
        firsts: NDArray[np.int64] = np.maximum.accumulate(np.where(opens, positions, 0))
        before = known.fill_null(1).to_numpy()[firsts] - 1
        return cls(times, positions - firsts + before + 1, firsts, lasts)


def _first_above(times: Positions, low: Positions, high: Positions, bounds: Positions) -> Positions:
    """Return the first positions from ``low`` to ``high`` whose times are above the bounds.

    The times between each two are in order, and those at ``high`` are above the bounds.
    """
    low, high = low.copy(), high.copy()
    while (low < high).any():
        middle = (low + high) // 2
        above = times[middle] > bounds  # also where low and high have met
        high = np.where(above, middle, high)
        low = np.where(above, low, middle + 1)
    return low
