"""The sums of a sliding window: counts, sums of integers and decimals, exact sums of floats."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import polars as pl

from lowwater.operators.exact_sums import Ints, aligned, digits, rounded
from lowwater.state.store import ChunkStore
from lowwater.state.time_buffer import TimeBuffer
from lowwater.stream.element import END_OF_TIME, Chunk

NUMBER = "__number"
ALL = "__all"
"""The key column of the single group of rows that are not grouped."""


def numbered(frames: Sequence[Chunk], keys: Sequence[str]) -> tuple[Chunk, list[Ints]]:
    """Return the distinct keys of some frames, and for each row of each frame its key's number."""
    groups = pl.concat([each.select(keys) for each in frames]).unique(maintain_order=True)
    return groups, [numbers(each, groups) for each in frames]


def numbers(rows: Chunk, groups: Chunk) -> Ints:
    """Return the number of each row's key among groups; -1 for keys that are not among them."""
    keys = groups.columns
    if keys == [ALL]:
        return np.zeros(rows.height, np.int64)
    joined = rows.select(keys).join(
        groups.with_row_index(NUMBER), on=keys, how="left", nulls_equal=True, maintain_order="left"
    )
    return joined[NUMBER].cast(pl.Int64).fill_null(-1).to_numpy()


@dataclass(frozen=True)
class Instants:
    """Instants of groups, sorted by the number of the group and by time."""

    groups: Chunk
    """The keys of the groups, by number."""
    group: Ints
    """The number of the group of each instant."""
    times: Ints
    """The time of each instant, in ticks."""
    firsts: Ints
    """The index of the first instant of each group."""

    @classmethod
    def of(
        cls, events: Sequence[Chunk], keys: Sequence[str], time: str
    ) -> tuple[Instants, list[Ints]]:
        """Return the instants of some events, and for each row of each frame the index of its
        instant."""
        groups, found = numbered(events, keys)
        group = np.concatenate(found)
        times = np.concatenate([each[time].to_numpy() for each in events])
        order = np.lexsort((times, group))
        group, times = group[order], times[order]
        new = np.ones(len(order), bool)
        new[1:] = (group[1:] != group[:-1]) | (times[1:] != times[:-1])
        places = np.empty(len(order), np.int64)
        places[order] = np.cumsum(new) - 1
        group, times = group[new], times[new]
        firsts = np.searchsorted(group, np.arange(groups.height))
        cuts = np.cumsum([each.height for each in events])[:-1]
        return cls(groups, group, times, firsts), np.split(places, cuts)

    def __len__(self) -> int:
        return len(self.times)

    @property
    def lasts(self) -> Ints:
        """The index of the last instant of each group."""
        return np.append(self.firsts[1:], len(self)) - 1

    def running(self, deltas: Ints, base: Ints) -> Ints:
        """Return running sums within groups, each group beginning with its base."""
        total = np.cumsum(deltas, axis=0)
        before = total[self.firsts] - deltas[self.firsts]
        running: Ints = total - before[self.group] + base[self.group]
        return running


TIME, ROWS = "__t", "__rows"
SLICES_PER_RANGE = 64
"""Number of slices that the rows of a window are kept in; fewer if the range is short."""


