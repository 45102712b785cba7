"""This benchmark compares joins of equal times, without a window, with plain Spark.

Two sources are out of order, and one of them is behind. Our query declares none of this: the join
measures how long to keep rows. Plain Spark either keeps all rows for ever or has a watermark. The
delay of the watermark is the least with which plain Spark finds as many results as ours; nobody
knows it before all rows are there, so it is computed from the files (:func:`least_delay`).

The figures are rows a second, the share of all results that was found, the rows kept half way and
in the end, and the memory of all processes. Between batches all rows of our join are in Spark's
state; during a batch a worker's memory has those that the join has not moved to disk.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lowwater.bench import spark_ours, spark_plain
from lowwater.bench.report import Row
from lowwater.bench.spark_compare import (
    Bench,
    beside,
    peak_apart,
    same_rows,
    say,
    scaled,
    workspace,
)
from lowwater.bench.spark_data import Flow
from lowwater.bench.spark_side import ROCKSDB, Side, SideRun, plain

RATE = 5_000
"""Rows a second of each source, and times a second that rows can have."""
DISORDER = 2.0
BEHIND = 20.0
"""Seconds by which the second source is behind the first."""
FILES = 12
ROWS_EACH = 25_000
"""Rows of a source in a batch: five seconds of them."""
MEMORY = "1 MB"
"""The memory that rows may take, where it is limited."""
NAME = "oblivious"
WATERMARK = "with a watermark"

OURS: Mapping[str, Mapping[str, Any]] = {
    "ours": {},
    "ours, dbf": {"strategy": "dbf", "memory": MEMORY},
    "ours, auto": {"strategy": "auto", "memory": MEMORY},
}
"""Options of our join, by the name of the side."""

Micros = NDArray[np.int64]


@dataclass(frozen=True)
class Epochs(Flow):
    """A source whose times lie on a grid, so that rows of two sources can have equal ones."""

    def rows(self, first: int, count: int) -> pl.DataFrame:
        """Return rows of the source by number, the same for the same numbers."""
        rows = super().rows(first, count)
        return rows.with_columns(pl.col("ts").dt.truncate(f"{round(1e6 / self.rate)}us"))


def flows() -> list[Flow]:
    """Return two sources; a row of one meets about one of the other."""
    rate, keys = scaled(RATE), {"v": 1_000_000}
    return [Epochs(rate, keys, 21, DISORDER), Epochs(rate, keys, 22, DISORDER, BEHIND)]


def batches() -> list[list[pl.DataFrame]]:
    """Return the rows of each source, file by file."""
    each = scaled(ROWS_EACH)
    return [list(flow.files(FILES, each)) for flow in flows()]


def workload(delay: int | None = None) -> tuple[list[Flow], int, int, list[Side]]:
    """Return sources, files, rows of each, and all sides. Plain Spark has no watermark; with a
    ``delay`` in milliseconds there are also sides of plain Spark with one."""
    mine = [
        Side(name, ROCKSDB, partial(spark_ours.equal_times, **options))
        for name, options in OURS.items()
    ]
    theirs = plain(spark_plain.equal_times, "without a watermark")
    if delay is not None:
        delayed = partial(spark_plain.equal_times, delay=f"{delay} milliseconds")
        theirs += plain(delayed, WATERMARK)
    return flows(), FILES, scaled(ROWS_EACH), [*mine, *theirs]


def run_oblivious() -> Iterator[Row]:
    """Compare speed, completeness and rows kept, of rows of equal times."""
    what = (
        f"rows of equal times: {DISORDER:g} s of disorder, one source {BEHIND:g} s behind,"
        f" batches of {2 * scaled(ROWS_EACH):,} rows"
    )
    say(f"{NAME}: {what}")
    given = batches()
    everything = pairs(*(pl.concat(each) for each in given))
    sources, files, each, sides = workload()
    mine, forever = sides[: len(OURS)], sides[len(OURS) :]
    with workspace() as folder:
        bench = Bench(folder, sources, files, each)
        bench.run(mine[0], "trial")  # both are warm when it counts
        keeping = bench.better(forever)
        runs = {side.name: bench.run(side) for side in mine}
        delay = least_delay(lateness(given), found(runs["ours"].results, everything))
        marked = next(
            side for side in workload(delay)[3][len(sides) :] if side.provider == keeping.provider
        )
        theirs = [bench.run(keeping), bench.run(marked)]
    memory = {
        side.name: peak_apart(NAME, side.name, *([] if side is not marked else [f"{delay}"]))
        for side in (mine[0], keeping, marked)
    }
    for name, us in runs.items():
        for them in theirs:
            yield from _beside(what, name, us, them, everything, memory, delay)


def _beside(
    what: str,
    name: str,
    us: SideRun,
    them: SideRun,
    everything: pl.DataFrame,
    memory: dict[str, int],
    delay: int,
) -> Iterator[Row]:
    label, pair = name.replace("ours", NAME), (us, them)

    def row(also: str, unit: str, values: Sequence[float]) -> Row:
        return beside(label + also, what, unit, pair, values)

    shares = [found(ran.results, everything) for ran in pair]
    yield row("", "rows/s", [ran.steady_speed for ran in pair]) | {
        "found": shares,
        "same_results": same_rows(us.results, them.results, everything.columns),
        "made_up": [made_up(ran.results, everything) for ran in pair],
        "processor_seconds": [ran.usage.cpu for ran in pair],
        "watermark_delay_millis": delay if WATERMARK in them.side else None,
    }
    yield row(": found", "%", [100 * share for share in shares])
    kept = [[kept_rows(ran, share) for share in (0.5, 1.0)] for ran in pair]
    yield row(": rows kept in the end", "rows", [each[1] for each in kept]) | {
        "half_way": [each[0] for each in kept],
        "in_worker_memory": us.full[-1].in_memory,
        "most_in_worker_memory": max(batch.in_memory for batch in us.batches),
    }
    yield row(": state in the end", "bytes", [kept_bytes(ran) for ran in pair])
    if name in memory:
        yield row(": all processes", "bytes", [memory[name], memory[them.side]])


# ---- all results, and those found -----------------------------------------------------


def pairs(left: pl.DataFrame, right: pl.DataFrame) -> pl.DataFrame:
    """Return all results."""
    return left.join(right, on="ts").select("ts", "v", "v_right")


def found(results: pl.DataFrame, everything: pl.DataFrame) -> float:
    """Return the share of all results that was found."""
    return results.height / everything.height


def made_up(results: pl.DataFrame, everything: pl.DataFrame) -> int:
    """Return the number of results that are wrong or came too often."""
    if results.is_empty():
        return 0
    columns = everything.columns
    many = results.group_by(columns).len()
    joined = many.join(everything.group_by(columns).len(), on=columns, how="left")
    more = joined["len"].cast(pl.Int64) - joined["len_right"].fill_null(0).cast(pl.Int64)
    return int(more.clip(lower_bound=0).sum())


def kept_rows(ran: SideRun, share: float) -> int:
    """Return the rows kept after a share of the batches."""
    full = ran.full
    batch = full[max(0, round(share * len(full)) - 1)]
    return batch.state_rows or batch.spark_state_rows


def kept_bytes(ran: SideRun) -> int:
    """Return the bytes of state in the end: as our operators count them, or as Spark does."""
    return ran.full[-1].state_bytes or ran.full[-1].spark_state_bytes


# ---- the results a watermark finds -----------------------------------------------------------


def lateness(given: Sequence[Sequence[pl.DataFrame]]) -> Micros:
    """Return by how many microseconds the later row of each result is behind the watermark, if the
    delay is zero.

    The watermark is the least of the sources' greatest times as it was when the batch before had
    ended. Rows that come at or below it are dropped. Rows that are kept are dropped by the same
    mark, so a row that would have met them later is dropped as well.
    """
    marks = _marks(given)
    behind = [
        pl.concat(
            rows.select("ts", late=mark - pl.col("ts").dt.epoch("us"))
            for rows, mark in zip(each, marks, strict=True)
        )
        for each in given
    ]
    both = behind[0].join(behind[1], on="ts")
    return both.select(pl.max_horizontal("late", "late_right")).to_series().to_numpy()


def least_delay(late: Micros, share: float) -> int:
    """Return the least delay in milliseconds that finds a share of all results."""
    count = round(share * len(late))
    if not count:
        return 0
    return max(0, int(np.sort(late)[count - 1]) // 1_000 + 1)


def _marks(given: Sequence[Sequence[pl.DataFrame]]) -> list[int]:
    """Return the least of the sources' greatest times before each batch; 0 before the first."""
    tops = np.array([[rows["ts"].dt.epoch("us").max() for rows in each] for each in given])
    reached = np.maximum.accumulate(tops, axis=1).min(axis=0)
    return [0, *map(int, reached[:-1])]
