"""The digest of a batch of rows without order: the few times from which its marks follow.

An engine that reads a source in parallel gets the rows of a batch in no reliable order. For each
channel, a digest has the times that lead to the mark to which all rows in ascending order would
lead: the greatest times, and, if leaps are looked for, the ends of every stretch without a leap. If
the mark is learned, the digest also has all times, coarsely, each with the number of its rows in
place of a mark. Digests of parts of a batch are merged by concatenating them.

Invariant: :meth:`BatchIntake.absorb` leaves the same marks whether it gets a digest of all rows,
digests of any parts of them, or all times themselves.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from lowwater.progress.contract import Contract
from lowwater.progress.lateness import count_times
from lowwater.progress.rows import JudgedRows
from lowwater.progress.spec import StreamSpec
from lowwater.stream.element import BEGINNING, END_OF_TIME, MARK, Chunk

ATTRIBUTE, TIME = "__attribute", "__time"
BIN = "__bin"


def digest_schema(spec: StreamSpec) -> dict[str, pl.DataType]:
    """Return the columns of a stream's digests."""
    keys = {name: spec.row_schema[name] for name in spec.key_columns}
    return {**keys, ATTRIBUTE: pl.String(), TIME: pl.Int64(), MARK: pl.Int64()}


def digest(rows: JudgedRows) -> Chunk:
    """Return the digest of some rows of a batch; rows that cannot be judged are left out."""
    spec, chunk, pure = rows.spec, rows.chunk, pl.Series(rows.pure)
    if not rows.usable.all():
        chunk, pure = chunk.filter(pl.Series(rows.usable)), pl.Series(rows.pure[rows.usable])
    columns = list(digest_schema(spec))
    parts = [pl.DataFrame(schema=digest_schema(spec))]
    timed = chunk.filter(~pure) if pure.any() else chunk
    for attribute, contract in spec.contracts.items():
        if not contract.promises:
            continue
        if contract.mark_column is not None:
            part = _greatest_mark(spec, chunk, attribute, contract.mark_column, ~pure)
        else:
            part = _greatest_times(spec, timed, attribute, contract)
        parts.append(part.with_columns(pl.lit(attribute).alias(ATTRIBUTE)).select(columns))
    return pl.concat(parts)


def _greatest_mark(
    spec: StreamSpec, rows: Chunk, attribute: str, column: str, timed: pl.Series
) -> Chunk:
    """Return the greatest mark that a producer sent, and the newest time, of each channel.

    ``timed`` is false for rows that are punctuation only, which have no times of their own.
    """
    domain = spec.domains[attribute]
    low, high = domain.valid
    mark = domain.to_ticks(pl.col(column))
    in_range = pl.when((mark >= low) & (mark < high)).then(mark)
    found = [
        pl.when("__timed")
        .then(domain.to_ticks(pl.col(attribute)))
        .max()
        .fill_null(END_OF_TIME)
        .alias(TIME),
        in_range.max().fill_null(BEGINNING).alias(MARK),
    ]
    keys = list(spec.key_columns)
    rows = rows.with_columns(timed.alias("__timed"))
    if not keys:
        return rows.select(found) if rows.height else rows.clear().select(found).clear()
    return rows.group_by(keys).agg(found)


def _greatest_times(spec: StreamSpec, rows: Chunk, attribute: str, contract: Contract) -> Chunk:
    """Return the times of each channel from which its mark follows."""
    keys = list(spec.key_columns)
    domain = spec.domains[attribute]
    times = rows.select(*keys, domain.to_ticks(pl.col(attribute)).alias(TIME))
    newest = _newest(times, keys, contract.greatest_times)
    jump = domain.ticks(spec.jump.over, "jump(...)") if spec.jump is not None else None
    if jump is not None:
        stretches = _stretches(times, keys, max(1, jump))
        newest = pl.concat([newest, _below(stretches, newest, keys)])
    found = newest.with_columns(pl.lit(BEGINNING, dtype=pl.Int64).alias(MARK))
    if contract.counts_times:
        found = pl.concat([found, count_times(times, keys, TIME, MARK, jump)])
    return found


def _newest(times: Chunk, keys: list[str], many: int) -> Chunk:
    """Return the ``many`` greatest times of each channel; the least twice if it occurs more
    often."""
    if not keys:
        return _newest_of_one(times, many)
    top = pl.col(TIME).top_k(many)
    least = top.min()
    tied = ((pl.col(TIME) == least).sum() > (top == least).sum()).alias("__tied")
    found = times.group_by(keys).agg(top, least.alias("__least"), tied)
    again = found.filter("__tied").select(*keys, pl.col("__least").alias(TIME))
    return pl.concat([found.select(*keys, TIME).explode(TIME), again])


def _newest_of_one(times: Chunk, many: int) -> Chunk:
    ticks = times[TIME].to_numpy()
    many = min(many, len(ticks))
    if not many:
        return times
    if many <= 2:  # the usual case, without sorting anything
        first = ticks.max()
        below = ticks[ticks < first]
        second = first if len(ticks) - len(below) > 1 or not len(below) else below.max()
        top = np.array([first, second][:many])
    else:
        top = np.partition(ticks, len(ticks) - many)[len(ticks) - many :]
    least = top.min()
    tied = int((ticks == least).sum()) > int((top == least).sum())
    return pl.DataFrame({TIME: [*top.tolist(), *[int(least)] * tied]}, schema={TIME: pl.Int64()})


def _stretches(times: Chunk, keys: list[str], jump: int) -> Chunk:
    """Return the first and the last time in each bin that is as wide as a leap.

    There is no leap within a bin, so these times have leaps between them exactly where all times
    have them.
    """
    column = times[TIME]
    low, high = column.min(), column.max()
    if low is not None and not keys and int(high) - int(low) <= jump:  # type: ignore[arg-type]
        return pl.DataFrame({TIME: [low, high][: times.height]}, schema={TIME: pl.Int64()})
    ends = times.group_by([*keys, (pl.col(TIME) // jump).alias(BIN)]).agg(
        pl.col(TIME).min(), pl.col(TIME).max().alias("__high"), pl.len().alias("__rows")
    )
    again = ends.filter(pl.col("__rows") > 1).select(*keys, pl.col("__high").alias(TIME))
    return pl.concat([ends.select(*keys, TIME), again])


def _below(stretches: Chunk, newest: Chunk, keys: list[str]) -> Chunk:
    """Return the times of ``stretches`` below ``newest``: a time given twice confirms itself."""
    if not keys:
        return stretches.filter(pl.col(TIME) < pl.lit(newest[TIME].min(), dtype=pl.Int64))
    least = newest.group_by(keys).agg(pl.col(TIME).min().alias("__least"))
    joined = stretches.join(least, on=keys, how="inner", nulls_equal=True)
    return joined.filter(pl.col(TIME) < pl.col("__least")).drop("__least")
