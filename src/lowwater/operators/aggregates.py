"""Aggregates in three steps: lift rows, merge partials, finish answers.

An aggregate has a few *partial columns*. ``lift`` computes them from rows (each row is a partial of
its own), ``merge`` folds the partials of a group into one, ``finish`` turns a partial into the
value. Nulls are treated as SQL treats them.

Invariant: merging is associative and commutative, so rows may come in any order, in any chunks, and
through any number of levels.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Literal

import polars as pl

from lowwater.errors import OptionError, QueryError, unknown_name
from lowwater.operators import exact_sums, sketches
from lowwater.operators.checked import Failure, checked

MANY = 200_000
"""Number of rows from which polars' streaming engine groups faster than the in-memory one."""
FEW = 20_000
"""Number of rows below which answers are sorted by all keys."""


@dataclass(frozen=True)
class Aggregate:
    """An aggregate: its name in the output, and the expressions of its three steps."""

    name: str
    lift: tuple[pl.Expr, ...]
    merge: tuple[pl.Expr, ...]
    finish: pl.Expr
    own: UserAggregate | None = None
    """The user's aggregate that it was built from; None for a built-in one."""
    small: Callable[[pl.DataFrame], bool] | None = None
    """Returns true for partials that :attr:`short` merges to the same result; None without
    ``short``."""
    short: tuple[pl.Expr, ...] = ()
    """Expressions that merge some partials faster than :attr:`merge`."""
    adds: Callable[[pl.DataFrame], bool] | None = None
    """Returns true for partials that are merged by adding each column, which has no null; None if
    none are."""

    def merging(self, partials: pl.DataFrame) -> tuple[pl.Expr, ...]:
        """Return the expressions that merge these partials."""
        return self.short if self.small is not None and self.small(partials) else self.merge


@dataclass(frozen=True)
class Call:
    """A call of a built-in aggregate: ``function(argument)`` under the name ``name``."""

    name: str
    function: str
    argument: pl.Expr | None
    distinct: bool = False
    floating: bool = False
    time: pl.Expr | None = None
    """The ticks by which first, last and collect order values."""
    share: float | None = None
    """The quantile, from 0 to 1."""
    dtype: pl.DataType | None = None
    """The argument's type."""


@dataclass(frozen=True)
class UserAggregate:
    """A user's own aggregate, as four functions. States are stored pickled.

    >>> spread = lw.aggregate(
    ...     init=lambda: (float("inf"), float("-inf")),
    ...     add=lambda s, rows: (min(s[0], rows["v"].min()), max(s[1], rows["v"].max())),
    ...     merge=lambda one, two: (min(one[0], two[0]), max(one[1], two[1])),
    ...     finish=lambda s: s[1] - s[0],
    ...     columns=("v",),
    ... )
    >>> s = lw.stream(pl.DataFrame({"ts": [1, 2], "v": [3.0, 10.0]}), name="s", time="ts")
    >>> s.window("1 minute").agg(spread=spread).collect()["spread"].to_pylist()
    [7.0]

    ``init``
        Function that returns the state of no rows.
    ``add``
        Function of a state and of rows of one group, a Polars frame with ``columns``; it returns
        the state with these rows.
    ``merge``
        Function of two states; it returns the state of the rows of both.
    ``finish``
        Function of a state; it returns the value of the aggregate.
    ``columns``
        Names of the columns that ``add`` reads.
    ``returns``
        Polars type of the value. Default: ``Float64``.
    ``version``
        Number or text. On Spark, two runs with one checkpoint continue from each other if and only
        if their versions are equal, whatever the code. Default: None, a checkpoint whose states
        were made by other code is refused.
    """

    init: Callable[[], Any]
    add: Callable[[Any, pl.DataFrame], Any]
    merge: Callable[[Any, Any], Any]
    finish: Callable[[Any], Any]
    columns: tuple[str, ...]
    returns: pl.DataType | type[pl.DataType] = pl.Float64
    version: str | int | None = None

    def __post_init__(self) -> None:
        if isinstance(self.version, bool) or not isinstance(self.version, str | int | None):
            raise OptionError(f"version= is a number or a text, not {self.version!r}")

    def build(self, name: str, schema: Mapping[str, pl.DataType]) -> Aggregate:
        """Return the three steps of this aggregate over rows of a schema; ``name`` is its output.

        A partial is either a state or a row not yet added to one; merging adds the rows of a
        group in one call.
        """
        part = f"{name}__part"
        row_type = pl.Struct({column: schema[column] for column in self.columns})
        part_type = pl.Struct({"state": pl.Binary(), "row": row_type})

        def fold(parts: pl.Series) -> pl.Series:
            states, rows = parts.struct.field("state"), parts.struct.field("row")
            folded = [pickle.loads(state) for state in states.drop_nulls()]
            raw = rows.filter(states.is_null())
            if len(raw):
                folded.append(self.add(self.init(), raw.struct.unnest()))
            state = pickle.dumps(reduce(self.merge, folded))
            return pl.Series([{"state": state, "row": None}], dtype=part_type)

        lifted = pl.struct(
            pl.lit(None, dtype=pl.Binary).alias("state"), pl.struct(self.columns).alias("row")
        )
        merged = pl.col(part).map_batches(fold, return_dtype=part_type, returns_scalar=True)
        finished = (
            pl.col(part)
            .struct.field("state")
            .map_elements(lambda state: self.finish(pickle.loads(state)), return_dtype=self.returns)
        )
        return Aggregate(name, (lifted.alias(part),), (merged,), finished.alias(name), self)


