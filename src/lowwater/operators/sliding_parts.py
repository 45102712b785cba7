"""What a sliding window remembers of its rows, by kind of aggregate.

All kinds are asked twice when the mark moves to ``high``. First, with the rows that were let go,
for their *events*: when something happens to which group, because rows come or because others are
a range old. Then, knowing all instants of all kinds, for their *levels* after each of them.

Rows that are in the window wait by time for the moment they leave it, so that a release costs what
arrives and what leaves.

Invariant: after a release up to ``high``, a kind holds what rows before ``high`` that have not left
before ``high`` have to say, and nothing of others.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from lowwater.operators.sliding_changes import (
    Instants,
    Ints,
    aligned,
    digits,
    numbers,
    rounded,
)
from lowwater.state.by_key import ByKey
from lowwater.state.by_time import ByTime
from lowwater.state.store import ChunkStore
from lowwater.stream.element import END_OF_TIME, Chunk

TIME, ROWS = "__t", "__rows"
SLICES_PER_RANGE = 64
"""Rows of a window are kept in this many slices, unless they are too few for it."""


@dataclass(frozen=True)
class Place:
    """Where a kind keeps its rows, the columns that name a group, and how long the window is."""

    store: ChunkStore
    keys: tuple[str, ...]
    range: int

    def by_time(self, name: str) -> ByTime:
        """Rows by time."""
        return ByTime(self.store, name, TIME, max(1, self.range // SLICES_PER_RANGE))

    def leaves(self, high: int) -> int:
        """Rows before this leave before ``high``."""
        return END_OF_TIME if high == END_OF_TIME else high - self.range


class Part(ABC):
    """One kind of aggregate over the rows in the window."""

    columns: Mapping[str, pl.DataType]
    """What is known of a group between releases."""

    @abstractmethod
    def events(self, fresh: Chunk | None, high: int) -> Chunk | None:
        """When something happens to which group before ``high``; None if nothing does."""

    @abstractmethod
    def levels(
        self, events: Chunk | None, places: Ints | None, instants: Instants, base: Chunk
    ) -> list[pl.Series]:
        """The levels after each instant, from the columns of each group before."""

    def kept(self) -> list[pl.Series]:
        """Columns of each group after its last instant that are not among the levels."""
        return []

    @property
    @abstractmethod
    def least(self) -> int | None:
        """The earliest time of a row that waits to leave."""

    @abstractmethod
    def snapshot(self) -> dict[str, Any]:
        """What is not in the store."""

    @abstractmethod
    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from a snapshot."""


def together(parts: Sequence[Chunk | None]) -> Chunk | None:
    """All rows of some frames; None if there are none."""
    found = [part for part in parts if part is not None and part.height]
    return pl.concat(found) if found else None


class Leaving(Part):
    """A part that keeps rows until they leave, and nothing else."""

    _live: ByTime

    @property
    def least(self) -> int | None:
        """The earliest time of a row that waits to leave."""
        return self._live.least

    def snapshot(self) -> dict[str, Any]:
        """How rows are sliced."""
        return {"live": self._live.snapshot()}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        self._live.restore(saved["live"])


class Tallies(Leaving):
    """Counts, and sums of whole and decimal numbers: added when a row comes, then taken away."""

    def __init__(self, place: Place, sums: Mapping[str, pl.Expr], types: Mapping[str, pl.DataType]):
        self._place, self.columns = place, dict(types)
        self._sums = [each.cast(types[name]).alias(name) for name, each in sums.items()]
        self._every = ROWS in types  # no row counts for nothing
        self._live = place.by_time("live")

    def events(self, fresh: Chunk | None, high: int) -> Chunk | None:
        """What is added, and what is taken away a range later."""
        keys, leaves = [*self._place.keys, TIME], self._place.leaves(high)
        gone = [self._live.take(leaves)]
        came = None
        if fresh is not None:
            came = fresh.group_by(keys).agg(self._sums)
            if not self._every:
                came = came.filter(pl.any_horizontal(pl.col(list(self.columns)) != 0))
            gone.append(_let_in(came, leaves, self._live))
        left = together(gone)
        if left is not None:
            left = left.with_columns(
                pl.col(TIME) + self._place.range, *(-pl.col(name) for name in self.columns)
            )
        return together([came, left])

    def levels(
        self, events: Chunk | None, places: Ints | None, instants: Instants, base: Chunk
    ) -> list[pl.Series]:
        """Running sums."""
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


def _let_in(came: Chunk, leaves: int, live: ByTime) -> Chunk | None:
    """Let rows wait to leave, except those that leave at once: these are given back."""
    early = came[TIME] < leaves
    if not early.any():
        live.put(came)
        return None
    live.put(came.filter(~early))
    return came.filter(early)


def _running_decimals(
    deltas: pl.Series | None, places: Ints | None, instants: Instants, base: pl.Series
) -> pl.Series:
    """Running sums of numbers that are wider than those of numpy."""
    name, dtype = base.name, base.dtype
    moves = [pl.DataFrame({"at": instants.firsts, name: base})]
    if deltas is not None:
        moves.append(pl.DataFrame({"at": places, name: deltas}))
    sums = pl.concat(moves).group_by("at").sum()
    frame = pl.DataFrame({"at": np.arange(len(instants)), "group": instants.group})
    frame = frame.join(sums, on="at", how="left", maintain_order="left")
    running = pl.col(name).fill_null(0).cum_sum().over("group").cast(dtype)
    return frame.select(running).to_series()


