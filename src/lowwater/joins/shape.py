"""The columns of a join of two inputs: the keys, the names, the matching, the output."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Literal

import numpy as np
import polars as pl

from lowwater.joins.reach import Band, Reach, Ticks
from lowwater.stream.element import Chunk
from lowwater.stream.time_domain import TimeDomain

How = Literal["inner", "left", "right", "full", "semi", "anti"]
IDS = ("__id0", "__id1")
BUCKET = "__bucket"
FAR = 8
"""Rows spread over more reaches than this are matched by buckets of time as well as by key."""


@dataclass(frozen=True, slots=True)
class JoinKind:
    """The output of a kind of join. Side 0 is the left input, side 1 the right one."""

    shown: tuple[int, ...] = (0, 1)
    """The sides whose columns come out."""
    alone: tuple[int, ...] = ()
    """The sides whose rows come out if no row of the other side matches them."""

    @property
    def whole(self) -> tuple[int, ...]:
        """The sides whose columns are in every result."""
        return tuple(side for side in self.shown if 1 - side not in self.alone)

    @property
    def tracked(self) -> tuple[int, ...]:
        """The sides of which it matters whether a row has a partner."""
        return self.shown if self.shown == (0,) else self.alone

    @property
    def outer(self) -> bool:
        """True if the columns of a side are null in some results."""
        return self.whole != self.shown

    @property
    def pairs(self) -> bool:
        """True if every result is a pair of rows, with the columns of both."""
        return self.whole == (0, 1)


KINDS: Mapping[How, JoinKind] = {
    "inner": JoinKind(),
    "left": JoinKind(alone=(0,)),
    "right": JoinKind(alone=(1,)),
    "full": JoinKind(alone=(0, 1)),
    "semi": JoinKind(shown=(0,)),
    "anti": JoinKind(shown=(0,), alone=(0,)),
}
"""The kinds of joins of two inputs, by the value of ``how=``."""


def kind_words(how: How) -> str:
    """Return a kind of join as messages name it, with its article."""
    return f"{'an' if how[0] in 'ai' else 'a'} {how} join"


@dataclass(frozen=True, slots=True)
class Carried:
    """A progressing column of an input beside its time, at most ``behind`` ticks below the time."""

    side: int
    name: str
    out: str
    behind: int


@dataclass(frozen=True)
class JoinShape:
    """The columns that a join matches on, and those it emits."""

    reach: Reach
    domain: TimeDomain
    times: tuple[str, str]
    """The time columns of left and right, under their own names."""
    on: tuple[tuple[str, str], ...]
    """Pairs of columns that must be equal."""
    right_names: Mapping[str, str]
    """The name inside the join of each right column."""
    output: Mapping[str, pl.DataType]
    """The columns of the output."""
    merged: Mapping[str, str]
    """Output key column to the right column (inside name) that has the same value."""
    residual: pl.Expr | None
    kind: JoinKind
    carried: tuple[Carried, ...] = ()
    """Progressing columns of the output beside the times."""

    @property
    def out_times(self) -> tuple[str, str]:
        """The time columns of left and right in the output."""
        right = self.right_names[self.times[1]]
        same = [out for out, inside in self.merged.items() if inside == right]
        return self.times[0], same[0] if same else right

    def out_names(self, side: int) -> dict[str, str]:
        """Return the progressing columns of a side, with their names in the output."""
        times = {self.times[side]: self.out_times[side]}
        return times | {each.name: each.out for each in self.carried if each.side == side}

    def keeps(self, side: int) -> bool:
        """Return true if rows of a side come out even if no row of the other side matches them."""
        return side in self.kind.alone

    def shows(self, key: str) -> bool:
        """Return true if a left column that is matched on is in the output and never null there."""
        return key in self.output and (not self.kind.outer or key in self.merged)

    def group_keys(self, side: int, keys: Sequence[str]) -> dict[str, str]:
        """Return the inside names, on a side, of the left columns that name groups."""
        partner = dict(reversed(self.on))
        return {key: key if side == 0 else self.right_names[partner[key]] for key in keys}

    def inside_time(self, side: int) -> pl.Expr:
        """Return the ticks of a side's time, as an expression over inside names."""
        name = self.times[0] if side == 0 else self.right_names[self.times[1]]
        return self.domain.to_ticks(pl.col(name))

    def prepare(self, side: int, chunk: Chunk, first_id: int | None = None) -> Chunk:
        """Return the rows of a side under their inside names, with a number each from ``first_id``
        on if it is given."""
        if side == 1:
            chunk = chunk.rename(dict(self.right_names))
        if first_id is None:
            return chunk
        numbers = pl.int_range(first_id, first_id + chunk.height, dtype=pl.Int64)
        return chunk.with_columns(numbers.alias(IDS[side]))

    def match(self, left: Chunk, right: Chunk) -> Chunk:
        """Return all matching pairs, with the columns of both sides under their inside names."""
        kinds = [self.output[name] for name, _ in self.on]
        inside = [self.right_names[other] for _, other in self.on]
        left_on = [key_of(name, kind) for (name, _), kind in zip(self.on, kinds, strict=True)]
        right_on = [key_of(name, kind) for name, kind in zip(inside, kinds, strict=True)]
        keys = [self.reach.key(self.inside_time(side)) for side in (0, 1)]
        if keys[0] is not None and keys[1] is not None:
            if self.times not in self.on:
                left_on.append(keys[0])
                right_on.append(keys[1])
        elif not self.on or self._far_apart(left, right):
            left, right = self._bucketed(left, right)
            left_on.append(pl.col(BUCKET))
            right_on.append(pl.col(BUCKET))
        pairs = left.join(right, left_on=left_on, right_on=right_on, coalesce=False)
        check = self._check()
        return pairs if check is None else pairs.filter(check)

    def _far_apart(self, left: Chunk, right: Chunk) -> bool:
        names = (self.times[0], self.right_names[self.times[1]])
        times = (
            self.domain.array_of(rows[name])
            for rows, name in zip((left, right), names, strict=True)
        )
        return far_apart(times, self.reach.span)

    def _bucketed(self, left: Chunk, right: Chunk) -> tuple[Chunk, Chunk]:
        reach = self.reach
        assert isinstance(reach, Band)
        time, width = self.inside_time(0), reach.before + reach.after + 1
        between = (time - reach.before, time + reach.after)
        return bucketed(left, between, right, self.inside_time(1), width)

    def _check(self) -> pl.Expr | None:
        parts = [self.reach.check(self.inside_time(0), self.inside_time(1)), self.residual]
        some = [part for part in parts if part is not None]
        return reduce(and_, some) if some else None

    def put_out(self, pairs: Chunk) -> Chunk:
        """Return pairs, or rows of one side alone, in the columns of the output."""
        columns = []
        for name, dtype in self.output.items():
            inside = self.merged.get(name)
            have = [pl.col(each) for each in (name, inside) if each in pairs.columns]
            if not have:
                columns.append(pl.lit(None, dtype=dtype).alias(name))
            else:
                columns.append((have[0] if len(have) == 1 else pl.coalesce(have)).alias(name))
        return pairs.select(columns)