@dataclass(frozen=True)
class SlidingStore:
    """The store of the parts, the columns that name a group, and the window's range in ticks."""

    store: ChunkStore
    keys: tuple[str, ...]
    range: int

    def buffer(self, name: str) -> TimeBuffer:
        """Return a new buffer of rows by time."""
        return TimeBuffer(self.store, name, TIME, max(1, self.range // SLICES_PER_RANGE))

    def leaves(self, high: int) -> int:
        """Return the time below which rows leave the window before ``high``."""
        return END_OF_TIME if high == END_OF_TIME else high - self.range


class SlidingPart(ABC):
    """One kind of aggregate over the rows in the window. Its values at an instant are *levels*."""

    columns: Mapping[str, pl.DataType]
    """The columns, with their types, that are kept of a group between punctuations."""
    counts: ClassVar[bool] = False
    """True if these columns are 0 where a window is empty; otherwise they are null there."""

    @abstractmethod
    def events(self, fresh: Chunk | None, high: int) -> Chunk | None:
        """Return the groups that change before ``high``, with the times at which they do; None if
        there are none."""

    @abstractmethod
    def levels(
        self, events: Chunk | None, places: Ints | None, instants: Instants, base: Chunk
    ) -> list[pl.Series]:
        """Return the levels after each instant, given the kept columns of each group."""

    def kept(self) -> list[pl.Series]:
        """Return the kept columns of each group that are not levels, after its last instant."""
        return []

    @property
    def not_empty(self) -> list[pl.Expr]:
        """Conditions on the kept columns; where a window is empty, none is true."""
        columns = map(pl.col, self.columns)
        return [each != 0 if self.counts else each.is_not_null() for each in columns]

    @property
    @abstractmethod
    def least(self) -> int:
        """The earliest time of a row that waits to leave."""

    @abstractmethod
    def snapshot(self) -> dict[str, Any]:
        """Return the state that is not in the store."""

    @abstractmethod
    def restore(self, saved: dict[str, Any]) -> None:
        """Set the state to that of a snapshot."""


def together(parts: Sequence[Chunk | None]) -> Chunk | None:
    """Return all rows of some frames; None if there are none."""
    found = [part for part in parts if part is not None and part.height]
    return pl.concat(found) if found else None


class ExpiringPart(SlidingPart):
    """A part whose only state is the rows that have not left yet."""

    _live: TimeBuffer

    @property
    def least(self) -> int:
        """The earliest time of a row that waits to leave."""
        return self._live.least

    def snapshot(self) -> dict[str, Any]:
        """Return the state of the buffer."""
        return {"live": self._live.snapshot()}

    def restore(self, saved: dict[str, Any]) -> None:
        """Set the state to that of a snapshot."""
        self._live.restore(saved["live"])


class RunningSums(ExpiringPart):
    """Counts, and sums of integers and decimals. A row is added when it comes, subtracted later."""

    counts: ClassVar[bool] = True

    def __init__(
        self, store: SlidingStore, sums: Mapping[str, pl.Expr], types: Mapping[str, pl.DataType]
    ):
        self._store, self.columns = store, dict(types)
        self._sums = [each.cast(types[name]).alias(name) for name, each in sums.items()]
        self._every = ROWS in types  # every row changes the number of rows
        self._live = store.buffer("live")

    def events(self, fresh: Chunk | None, high: int) -> Chunk | None:
        """Return the amounts that are added, and those that are subtracted a range later."""
        keys, leaves = [*self._store.keys, TIME], self._store.leaves(high)
        gone = [self._live.take(leaves)]
        came = None
        if fresh is not None:
            came = fresh.group_by(keys).agg(self._sums)
            if not self._every:
                came = came.filter(pl.any_horizontal(pl.col(list(self.columns)) != 0))
            gone.append(_keep(came, leaves, self._live))
        left = together(gone)
        if left is not None:
            left = left.with_columns(
                pl.col(TIME) + self._store.range, *(-pl.col(name) for name in self.columns)
            )
        return together([came, left])

    def levels(
        self, events: Chunk | None, places: Ints | None, instants: Instants, base: Chunk
    ) -> list[pl.Series]:
        """Return the running sums."""
        found = []
        for name, dtype in self.columns.items():
            deltas = None if events is None else events[name]
            if dtype.is_integer():
                moves = np.zeros(len(instants), np.int64)
                if deltas is not None:
                    assert places is not None
                    np.add.at(moves, places, deltas.to_numpy())
                running = instants.running(moves, base[name].to_numpy())
                found.append(pl.Series(name, running))
            else:
                found.append(_running_decimals(deltas, places, instants, base[name]))
        return found


def _keep(came: Chunk, leaves: int, live: TimeBuffer) -> Chunk | None:
    """Keep rows until they leave the window; return those that leave at once."""
    early = came[TIME] < leaves
    if not early.any():
        live.put(came)
        return None
    live.put(came.filter(~early))
    return came.filter(early)


def _running_decimals(
    deltas: pl.Series | None, places: Ints | None, instants: Instants, base: pl.Series
) -> pl.Series:
    """Return running sums of decimals, which numpy does not have."""
    name, dtype = base.name, base.dtype
    moves = [pl.DataFrame({"at": instants.firsts, name: base})]
    if deltas is not None:
        moves.append(pl.DataFrame({"at": places, name: deltas}))
    sums = pl.concat(moves).group_by("at").sum()
    frame = pl.DataFrame({"at": np.arange(len(instants)), "group": instants.group})
    frame = frame.join(sums, on="at", how="left", maintain_order="left")
    running = pl.col(name).fill_null(0).cum_sum().over("group").cast(dtype)
    return frame.select(running).to_series()


class ExactSum(ExpiringPart):
    """An exact sum of floats: their digits are added and subtracted as integers.

    NaN and infinities are counted separately, so they have no effect once the last has left.
    """

    SIGN = "__sign"

    def __init__(self, store: SlidingStore, column: str, name: str):
        self._store, self._column, self._name = store, column, name
        self._low, self._digits = f"{name}_low", f"{name}_digits"
        self.columns = {
            name: pl.Float64(),
            self._low: pl.Int64(),
            self._digits: pl.List(pl.Int64),
        }
        self._live = store.buffer(f"{name}_live")
        self._kept: list[pl.Series] = []

    @property
    def not_empty(self) -> list[pl.Expr]:
        """No conditions: a window may have values whose sum is 0; their count is kept as well."""
        return []

    def events(self, fresh: Chunk | None, high: int) -> Chunk | None:
        """Return the values that come, and those that leave."""
        leaves, value = self._store.leaves(high), pl.col(self._column)
        gone = [self._live.take(leaves)]
        came = None
        if fresh is not None:
            came = fresh.select(*self._store.keys, TIME, value).drop_nulls(self._column)
            gone.append(_keep(came, leaves, self._live))
            came = came.with_columns(pl.lit(1, dtype=pl.Int64).alias(self.SIGN))
        left = together(gone)
        if left is not None:
            left = left.with_columns(
                pl.col(TIME) + self._store.range, pl.lit(-1, dtype=pl.Int64).alias(self.SIGN)
            )
        return together([came, left])

    def levels(
        self, events: Chunk | None, places: Ints | None, instants: Instants, base: Chunk
    ) -> list[pl.Series]:
        """Return the exact sums after each instant, rounded to floats."""
        table, low = _unpacked(base[self._digits], base[self._low])
        odd, table = table[:, :3], table[:, 3:]
        deltas = np.zeros((len(instants), 3), np.int64)
        more = np.zeros((len(instants), table.shape[1]), np.int64)
        if events is not None:
            assert places is not None
            values, sign = events[self._column].to_numpy(), events[self.SIGN].to_numpy()
            odds = (np.isnan(values), np.isposinf(values), np.isneginf(values))
            for at, strange in enumerate(odds):
                np.add.at(deltas[:, at], places, strange * sign)
            finite = np.isfinite(values)
            parts, first = digits(values[finite])
            begin = min(low, first)
            width = max(low + table.shape[1], first + parts.shape[1]) - begin
            table = aligned(table, low, begin, width)
            low, more = begin, np.zeros((len(instants), width), np.int64)
            signed = aligned(parts, first, begin, width) * sign[finite][:, None]
            np.add.at(more, places[finite], signed)
        odd, table = instants.running(deltas, odd), instants.running(more, table)
        nan, up, down = (odd > 0).T
        values = rounded(table, low)
        values = np.where(up, np.inf, np.where(down, -np.inf, values))
        values = np.where(nan | (up & down), np.nan, values)
        last = np.concatenate([odd, table], axis=1)[instants.lasts]
        self._kept = [
            pl.Series(self._low, np.full(len(last), low)),
            pl.Series(self._digits, last).arr.to_list(),
        ]
        return [pl.Series(self._name, values)]

    def kept(self) -> list[pl.Series]:
        """Return the digits of each group's sum."""
        return self._kept


def _unpacked(lists: pl.Series, lows: pl.Series) -> tuple[Ints, int]:
    """Return the digits of groups as one table, and the place of its first digit.

    Three columns before the digits count NaN and both infinities.
    """
    known = np.flatnonzero(lists.is_not_null().to_numpy())
    if not len(known):
        return np.zeros((len(lists), 4), np.int64), 0
    held, places = lists.drop_nulls(), lows.drop_nulls().to_numpy()
    lengths = held.list.len().to_numpy().astype(np.int64)
    values = held.explode(empty_as_null=False).to_numpy()
    low = int(places.min())
    table = np.zeros((len(lists), int((places + lengths).max()) - low), np.int64)
    rows = np.repeat(np.arange(len(known)), lengths)
    at = np.arange(len(values)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    at = np.where(at < 3, at, at + places[rows] - low)
    table[known[rows], at] = values
    return table, low
