"""Values of a sliding window: the number of distinct ones, the least and the greatest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import polars as pl

from lowwater.operators.exact_sums import Ints
from lowwater.operators.sliding_sums import (
    TIME,
    Instants,
    SlidingPart,
    SlidingStore,
    numbered,
    numbers,
    together,
)
from lowwater.state.keyed_rows import KeyedRows
from lowwater.stream.element import BEGINNING, END_OF_TIME, Chunk, moved


class DistinctValues(SlidingPart):
    """The number of distinct values.

    A value is in the window from a row that has it until a range after the last such row. For each
    value the time of its last row is kept by key, and one of its rows waits until it is a range
    old. If the value has come again by then, its last row waits instead.
    """

    VALUE, LAST = "__value", "__last"
    counts: ClassVar[bool] = True

    def __init__(self, store: SlidingStore, column: str, name: str):
        self._store, self._column, self._name = store, column, name
        self.columns = {name: pl.Int64()}
        self._key = [*store.keys, self.VALUE]
        self._lasts = KeyedRows(store.store, f"{name}_last", self._key)
        self._due = store.buffer(f"{name}_due")

    def events(self, fresh: Chunk | None, high: int) -> Chunk | None:
        """Return the values that enter the window, and those that leave it."""
        key, leaves = self._key, self._store.leaves(high)
        due = self._due.take(leaves)
        came = None
        if fresh is not None:
            seen = pl.col(self._column).alias(self.VALUE)
            came = fresh.select(*self._store.keys, seen, TIME).drop_nulls(self.VALUE).unique()
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
        joined[1:-1] = (value[1:] == value[:-1]) & (np.diff(times) <= self._store.range)
        last = np.append(value[1:] != value[:-1], True)
        stays = last & (times >= leaves)
        self._keep(links.filter(pl.Series(stays)), touched, known, due)
        begins, ends = ~old & ~joined[:-1], ~joined[1:] & ~stays
        moments = [(begins, 0, 1), (ends, self._store.range, -1)]
        return together(
            [
                links.filter(pl.Series(which)).select(
                    *self._store.keys,
                    pl.col(TIME) + later,
                    pl.lit(by, dtype=pl.Int64).alias(self._name),
                )
                for which, later, by in moments
            ]
        )

    def _keep(self, stay: Chunk, touched: Chunk, known: Chunk | None, due: Chunk | None) -> None:
        """Keep the last row of each value; one of its rows waits."""
        self._lasts.replace(touched, stay.select(*self._key, pl.col(TIME).alias(self.LAST)))
        if known is not None:
            if due is not None:
                known = known.join(due, on=self._key, how="anti", nulls_equal=True)
            stay = stay.join(known, on=self._key, how="anti", nulls_equal=True)
        self._due.put(stay.select(*self._key, TIME))

    def levels(
        self, events: Chunk | None, places: Ints | None, instants: Instants, base: Chunk
    ) -> list[pl.Series]:
        """Return the running counts."""
        deltas = np.zeros(len(instants), np.int64)
        if events is not None:
            assert places is not None
            np.add.at(deltas, places, events[self._name].to_numpy())
        return [pl.Series(self._name, instants.running(deltas, base[self._name].to_numpy()))]

    @property
    def least(self) -> int:
        """The earliest time of a row that waits to leave."""
        return self._due.least

    def snapshot(self) -> dict[str, Any]:
        """Return the state of the buffers."""
        return {"lasts": self._lasts.snapshot(), "due": self._due.snapshot()}

    def restore(self, saved: dict[str, Any]) -> None:
        """Set the state to that of a snapshot."""
        self._lasts.restore(saved["lasts"])
        self._due.restore(saved["due"])


class Ranked:
    """Values of any type as integers (*codes*): a better value has a higher code, null has 0."""

    def __init__(self, values: pl.Series, greatest: bool):
        self._values = values
        ranks = values.rank("dense").cast(pl.Int64).fill_null(0).to_numpy()
        self.most = int(ranks.max(initial=0))
        self.codes: Ints = ranks if greatest else np.where(ranks > 0, self.most + 1 - ranks, 0)
        self._where = np.zeros(self.most + 1, np.int64)
        self._where[self.codes] = np.arange(len(values))

    def values(self, codes: Ints) -> pl.Series:
        """Return the values of some codes."""
        if not len(self._values):
            return self._values.clear(len(codes))
        found = self._values.gather(self._where[codes])
        return found.to_frame().select(pl.when(pl.Series(codes > 0)).then(pl.first())).to_series()


def best_between(codes: Ints, first: Ints, last: Ints) -> Ints:
    """Return the highest code in each stretch ``first <= index < last``; 0 if it is empty.

    Two overlapping stretches whose length is a power of two cover each stretch.
    """
    best = np.zeros(len(first), np.int64)
    lengths = last - first
    level = np.frexp(np.maximum(lengths, 1).astype(np.float64))[1] - 1
    table, width = codes, 1
    for power in range(int(level.max(initial=-1)) + 1):
        at = np.flatnonzero((level == power) & (lengths > 0))
        best[at] = np.maximum(table[first[at]], table[last[at] - width])
        if len(table) > width:
            table = np.maximum(table[:-width], table[width:])
        width *= 2
    return best


def stretches(group: Ints, times: Ints, instants: Instants, range_: int) -> tuple[Ints, Ints]:
    """Return the first and the last index (exclusive) of the rows in the window at each instant.

    The rows are sorted by group and time.
    """
    moments = np.concatenate([times, instants.times, instants.times - range_])
    known, ranks = np.unique(moments, return_inverse=True)
    rows, ends, starts = np.split(ranks, [len(times), len(times) + len(instants)])
    scale = len(known)
    keys = group * scale + rows
    above = instants.group * scale
    first = np.searchsorted(keys, above + starts, side="right")
    return first, np.searchsorted(keys, above + ends, side="right")


def best_after(codes: Ints, group: Ints, most: int) -> tuple[Ints, Ints]:
    """Return, for each row, the best code of its group from this row on, and after this row.

    The rows are sorted by group and time.
    """
    back = np.arange(len(codes))[::-1]
    lift = (int(group.max(initial=0)) - group) * (most + 1)
    highest: Ints = np.maximum.accumulate((codes + lift)[back])[back] - lift
    later = np.zeros(len(codes), np.int64)
    later[:-1] = np.where(group[1:] == group[:-1], highest[1:], 0)
    return highest, later


LEFT = "__left"


@dataclass(frozen=True)
class Extreme:
    """A least or greatest value: its name, the column it is taken from, and its type."""

    name: str
    column: str
    greatest: bool
    dtype: pl.DataType

    @property
    def best(self) -> pl.Expr:
        """The expression of the best of some values; in SQL, NaN is the greatest number."""
        value = pl.col(self.name)
        if self.greatest:
            return value.nan_max() if self.dtype.is_float() else value.max()
        return value.min()

    @property
    def after(self) -> str:
        """The column with the best value of later rows."""
        return f"{self.name}_after"

    @property
    def ends(self) -> tuple[str, str]:
        """The columns with the best values of the front and of the back."""
        return f"{self.name}_front", f"{self.name}_back"


class ExtremeValues(SlidingPart):
    """The least and greatest values of the rows in the window.

    The rows are in two parts. The *front* are the rows that were there when all rows were last
    read: each is kept with the best value of the later ones. The *back* are the rows that came
    since then; one best value of them is kept. The best value of a window is the better of both.
    """

    def __init__(self, store: SlidingStore, extremes: Sequence[Extreme]):
        self._store, self._extremes = store, list(extremes)
        self.columns = {each.name: each.dtype for each in extremes}
        self._rows = store.buffer("ranked")
        self._ends = KeyedRows(store.store, "ends", store.keys)
        self._since = BEGINNING  # rows before this are the front
        self._window: Chunk | None = None

    def events(self, fresh: Chunk | None, high: int) -> Chunk | None:
        """Return the times at which rows come and leave, by group."""
        came = None
        if fresh is not None:
            keys = [*self._store.keys, TIME]
            values = [pl.col(each.column).alias(each.name) for each in self._extremes]
            came = fresh.select(*keys, *values)
            came = came.group_by(keys).agg(each.best for each in self._extremes)
            came = came.filter(pl.any_horizontal(pl.col(list(self.columns)).is_not_null()))
        self._window = None
        if high == END_OF_TIME or high > moved(self._since, self._store.range):
            return self._read_all(came, high)
        return self._read_moves(came, high)

    def _moments(self, came: Chunk | None, gone: Chunk | None) -> Chunk | None:
        keys = self._store.keys
        return together(
            [
                came.select(*keys, TIME) if came is not None else None,
                gone.select(*keys, pl.col(TIME) + self._store.range) if gone is not None else None,
            ]
        )

    def _read_all(self, came: Chunk | None, high: int) -> Chunk | None:
        """Process all rows of the window; those that stay become the front."""
        plain = [*self._store.keys, TIME, *self.columns]
        held = self._rows.take()
        self._ends.take()
        self._since = high
        live = together([None if each is None else each.select(plain) for each in (held, came)])
        if live is None:
            return None
        self._window = live
        leaves = self._store.leaves(high)
        stay = live.filter(pl.col(TIME) >= leaves)
        if stay.height:
            self._build_front(stay)
        return self._moments(came, live.filter(pl.col(TIME) < leaves))

    def _build_front(self, stay: Chunk) -> None:
        groups, (group,) = numbered([stay], self._store.keys)
        order = np.lexsort((stay[TIME].to_numpy(), group))
        stay, group = stay[order], group[order]
        first = np.searchsorted(group, np.arange(groups.height))
        later, ends = [], []
        for each in self._extremes:
            ranked = Ranked(stay[each.name], each.greatest)
            best, after = best_after(ranked.codes, group, ranked.most)
            later.append(ranked.values(after).alias(each.after))
            front, back = each.ends
            ends.append(ranked.values(best[first]).alias(front))
            ends.append(pl.Series(back, [None], dtype=each.dtype).new_from_index(0, groups.height))
        self._rows.put(stay.with_columns(later))
        self._ends.replace(groups, groups.with_columns(ends))

    def _read_moves(self, came: Chunk | None, high: int) -> Chunk | None:
        """Process the rows of the front that leave, and those that come in at the back."""
        keys, names = list(self._store.keys), list(self.columns)
        gone = self._rows.take(self._store.leaves(high))
        touched = together([None if each is None else each.select(keys) for each in (came, gone)])
        if touched is None:
            return None
        touched = touched.unique()
        ends = self._known_ends(touched)
        fronts = {each.ends[0]: each.name for each in self._extremes}
        backs = {each.ends[1]: each.name for each in self._extremes}
        old_back = ends.select(*keys, *(pl.col(end).alias(to) for end, to in backs.items()))
        if gone is not None:
            last = (
                gone.sort(TIME)
                .group_by(keys)
                .agg(pl.col(each.after).last() for each in self._extremes)
            )
            last = last.with_columns(pl.lit(True).alias(LEFT))
            ends = ends.join(last, on=keys, how="left", nulls_equal=True, maintain_order="left")
            ends = ends.with_columns(
                pl.when(pl.col(LEFT))
                .then(pl.col(each.after))
                .otherwise(pl.col(each.ends[0]))
                .alias(each.ends[0])
                for each in self._extremes
            )
        front = ends.select(*keys, *(pl.col(end).alias(to) for end, to in fronts.items()))
        backs_now = [old_back]
        if came is not None:
            backs_now.append(came.select(*keys, *names))
            nothing = (pl.lit(None, dtype=each.dtype).alias(each.after) for each in self._extremes)
            self._rows.put(came.with_columns(nothing))
        back = pl.concat(backs_now).group_by(keys).agg(each.best for each in self._extremes)
        back = back.rename({to: end for end, to in backs.items()})
        both = ends.select(*keys, *fronts).join(back, on=keys, how="left", nulls_equal=True)
        some = pl.any_horizontal(pl.col([*fronts, *backs]).is_not_null())
        columns = [*keys, *(end for each in self._extremes for end in each.ends)]
        self._ends.replace(touched, both.filter(some).select(columns))
        # The rows that stay until ``high`` are represented by two: the best of front and of back.
        always = pl.lit(self._store.leaves(high), dtype=pl.Int64).alias(TIME)
        stays = pl.concat([front, old_back]).with_columns(always)
        plain = [*keys, TIME, *names]
        moves = [each.select(plain) for each in (stays, gone, came) if each is not None]
        self._window = pl.concat(moves)
        return self._moments(came, gone)

    def _known_ends(self, touched: Chunk) -> Chunk:
        held = self._ends.look_up(touched)
        if held is None:
            nothing = (
                pl.lit(None, dtype=each.dtype).alias(end)
                for each in self._extremes
                for end in each.ends
            )
            return touched.with_columns(nothing)
        keys = self._store.keys
        return touched.join(held, on=keys, how="left", nulls_equal=True, maintain_order="left")

    def levels(
        self, events: Chunk | None, places: Ints | None, instants: Instants, base: Chunk
    ) -> list[pl.Series]:
        """Return the best values of the rows in the window at each instant."""
        before = base.select(list(self.columns))[instants.group]
        if self._window is None:
            return before.get_columns()
        window, self._window = self._window, None
        group = numbers(window, instants.groups)
        times = window[TIME].to_numpy()
        order = np.lexsort((times, group))
        order = order[group[order] >= 0]
        window, group, times = window[order], group[order], times[order]
        has = np.zeros(instants.groups.height, bool)
        has[group] = True
        known = pl.Series(has[instants.group])
        first, last = stretches(group, times, instants, self._store.range)
        found = []
        for each in self._extremes:
            ranked = Ranked(window[each.name], each.greatest)
            best = ranked.values(best_between(ranked.codes, first, last)).alias("best")
            either = pl.when(known).then(best).otherwise(before[each.name]).alias(each.name)
            found.append(pl.select(either).to_series())
        return found

    @property
    def least(self) -> int:
        """The earliest time of a row that waits to leave."""
        return self._rows.least

    def snapshot(self) -> dict[str, Any]:
        """Return the time before which rows are the front, and the state of the buffers."""
        return {
            "since": self._since,
            "rows": self._rows.snapshot(),
            "ends": self._ends.snapshot(),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Set the state to that of a snapshot."""
        self._since = saved["since"]
        self._rows.restore(saved["rows"])
        self._ends.restore(saved["ends"])