def key_of(name: str, dtype: pl.DataType) -> pl.Expr:
    """Return a key column. Floats are compared by their bits; as in SQL, all NaNs are equal, and
    0.0 equals -0.0."""
    column = pl.col(name)
    if not dtype.is_float():
        return column
    number = column.cast(pl.Float64).fill_nan(float("nan")).replace(-0.0, 0.0)
    return number.reinterpret(dtype=pl.Int64)


def far_apart(times: Iterable[Ticks], span: int) -> bool:
    """Return true if rows are spread over so many reaches that buckets of time make a match
    cheaper."""
    return bool(max(map(np.ptp, times)) > FAR * span)


def bucketed(
    rows: Chunk, between: tuple[pl.Expr, pl.Expr], others: Chunk, time: pl.Expr, width: int
) -> tuple[Chunk, Chunk]:
    """Return both sides with a bucket of time that is equal for matching rows.

    A row can match others between two times, less than a bucket apart. They lie in at most two
    buckets; the row is copied into each, and matches another row in exactly one.
    """
    early, late = (each // width for each in between)
    twice = [
        rows.with_columns(early.alias(BUCKET)),
        rows.filter(early != late).with_columns(late.alias(BUCKET)),
    ]
    return pl.concat(twice), others.with_columns((time // width).alias(BUCKET))