def _argument(call: Call) -> pl.Expr:
    assert call.argument is not None
    return call.argument


def _count(call: Call) -> Aggregate:
    if call.distinct:
        return _count_distinct(call)
    part = f"{call.name}__n"
    every = pl.lit(1, dtype=pl.Int64)
    lift = every if call.argument is None else call.argument.is_not_null().cast(pl.Int64)
    merged, value = pl.col(part).sum(), pl.col(part).alias(call.name)
    return Aggregate(call.name, (lift.alias(part),), (merged,), value, adds=_always)


def _always(_: pl.DataFrame) -> bool:
    return True


def _count_distinct(call: Call) -> Aggregate:
    part = f"{call.name}__set"
    lift = _argument(call).reshape((-1, 1)).arr.to_list().alias(part)
    merge = pl.col(part).list.explode().drop_nulls().unique()
    finish = pl.col(part).list.len().cast(pl.Int64).alias(call.name)
    return Aggregate(call.name, (lift,), (merge.implode().alias(part),), finish)


def _sum(call: Call) -> Aggregate:
    if call.dtype is not None and (call.dtype.is_integer() or call.dtype == pl.Boolean()):
        return _whole_total(call)
    return _total(call, _argument(call))


def _avg(call: Call) -> Aggregate:
    if call.dtype is not None and call.dtype.is_integer() and call.dtype != pl.UInt64():
        return _whole_total(call)
    return _total(call, _argument(call).cast(pl.Float64))


def _total(call: Call, value: pl.Expr) -> Aggregate:
    """Return a sum or average of a value; it is null if all values are."""
    total, seen = f"{call.name}__sum", f"{call.name}__n"
    result = pl.col(total) / pl.col(seen) if call.function == "avg" else pl.col(total)
    return Aggregate(
        call.name,
        (value.fill_null(0).alias(total), value.is_not_null().cast(pl.Int64).alias(seen)),
        (pl.col(total).sum(), pl.col(seen).sum()),
        pl.when(pl.col(seen) > 0).then(result).alias(call.name),
        adds=_always if call.dtype is not None and call.dtype.is_float() else None,
    )