class ExactSum(Leaving):
    """A sum of floats, kept exactly: digits come and go as whole numbers.

    NaN and infinities are counted beside it, and gone when the last of them has left.
    """

    SIGN = "__sign"

    def __init__(self, place: Place, column: str, name: str):
        self._place, self._column, self._name = place, column, name
        self._low, self._digits = f"{name}_low", f"{name}_digits"
        self.columns = {
            name: pl.Float64(),
            self._low: pl.Int64(),
            self._digits: pl.List(pl.Int64),
        }
        self._live = place.by_time(f"{name}_live")
        self._kept: list[pl.Series] = []

    def events(self, fresh: Chunk | None, high: int) -> Chunk | None:
        """The values that come, and those that leave."""
        leaves, value = self._place.leaves(high), pl.col(self._column)
        gone = [self._live.take(leaves)]
        came = None
        if fresh is not None:
            came = fresh.select(*self._place.keys, TIME, value).drop_nulls(self._column)
            gone.append(_let_in(came, leaves, self._live))
            came = came.with_columns(pl.lit(1, dtype=pl.Int64).alias(self.SIGN))
        left = together(gone)
        if left is not None:
            left = left.with_columns(
                pl.col(TIME) + self._place.range, pl.lit(-1, dtype=pl.Int64).alias(self.SIGN)
            )
        return together([came, left])

    def levels(
        self, events: Chunk | None, places: Ints | None, instants: Instants, base: Chunk
    ) -> list[pl.Series]:
        """The exact sums after each instant, rounded."""
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
        """The digits of each group's sum."""
        return self._kept


def _unpacked(lists: pl.Series, lows: pl.Series) -> tuple[Ints, int]:
    """Digits of groups as one table, behind the counts of what is no number; its first place."""
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


class Distinct(Part):
    """How many different values there are.

    A value is in the window from a row that has it until a range after the last such row. Of each
    value the last row is known by key, and one row waits to be a range old; if the value was seen
    since, another one waits in its place.
    """

    VALUE, LAST = "__value", "__last"

    def __init__(self, place: Place, column: str, name: str):
        self._place, self._column, self._name = place, column, name
        self.columns = {name: pl.Int64()}
        self._key = [*place.keys, self.VALUE]
        self._lasts = ByKey(place.store, f"{name}_last", self._key)
        self._due = place.by_time(f"{name}_due")

    def events(self, fresh: Chunk | None, high: int) -> Chunk | None:
        """Values that come in, and values that are gone."""
        key, leaves = self._key, self._place.leaves(high)
        due = self._due.take(leaves)
        came = None
        if fresh is not None:
            seen = pl.col(self._column).alias(self.VALUE)
            came = fresh.select(*self._place.keys, seen, TIME).drop_nulls(self.VALUE).unique()
        touched = together([None if each is None else each.select(key) for each in (came, due)])
        if touched is None:
            return None
        touched = touched.unique()
        known = self._lasts.look_up(touched)
        chain = [] if came is None else [came.select(*key, TIME)]
        if known is not None:
            chain.append(known.select(*key, pl.col(self.LAST).alias(TIME)))
        links = pl.concat(chain)
        value, times = numbers(links, touched), links[TIME].to_numpy()
        old = np.arange(links.height) >= links.height - (0 if known is None else known.height)
        order = np.lexsort((times, value))
        links, value, times, old = links[order], value[order], times[order], old[order]
        joined = np.zeros(len(order) + 1, bool)  # whether a row is there until the next one
        joined[1:-1] = (value[1:] == value[:-1]) & (np.diff(times) <= self._place.range)
        last = np.append(value[1:] != value[:-1], True)
        stays = last & (times >= leaves)
        self._keep(links.filter(pl.Series(stays)), touched, known, due)
        begins, ends = ~old & ~joined[:-1], ~joined[1:] & ~stays
        moments = [(begins, 0, 1), (ends, self._place.range, -1)]
        return together(
            [
                links.filter(pl.Series(which)).select(
                    *self._place.keys,
                    pl.col(TIME) + later,
                    pl.lit(by, dtype=pl.Int64).alias(self._name),
                )
                for which, later, by in moments
            ]
        )

    def _keep(self, stay: Chunk, touched: Chunk, known: Chunk | None, due: Chunk | None) -> None:
        """Remember the last row of each value; one of its rows waits."""
        self._lasts.replace(touched, stay.select(*self._key, pl.col(TIME).alias(self.LAST)))
        if known is not None:
            if due is not None:
                known = known.join(due, on=self._key, how="anti", nulls_equal=True)
            stay = stay.join(known, on=self._key, how="anti", nulls_equal=True)
        self._due.put(stay.select(*self._key, TIME))

    def levels(
        self, events: Chunk | None, places: Ints | None, instants: Instants, base: Chunk
    ) -> list[pl.Series]:
        """Running counts."""
        deltas = np.zeros(len(instants), np.int64)
        if events is not None:
            assert places is not None
            np.add.at(deltas, places, events[self._name].to_numpy())
        return [pl.Series(self._name, instants.running(deltas, base[self._name].to_numpy()))]

    @property
    def least(self) -> int | None:
        """The earliest time of a row that waits to leave."""
        return self._due.least

    def snapshot(self) -> dict[str, Any]:
        """How rows are sliced."""
        return {"lasts": self._lasts.snapshot(), "due": self._due.snapshot()}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        self._lasts.restore(saved["lasts"])
        self._due.restore(saved["due"])
