"""This benchmark compares the results of a band join, in order, with plain Spark.

Plain Spark can sort the rows of a batch, but a result of the next batch may be earlier.
Ours holds results back until no earlier one can come. So three things are counted: rows a second,
results that are earlier than one before them, and how long a result takes from its time to the
arrival of the last row of its batch.

Both sides hand their batches to a function that writes them, each batch in one file; in this
function plain Spark can sort. :data:`WAYS` lists the ways to order ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from lowwater.bench import spark_ours, spark_plain
from lowwater.bench.report import Row
from lowwater.bench.spark_compare import (
    Bench,
    beside,
    fastest,
    same_rows,
    say,
    scaled,
    workspace,
)
from lowwater.bench.spark_data import BEGIN, DISORDER, Flow
from lowwater.bench.spark_side import ROCKSDB, Output, Query, Side, SideRun, plain, together
from lowwater.joins.ordered.strategy import ORDERS, Order

BAND = 5
"""Seconds between the rows of a pair, at most."""
PARTNERS = 1.0
"""Mean number of rows of the other source that a row meets."""
TIME = "at"
"""The greater time of a pair."""
BATCH = "batch"
ROUNDS = 1
WARM = 3
"""Batches at the beginning that are not counted."""

WAYS: Mapping[str, Order | None] = {"ours": None} | {f"ours, {each}": each for each in ORDERS}
"""The order of our side: sorted after the join (None), or by a strategy of the join."""


@dataclass(frozen=True)
class Size:
    """The rate of both sources, and the number and size of batches."""

    name: str
    rate: float
    """Rows a second of each source."""
    files: int
    rows_each: int
    """Rows of a source in a batch."""

    @property
    def flows(self) -> list[Flow]:
        """Two sources whose rows have :data:`PARTNERS` partners each."""
        keys = {"k": max(1, round(self.rate * 2 * BAND / PARTNERS))}
        return [Flow(self.rate, keys, seed) for seed in (11, 12)]

    def arrived(self, batch: int) -> float:
        """Return the time of arrival of the last row of a batch, in seconds."""
        return BEGIN + (batch + 1) * self.rows_each / self.rate


def sizes() -> list[Size]:
    """Return batches of some minutes, and of a second."""
    return [Size("large", 1_000, 6, scaled(150_000)), Size("small", 1_000, 24, 1_000)]


def run_ordered() -> Iterator[Row]:
    """Compare speed, order and delay of results, by large batches and by small ones."""
    for size in sizes():
        yield from _case(size)


def _case(size: Size) -> Iterator[Row]:
    what = f"band join ±{BAND} s on a key, results in order: batches of {2 * size.rows_each:,} rows"
    say(f"ordered: {what}")
    mine = [Side(name, ROCKSDB, _ours(order), BY_BATCH) for name, order in WAYS.items()]
    loosely = partial(spark_ours.pairs, band=BAND)
    unordered = Side("ours, in no order", ROCKSDB, loosely, BY_BATCH)
    query = partial(spark_plain.pairs, band=BAND, delay=f"{DISORDER:g} seconds")
    theirs = [replace(side, output=SORTED) for side in plain(query)]
    with workspace() as folder:
        bench = Bench(folder, size.flows, size.files, size.rows_each)
        bench.run(mine[0], "trial")  # both are warm when it counts
        runs = bench.turns([*mine, bench.better(theirs), unordered], ROUNDS)
    best = {name: fastest(each) for name, each in runs.items()}
    peer = next(ran for name, ran in best.items() if name.startswith("spark"))
    for name in WAYS:
        yield from _beside(size, what, best[name], peer)
    pair = us, loose = best["ours"], best[unordered.name]
    label = f"ordered {size.name}: what order costs"
    yield beside(label, what, "rows/s", pair, [ran.steady_speed for ran in pair]) | {
        "same_results": same_pairs(us.results, loose.results),
        "batch_millis": [ran.middle_millis(WARM) for ran in pair],
    }


def _ours(order: Order | None) -> Query:
    return partial(spark_ours.pairs_in_order, band=BAND, order=order)


def _beside(size: Size, what: str, us: SideRun, them: SideRun) -> Iterator[Row]:
    label, pair = us.side.replace("ours", f"ordered {size.name}"), (us, them)
    yield beside(label, what, "rows/s", pair, [ran.steady_speed for ran in pair]) | {
        "same_results": same_pairs(us.results, them.results),
        "pairs": us.results.height,
        "processor_seconds": [ran.usage.cpu for ran in pair],
        "state_bytes": [ran.state_bytes for ran in pair],
    }
    yield beside(f"{label}: batch", what, "ms", pair, [ran.middle_millis(WARM) for ran in pair])
    back = [goes_back(ran.results) for ran in pair]
    if back[1]:
        yield beside(f"{label}: go back", what, "pairs", pair, back) | {"target": 0.0}
    middle, longest = ([delay(ran.results, size, each) for ran in pair] for each in (0.5, 1.0))
    yield beside(f"{label}: delay", what, "s", pair, middle) | {"longest": longest}


# ---- the results -------------------------------------------------------------------------


def goes_back(results: pl.DataFrame) -> int:
    """Return the number of results that are earlier than one before them, in any batch."""
    highest = results.select(pl.col(TIME).cum_max().shift(1)).to_series()
    return int((results[TIME] < highest).sum())


def delay(results: pl.DataFrame, size: Size, share: float) -> float:
    """Return a quantile of the seconds of arrival from a result's time to the end of its batch."""
    ends = pl.DataFrame({BATCH: range(size.files), "end": map(size.arrived, range(size.files))})
    joined = results.join(ends, on=BATCH)
    waits = joined["end"] - joined[TIME].dt.epoch("us") / 1e6
    return float(waits.quantile(share, "nearest") or 0.0)


def same_pairs(ours: pl.DataFrame, theirs: pl.DataFrame) -> bool:
    """Return true if both found the same pairs before the earlier of their last times."""
    if ours.is_empty() or theirs.is_empty():
        return False
    last = min(ours[TIME].max(), theirs[TIME].max())  # type: ignore[type-var]
    columns = sorted(set(ours.columns) - {BATCH})
    left, right = (each.filter(pl.col(TIME) < last) for each in (ours, theirs))
    return same_rows(left, right, columns)


# ---- batches, each written by itself -------------------------------------------------------


def results_by_batch(folder: Path) -> pl.DataFrame:
    """Return all results as they were written, with the number of their batch."""
    return together(
        pl.read_parquet(file).with_columns(pl.lit(int(batch.name), dtype=pl.Int64).alias(BATCH))
        for batch in sorted(folder.iterdir())
        for file in sorted(batch.glob("*.parquet"))
    )


def _by_batch(sort: bool, writer: Any, folder: Path) -> Any:
    def write(batch: Any, number: int) -> None:
        # A sort of the whole would first run the join once more, to find out what to sort into
        # which partition; one partition needs none of that.
        rows = batch.repartition(1).sortWithinPartitions(TIME) if sort else batch
        rows.write.parquet(str(folder / f"{number:06d}"))

    return writer.foreachBatch(write)


BY_BATCH = Output(partial(_by_batch, False), results_by_batch)
"""Each batch is a folder of files."""
SORTED = Output(partial(_by_batch, True), results_by_batch)
"""The same, with the rows of each batch sorted."""