def _whole_total(call: Call) -> Aggregate:
    """Return a sum or average of integers that is exact however large it becomes."""
    total, wraps, seen = f"{call.name}__sum", f"{call.name}__wraps", f"{call.name}__n"
    value, some = _argument(call).cast(pl.Int64), pl.col(seen) > 0
    if call.function == "avg":
        finish = pl.when(some).then(exact_sums.as_double(total, wraps)) / pl.col(seen)
    else:
        large = Failure(
            pl.col(wraps) != 0, f"{call.name}: the sum does not fit BIGINT; sum a DOUBLE instead"
        )
        finish = checked(pl.when(some).then(pl.col(total)), pl.Int64(), [large])
    return Aggregate(
        call.name,
        (
            value.fill_null(0).alias(total),
            pl.lit(0, dtype=pl.Int32).alias(wraps),
            value.is_not_null().cast(pl.Int64).alias(seen),
        ),
        (*exact_sums.merged_sum(total, wraps), pl.col(seen).sum()),
        finish.alias(call.name),
        small=(small := exact_sums.SmallSums(total, wraps)),
        adds=small,
        short=(pl.col(total).sum(), pl.lit(0, dtype=pl.Int32).alias(wraps), pl.col(seen).sum()),
    )


def _extreme(call: Call) -> Aggregate:
    part = f"{call.name}__{call.function}"
    column = pl.col(part)
    merge = column.min()
    if call.function == "max":  # to SQL, NaN is the greatest number
        merge = column.nan_max() if call.floating else column.max()
    return Aggregate(
        call.name, (_argument(call).alias(part),), (merge,), pl.col(part).alias(call.name)
    )


def _stddev(call: Call) -> Aggregate:
    """Return the sample standard deviation, from count, mean and squared deviations."""
    n, mean, squares = f"{call.name}__n", f"{call.name}__mean", f"{call.name}__m2"
    value = _argument(call).cast(pl.Float64)
    count, middle = pl.col(n), pl.col(mean)
    total = count.sum()
    center = (count * middle).sum() / total
    spread = (pl.col(squares) + count * (middle - center) ** 2).sum()
    some = total > 0
    finish = (
        pl.when(pl.col(n) > 1).then((pl.col(squares) / (pl.col(n) - 1)).sqrt()).alias(call.name)
    )
    return Aggregate(
        call.name,
        (
            value.is_not_null().cast(pl.Int64).alias(n),
            value.fill_null(0.0).alias(mean),
            pl.lit(0.0).alias(squares),
        ),
        (
            total.alias(n),
            pl.when(some).then(center).otherwise(0.0).alias(mean),
            pl.when(some).then(spread).otherwise(0.0).alias(squares),
        ),
        finish,
    )


def _edge(call: Call) -> Aggregate:
    """Return the first or last value by time; of equal times, the least or greatest value."""
    if call.time is None:
        raise QueryError(f"{call.function} needs a stream with a time attribute")
    part, at = f"{call.name}__{call.function}", f"{call.name}__at"
    value = _argument(call)
    order = [pl.col(at), pl.col(part)]
    last = call.function == "last"
    nulls = {"descending": [last, last], "nulls_last": True}
    ranked = (pl.col(part).sort_by(order, **nulls), pl.col(at).sort_by(order, **nulls))  # type: ignore[arg-type]
    return Aggregate(
        call.name,
        (value.alias(part), pl.when(value.is_not_null()).then(call.time).alias(at)),
        (ranked[0].first(), ranked[1].first()),
        pl.col(part).alias(call.name),
    )


def _collect(call: Call) -> Aggregate:
    """Return all values that are not null, in order of time and then of value."""
    if call.time is None:
        raise QueryError("collect needs a stream with a time attribute")
    part, at, value = f"{call.name}__list", "at", "value"
    pair = pl.struct(call.time.alias(at), _argument(call).alias(value))
    lifted = pl.when(_argument(call).is_not_null()).then(pair)
    lists = lifted.reshape((-1, 1)).arr.to_list().alias(part)
    merge = pl.col(part).list.explode().drop_nulls().implode().alias(part)
    finish = pl.col(part).list.sort().list.eval(pl.element().struct.field(value))
    return Aggregate(call.name, (lists,), (merge,), finish.alias(call.name))


def _approx_count_distinct(call: Call) -> Aggregate:
    assert call.dtype is not None
    steps = sketches.approx_count_distinct(call.name, _argument(call), call.dtype)
    return _in_steps(call, steps)


def _approx_quantile(call: Call) -> Aggregate:
    assert call.share is not None
    return _in_steps(call, sketches.approx_quantile(call.name, _argument(call), call.share))


