"""Least and greatest values of a sliding window, as a queue out of two stacks.

Rows before some time are the *front*: each knows the best value of those after it, so that when it
leaves the next best is known. Rows since are the *back*, of which the best value is enough. When
the front is gone, all rows there are become a new one. That happens once a range, and to a row
once.

Invariant: of each group with a row in the window the best values of front and back are known; a row
of the front knows the best value of later rows of its group in the front.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from lowwater.operators.sliding_changes import (
    Instants,
    Ints,
    Ranked,
    best_after,
    best_between,
    numbered,
    numbers,
    stretches,
)
from lowwater.operators.sliding_parts import TIME, Part, Place, together
from lowwater.state.by_key import ByKey
from lowwater.stream.element import BEGINNING, END_OF_TIME, Chunk, moved

LEFT = "__left"


@dataclass(frozen=True)
class Extreme:
    """A least or greatest value: of which column, and under which name."""

    name: str
    column: str
    greatest: bool
    dtype: pl.DataType

    @property
    def best(self) -> pl.Expr:
        """The best of some values; to SQL, NaN is the greatest number."""
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


class Extremes(Part):
    """Least and greatest values of the rows in the window."""

    def __init__(self, place: Place, extremes: Sequence[Extreme]):
        self._place, self._extremes = place, list(extremes)
        self.columns = {each.name: each.dtype for each in extremes}
        self._rows = place.by_time("ranked")
        self._ends = ByKey(place.store, "ends", place.keys)
        self._since = BEGINNING  # rows before this are the front
        self._window: Chunk | None = None

    def events(self, fresh: Chunk | None, high: int) -> Chunk | None:
        """Rows that come, and rows that leave."""
        came = None
        if fresh is not None:
            keys = [*self._place.keys, TIME]
            values = [pl.col(each.column).alias(each.name) for each in self._extremes]
            came = fresh.select(*keys, *values)
            came = came.group_by(keys).agg(each.best for each in self._extremes)
            came = came.filter(pl.any_horizontal(pl.col(list(self.columns)).is_not_null()))
        self._window = None
        if high == END_OF_TIME or high > moved(self._since, self._place.range):
            return self._anew(came, high)
        return self._further(came, high)

    def _moments(self, came: Chunk | None, gone: Chunk | None) -> Chunk | None:
        keys = self._place.keys
        return together(
            [
                came.select(*keys, TIME) if came is not None else None,
                gone.select(*keys, pl.col(TIME) + self._place.range) if gone is not None else None,
            ]
        )

    def _anew(self, came: Chunk | None, high: int) -> Chunk | None:
        """All rows there are in hand; those that stay become the front."""
        plain = [*self._place.keys, TIME, *self.columns]
        held = self._rows.take()
        self._ends.take()
        self._since = high
        live = together([None if each is None else each.select(plain) for each in (held, came)])
        if live is None:
            return None
        self._window = live
        leaves = self._place.leaves(high)
        stay = live.filter(pl.col(TIME) >= leaves)
        if stay.height:
            self._build_front(stay)
        return self._moments(came, live.filter(pl.col(TIME) < leaves))

    def _build_front(self, stay: Chunk) -> None:
        groups, (group,) = numbered([stay], self._place.keys)
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

    def _further(self, came: Chunk | None, high: int) -> Chunk | None:
        """Some rows of the front leave, some come in at the back."""
        keys, names = list(self._place.keys), list(self.columns)
        gone = self._rows.take(self._place.leaves(high))
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
        # What stays through all of this release is there as if it were two rows.
        always = pl.lit(self._place.leaves(high), dtype=pl.Int64).alias(TIME)
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
        keys = self._place.keys
        return touched.join(held, on=keys, how="left", nulls_equal=True, maintain_order="left")

    def levels(
        self, events: Chunk | None, places: Ints | None, instants: Instants, base: Chunk
    ) -> list[pl.Series]:
        """The best values of the rows in the window at each instant."""
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
        first, last = stretches(group, times, instants, self._place.range)
        found = []
        for each in self._extremes:
            ranked = Ranked(window[each.name], each.greatest)
            best = ranked.values(best_between(ranked.codes, first, last)).alias("best")
            either = pl.when(known).then(best).otherwise(before[each.name]).alias(each.name)
            found.append(pl.select(either).to_series())
        return found

    @property
    def least(self) -> int | None:
        """The earliest time of a row that waits to leave."""
        return self._rows.least

    def snapshot(self) -> dict[str, Any]:
        """Where the front ends, and how rows are sliced."""
        return {
            "since": self._since,
            "rows": self._rows.snapshot(),
            "ends": self._ends.snapshot(),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        self._since = saved["since"]
        self._rows.restore(saved["rows"])
        self._ends.restore(saved["ends"])
