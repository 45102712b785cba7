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
from lowwater.progress.ended import ENDED
from lowwater.progress.joint import JOINT
from lowwater.progress.lateness import count_times
from lowwater.progress.rows import JudgedRows
from lowwater.progress.spec import StreamSpec
from lowwater.stream.element import BEGINNING, END_OF_TIME, MARK, Chunk

ATTRIBUTE, TIME = "__attribute", "__time"
BOUNDS = "__bounds"
"""The bounds of a joint promise, one for each attribute that may be promised so."""
BIN = "__bin"


def digest_schema(spec: StreamSpec) -> dict[str, pl.DataType]:
    """Return the columns of a stream's digests."""
    keys = {name: spec.row_schema[name] for name in spec.key_columns}
    bounds = {BOUNDS: pl.List(pl.Int64())} if spec.joint else {}
    return {**keys, ATTRIBUTE: pl.String(), TIME: pl.Int64(), MARK: pl.Int64(), **bounds}


def digest(rows: JudgedRows, ending: Chunk | None = None) -> Chunk:
    """Return the digest of some rows of a batch; rows that cannot be judged are left out.

    ``ending`` names the channels or groups that end in the batch, a row for each.
    """
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
            part = _greatest_mark(rows, attribute)
        else:
            part = _greatest_times(spec, timed, attribute, contract)
        parts.append(_of(part, attribute, columns))
    if ending is not None and ending.height:
        none = (pl.lit(BEGINNING, dtype=pl.Int64).alias(name) for name in (TIME, MARK))
        parts.append(_of(ending.with_columns(none), ENDED, columns))
    parts += [_of(each, JOINT, columns) for each in _joint(rows)]
    return pl.concat(parts)


def _of(part: Chunk, attribute: str, columns: list[str]) -> Chunk:
    """Return the lines of a digest about one attribute, with all columns."""
    found = part.with_columns(pl.lit(attribute).alias(ATTRIBUTE))
    if BOUNDS in columns and BOUNDS not in part.columns:
        found = found.with_columns(pl.lit(None, dtype=pl.List(pl.Int64)).alias(BOUNDS))
    return found.select(columns)


def _joint(rows: JudgedRows) -> list[Chunk]:
    """Return the joint promises in rows, each once."""
    keys, names = list(rows.spec.key_columns), rows.spec.joint
    found = []
    for made in rows.joint_promises():
        at = pl.Series(made.rows)
        bounds = [
            pl.Series(name, made.bounds[name])
            if name in made.bounds
            else pl.Series(name, [None] * len(made.rows), dtype=pl.Int64)
            for name in names
        ]
        listed = pl.DataFrame(bounds).select(pl.concat_list(names).alias(BOUNDS))
        none = (pl.lit(BEGINNING, dtype=pl.Int64).alias(name) for name in (TIME, MARK))
        sent = rows.chunk.select(keys).hstack(listed) if keys else listed
        found.append(sent.filter(at).unique(maintain_order=True).with_columns(none))
    return found


def _greatest_mark(rows: JudgedRows, attribute: str) -> Chunk:
    """Return the greatest mark that a producer sent, and the newest time, of each channel."""
    keys = list(rows.spec.key_columns)
    marks = rows.producer_marks(attribute)
    assert marks is not None
    times = rows.times(attribute)
    timed = pl.when(pl.col(TIME) < END_OF_TIME).then(TIME)
    found = [timed.max().fill_null(END_OF_TIME).alias(TIME), pl.col(MARK).max()]
    columns = [pl.Series(TIME, times), pl.Series(MARK, marks[0])]
    usable = pl.DataFrame([*rows.chunk.select(keys), *columns]).filter(pl.Series(rows.usable))
    if not keys:
        return usable.select(found) if usable.height else usable.clear()
    return usable.group_by(keys).agg(found)


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