def _in_steps(call: Call, steps: sketches.Steps) -> Aggregate:
    lifted, merged, finished = steps
    return Aggregate(call.name, (lifted,), (merged,), finished.alias(call.name))


# ---- the built-in aggregates -------------------------------------------------------------------


def _same(dtype: pl.DataType) -> pl.DataType:
    return dtype


def _sum_type(dtype: pl.DataType) -> pl.DataType:
    if dtype.is_integer() or dtype == pl.Boolean:
        return pl.Int64()
    return pl.Decimal(38, dtype.scale) if isinstance(dtype, pl.Decimal) else dtype


def _double(_: pl.DataType) -> pl.DataType:
    return pl.Float64()


def _whole_number(_: pl.DataType) -> pl.DataType:
    return pl.Int64()


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """A built-in aggregate."""

    steps: Callable[[Call], Aggregate]
    """Builds the three steps of a call."""
    gives: Callable[[pl.DataType], pl.DataType]
    """The type of the value, by that of the argument."""
    takes: Literal["any", "numbers", "comparable"] = "any"
    """The values that the argument may have."""


BUILT_IN: Mapping[str, BuiltIn] = {
    "count": BuiltIn(_count, _whole_number),
    "sum": BuiltIn(_sum, _sum_type, "numbers"),
    "avg": BuiltIn(_avg, _double, "numbers"),
    "min": BuiltIn(_extreme, _same, "comparable"),
    "max": BuiltIn(_extreme, _same, "comparable"),
    "stddev": BuiltIn(_stddev, _double, "numbers"),
    "first": BuiltIn(_edge, _same, "comparable"),
    "last": BuiltIn(_edge, _same, "comparable"),
    "collect": BuiltIn(_collect, pl.List),
    "approx_count_distinct": BuiltIn(_approx_count_distinct, _whole_number),
    "approx_quantile": BuiltIn(_approx_quantile, _double, "numbers"),
}
"""The built-in aggregates by name."""


def build(call: Call) -> Aggregate:
    """Return the three steps of a built-in aggregate."""
    if call.function not in BUILT_IN:
        raise QueryError(unknown_name("aggregate", call.function, BUILT_IN))
    if call.distinct and call.function != "count":
        raise QueryError(f"{call.function}(DISTINCT ...) is not supported; count(DISTINCT ...) is")
    if call.argument is None and call.function != "count":
        raise QueryError(f"{call.function} needs an argument")
    return BUILT_IN[call.function].steps(call)


# ---- the three steps ---------------------------------------------------------------------------


def lift(
    rows: pl.DataFrame, keys: Sequence[pl.Expr], aggregates: Sequence[Aggregate]
) -> pl.DataFrame:
    """Return rows as partials of their own, next to their keys."""
    parts = [part for each in aggregates for part in each.lift]
    names = [part.meta.output_name() for part in parts]
    return rows.with_columns(parts).select(*keys, *names)  # literals get a value a row


def merge(
    partials: pl.DataFrame, keys: Sequence[str], aggregates: Sequence[Aggregate]
) -> pl.DataFrame:
    """Return one partial for each distinct key."""
    parts = [part for each in aggregates for part in each.merging(partials)]
    if not keys:
        return partials.select(parts)
    if partials.height < MANY:
        return partials.group_by(keys).agg(parts)
    return partials.lazy().group_by(keys).agg(parts).collect(engine="streaming")


def in_key_order(partials: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Return partials sorted by key where that is cheap: small answers come in one order.

    Many rows are sorted by the first key only, and only if it has several values.
    """
    if partials.height < FEW and not any(partials.schema[key].is_nested() for key in keys):
        return partials.sort(keys)
    first = partials[keys[0]]
    return partials if first.min() == first.max() else partials.sort(keys[0])


def finish(
    partials: pl.DataFrame, keys: Sequence[pl.Expr], aggregates: Sequence[Aggregate]
) -> pl.DataFrame:
    """Return answers from partials."""
    return partials.select(*keys, *(each.finish for each in aggregates))
