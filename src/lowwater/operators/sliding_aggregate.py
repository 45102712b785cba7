"""Sliding aggregate: a window that moves with every row and answers whenever its answer changes.

At an instant ``t`` the window holds the rows with ``t - range < ts <= t``. It changes when rows
come, at their time, and when they leave, exactly a range later. A group is answered at each instant
at which one of its aggregates changes. Its window is empty at first; when it is empty again, the
group is answered once more and dropped.

The input needs no order. Rows at or above the mark are held; instants below it are answered.

Progress: with the mark at ``m``, all instants before ``m`` are answered: ends are promised up to
``m``, starts a range less.

Invariant: answers follow from the rows alone, not from how they came, how they were cut or when the
mark moved. A group is kept exactly while one of its levels is not that of an empty window.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import polars as pl

from lowwater.errors import QueryError
from lowwater.operators.aggregates import Call, in_key_order
from lowwater.operators.checked import Failure, checked
from lowwater.operators.exact_sums import overflows, upper_half
from lowwater.operators.kernel import Kernel, Request
from lowwater.operators.sliding_sums import (
    ALL,
    ROWS,
    TIME,
    ExactSum,
    Instants,
    RunningSums,
    SlidingPart,
    SlidingStore,
)
from lowwater.operators.sliding_values import DistinctValues, Extreme, ExtremeValues
from lowwater.operators.window_aggregate import END
from lowwater.operators.window_state import START
from lowwater.state.keyed_rows import KeyedRows
from lowwater.state.store import ChunkStore
from lowwater.state.time_buffer import TimeBuffer
from lowwater.stream.element import BEGINNING, END_OF_TIME, Chunk, Element, Punctuation, moved
from lowwater.stream.floor import Floor
from lowwater.stream.time_domain import TimeDomain

HELD, BASE = "held", "base"
_BEFORE = "__before_"
FUNCTIONS = {
    "count": ("count(*)", "count(x)", "count(DISTINCT x)"),
    "sum": ("sum",),
    "avg": ("avg",),
    "min": ("min",),
    "max": ("max",),
}
"""The aggregates that a sliding window has, and how they are written."""


def check(call: Call) -> None:
    """Raise if an aggregate cannot be computed over a sliding window."""
    if call.function not in FUNCTIONS:
        raise unsupported(call.function)


def unsupported(what: str) -> QueryError:
    """Return the error for an aggregate that is not supported."""
    *known, last = (spelling for each in FUNCTIONS.values() for spelling in each)
    return QueryError(
        f"a window that slides on change has no {what}; it has {', '.join(known)} and {last}"
    )


class _Columns:
    """The columns that are kept for some aggregates, each once even if several need it."""

    def __init__(self, calls: Sequence[Call]):
        self.arguments: dict[str, pl.Expr] = {}
        self.sums: dict[str, pl.Expr] = {}
        self.tallies: dict[str, pl.DataType] = {}
        self.exact: dict[str, str] = {}
        self.distinct: dict[str, str] = {}
        self.extremes: dict[str, Extreme] = {}
        self._known: dict[bytes, str] = {}
        self.finish = [self._finish(call).alias(call.name) for call in calls]

    def _argument(self, expression: pl.Expr) -> str:
        written = expression.meta.serialize()
        if written not in self._known:
            self._known[written] = name = f"__a{len(self._known)}"
            self.arguments[name] = expression
        return self._known[written]

    def _tally(self, name: str, total: pl.Expr, dtype: pl.DataType) -> pl.Expr:
        self.sums[name], self.tallies[name] = total, dtype
        return pl.col(name)

    def _finish(self, call: Call) -> pl.Expr:
        """Return the expression of an aggregate over levels."""
        if call.argument is None:
            return self._tally(ROWS, pl.len(), pl.Int64())
        assert call.dtype is not None
        value, dtype = call.argument, call.dtype
        if call.function in ("sum", "avg"):
            return self._total(call, value, dtype)
        if dtype.is_float():
            value = value + 0.0  # -0.0 becomes 0.0
        argument = self._argument(value)
        if call.distinct:
            self.distinct[argument] = name = f"{argument}_kinds"
            return pl.col(name)
        if call.function == "count":
            return self._count(argument)
        name = f"{argument}_{call.function}"
        self.extremes[name] = Extreme(name, argument, call.function == "max", dtype)
        return pl.col(name)

    def _count(self, argument: str) -> pl.Expr:
        return self._tally(f"{argument}_n", pl.col(argument).count(), pl.Int64())

    def _total(self, call: Call, value: pl.Expr, dtype: pl.DataType) -> pl.Expr:
        floating = call.function == "avg" or dtype.is_float()
        argument = self._argument(value.cast(pl.Float64) if floating else value)
        count = self._count(argument)
        if floating:
            self.exact[argument] = name = f"{argument}_sum"
            total = pl.col(name)
            total = total / count if call.function == "avg" else total.cast(dtype)
        else:
            kind = pl.Decimal(38, dtype.scale) if isinstance(dtype, pl.Decimal) else pl.Int64()
            total = self._tally(f"{argument}_sum", pl.col(argument).sum(), kind)
            if kind == pl.Int64():
                upper = upper_half(pl.col(argument)).sum()
                high = self._tally(f"{argument}_high", upper, pl.Int64())
                large = Failure(
                    overflows(total, high),
                    f"{call.name}: the sum does not fit BIGINT; sum a DOUBLE instead",
                )
                return checked(pl.when(count > 0).then(total), pl.Int64(), [large])
        return pl.when(count > 0).then(total)


class SlidingAggregate(Kernel):
    """Aggregates rows per group over the last ``range`` ticks, at every instant."""

    rule: ClassVar[str] = (
        "instants before the mark are answered; ends are promised up to the mark,"
        " starts a range less"
    )

    def __init__(
        self,
        store: ChunkStore,
        time: str,
        domain: TimeDomain,
        range_: int,
        groups: Sequence[str],
        calls: Sequence[Call],
        slice_ticks: int,
    ):
        super().__init__(store)
        self._time, self._domain, self._range = time, domain, range_
        self._groups, self._keys = list(groups), tuple(groups) or (ALL,)
        columns = _Columns(calls)
        self._arguments = [each.alias(name) for name, each in columns.arguments.items()]
        self._finish, self._names = columns.finish, [call.name for call in calls]
        self._parts = _parts(SlidingStore(store, self._keys, range_), columns)
        self._columns: dict[str, pl.DataType] = {}
        for part in self._parts:
            self._columns |= part.columns
        self._held = TimeBuffer(store, HELD, TIME, slice_ticks)
        self._base = KeyedRows(store, BASE, self._keys)
        self._mark = BEGINNING

    # ---- rows ------------------------------------------------------------------------------

    def on_chunk(self, port: int, chunk: Chunk) -> Sequence[Element]:
        """Hold rows until the mark has passed them."""
        ticks = self._domain.to_ticks(pl.col(self._time)).alias(TIME)
        keys = [pl.col(name) for name in self._groups] or [pl.lit(0, dtype=pl.Int8).alias(ALL)]
        names = [each.meta.output_name() for each in self._arguments]
        rows = chunk.with_columns(ticks, *self._arguments, *keys)  # literals get a value a row
        self._held.put(rows.select(*self._keys, TIME, *names))
        return []

    # ---- answers ---------------------------------------------------------------------------

    def on_punctuation(self, port: int, promise: Punctuation) -> Sequence[Element]:
        """Return the answers of instants before the mark, and the promises that follow."""
        if promise.attributes != (self._time,) or promise.values[0] <= self._mark:
            return []
        self._mark = promise.values[0]
        promises = [
            Punctuation.linear(START, self._mark - self._range),
            Punctuation.linear(END, self._mark),
        ]
        return [*self._answer(self._mark), *promises]

    def close_port(self, port: int) -> Sequence[Element]:
        """Return the answers of all instants that are left: all rows leave the window."""
        self._mark = END_OF_TIME
        return self._answer(END_OF_TIME)

    def _answer(self, high: int) -> list[Element]:
        """Return the answers of all instants before a tick."""
        fresh = self._held.take(high)
        events = [part.events(fresh, high) for part in self._parts]
        some = [each for each in events if each is not None]
        if not some:
            return []
        instants, found = Instants.of(some, self._keys, TIME)
        places = iter(found)
        base = self._levels_of(instants.groups)
        levels = pl.DataFrame(
            [
                level
                for part, each in zip(self._parts, events, strict=True)
                for level in part.levels(
                    each, next(places) if each is not None else None, instants, base
                )
            ]
        )
        self._keep_levels(instants, levels)
        changed = self._changes(instants, levels, base.select(levels.columns))
        return [self._shown(changed)] if changed.height else []

    def _levels_of(self, groups: Chunk) -> Chunk:
        """Return the last levels of groups; those of an empty window for groups that have none."""
        held = self._base.look_up(groups)
        if held is None:
            empty = (pl.lit(None, dtype=dtype).alias(n) for n, dtype in self._columns.items())
            known = groups.with_columns(empty)
        else:
            keys = self._keys
            known = groups.join(held, on=keys, how="left", nulls_equal=True, maintain_order="left")
        return known.with_columns(pl.col(self._counted).fill_null(0))

    @property
    def _counted(self) -> list[str]:
        """Columns that are 0 where a window is empty."""
        return [name for part in self._parts if part.counts for name in part.columns]

    def _keep_levels(self, instants: Instants, levels: Chunk) -> None:
        """Keep the last levels of each group, unless they are those of an empty window."""
        last = [*levels[instants.lasts].get_columns()]
        for part in self._parts:
            last += part.kept()
        rows = instants.groups.with_columns(last)
        some = [condition for part in self._parts for condition in part.not_empty]
        rows = rows.filter(pl.any_horizontal(some))
        self._base.replace(instants.groups, rows.select(*self._keys, *self._columns))

    def _changes(self, instants: Instants, levels: Chunk, before: Chunk) -> Chunk:
        """Return the answers that differ from those before them, with their groups and times."""
        earlier = np.arange(len(instants)) - 1
        earlier[instants.firsts] = len(instants) + np.arange(len(before))
        answers = pl.concat([levels, before]).select(self._finish)
        now = answers.head(len(instants))
        then = answers[earlier].select(pl.all().name.prefix(_BEFORE))
        changes = (pl.col(name).ne_missing(pl.col(_BEFORE + name)) for name in self._names)
        both = pl.concat([now, then], how="horizontal")
        at = np.flatnonzero(both.select(pl.any_horizontal(changes)).to_series().to_numpy())
        keys = instants.groups[instants.group[at]].select(self._groups)
        times = pl.Series(END, instants.times[at])
        return pl.concat([times.to_frame(), keys, now[at]], how="horizontal")

    def _shown(self, answers: Chunk) -> Chunk:
        answers = in_key_order(answers, [END, *self._groups])
        start = self._domain.from_ticks(pl.col(END) - self._range).alias(START)
        end = self._domain.from_ticks(pl.col(END))
        return answers.select(start, end, *self._groups, *self._names)

    # ---- requests and saving --------------------------------------------------------------

    def requests(self) -> Sequence[Request]:
        """Request a mark just past the next row that comes or leaves."""
        leaving = [part.least + self._range for part in self._parts if part.least < END_OF_TIME]
        due = min([self._held.least, *leaving])
        return [Request(0, self._time, due + 1)] if due < END_OF_TIME else []

    def needs(self, attribute: str, mark: int) -> Sequence[Request]:
        """Request the mark itself for ends, and a range more for starts."""
        if attribute not in (START, END):
            return []
        return [Request(0, self._time, mark + self._range if attribute == START else mark)]

    def floors(self) -> Sequence[Floor]:
        """Return a range less than the first instant that is needed, and a tick."""
        ends = [self.floor[END]] if END in self.floor else []
        ends += [moved(self.floor[START], self._range)] if START in self.floor else []
        if not ends:
            return [{}]
        return [{self._time: moved(max(ends), -self._range - 1)}]

    def marks(self) -> dict[str, int]:
        """Return the mark of the input."""
        return {self._time: self._mark}

    def snapshot(self) -> dict[str, Any]:
        """Return the mark, and the state of the rows and the parts."""
        return super().snapshot() | {
            "mark": self._mark,
            "held": self._held.snapshot(),
            "base": self._base.snapshot(),
            "parts": [part.snapshot() for part in self._parts],
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Set the state to that of a snapshot."""
        super().restore(saved)
        self._mark = saved["mark"]
        self._held.restore(saved["held"])
        self._base.restore(saved["base"])
        for part, each in zip(self._parts, saved["parts"], strict=True):
            part.restore(each)


def _parts(store: SlidingStore, columns: _Columns) -> list[SlidingPart]:
    parts: list[SlidingPart] = []
    if columns.tallies:
        parts.append(RunningSums(store, columns.sums, columns.tallies))
    parts += [ExactSum(store, column, name) for column, name in columns.exact.items()]
    parts += [DistinctValues(store, column, name) for column, name in columns.distinct.items()]
    if columns.extremes:
        parts.append(ExtremeValues(store, list(columns.extremes.values())))
    return parts
