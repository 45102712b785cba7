"""This benchmark has update streams on Spark: 100 keys, 1,000 updates/s, 10 ms of work a row.

A thread drops a file every tenth of a second. Four sides work on it: ours; plain Spark, which works
on every row; plain Spark that keeps the latest row of each key in every batch, which Spark does in
one task, because it cannot know the cost of a row; and the same spread over all cores by hand. All
write Parquet files. Staleness is measured: the age of the oldest update of a key that no written
row reflects, averaged over keys and time.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import polars as pl

from lowwater.bench.report import Row, figure
from lowwater.bench.spark_compare import say, scale, workspace
from lowwater.bench.spark_data import FEED_EVERY, Feeder, stamps
from lowwater.bench.spark_side import (
    HDFS,
    ROCKSDB,
    Output,
    Side,
    committed,
    read_files,
    session,
    started,
    stop,
    to_files,
    together,
    writer_of,
)
from lowwater.stream.duration import SECOND
from lowwater.updates.staleness import Account

KEYS = 100
ROWS = 100
"""Rows of one file: 1,000 a second."""
COST = 0.010
"""Seconds of work a row."""
SECONDS = 60.0
LAST = 10
"""Seconds over which staleness is averaged."""
WARM = 30.0
"""Seconds for which each side is run before it counts, because Spark's workers start slowly."""
CORES = 2
LATEST, SPREAD = "spark, latest of a batch", "spark, the same spread by hand"
SCHEMA = "ts timestamp, key int, number bigint"
FILES = 1_000_000
"""The most files of a batch: more than there are."""


def work(rows: pl.DataFrame) -> pl.DataFrame:
    """Sleep for the time that the work on these rows takes; return them."""
    time.sleep(COST * rows.height)
    return rows


class UpdateFeeder(Feeder):
    """Drops updates of random keys, and keeps the time of each."""

    def __init__(self, folder: Path):
        super().__init__()
        self.folder = folder / "in"
        self.folder.mkdir(parents=True)
        self.came: list[tuple[float, int]] = []
        """The time of each update, in seconds since 1970, and its key, by its number."""
        self._random = Random(7)

    def tick(self) -> None:
        """Drop one file."""
        keys = [self._random.randrange(KEYS) for _ in range(ROWS)]
        first, now = len(self.came), time.time()
        numbers = pl.int_range(first, first + ROWS, eager=True)
        columns = {"ts": stamps(np.full(ROWS, now)), "key": pl.Series(keys, dtype=pl.Int32)}
        self.put(self.folder, pl.DataFrame({**columns, "number": numbers}))
        self.came += [(now, key) for key in keys]


# ---- the rows a side wrote -----------------------------------------------------------------


def in_log(folder: Path) -> pl.DataFrame:
    """Return the rows a streaming query wrote; a file can be read once the sink's log names it."""
    first: dict[Path, float] = {}  # later logs name the files of earlier ones again
    for log in (folder / "_spark_metadata").glob("[0-9]*"):
        for file in committed(log.parent, log.name):
            first[file] = min(log.stat().st_mtime, first.get(file, float("inf")))
    return together(_rows_of(file, when) for file, when in first.items())


def in_folders(folder: Path) -> pl.DataFrame:
    """Return the rows written batch by batch; a batch can be read once its folder is complete."""
    return together(
        _rows_of(file, done.stat().st_mtime)
        for done in folder.glob("*/_SUCCESS")
        for file in done.parent.glob("*.parquet")
    )


def _rows_of(file: Path, when: float) -> pl.DataFrame:
    """Return the time at which each row of a file could be read, its key and its number."""
    return pl.read_parquet(file).select(pl.lit(when).alias("written"), "key", "number")


def staleness(
    came: list[tuple[float, int]], shown: list[tuple[float, int, int]], begun: float, end: float
) -> float:
    """Return staleness in seconds, averaged over all keys between two times, exactly."""
    events = [(at, 0, key, number) for number, (at, key) in enumerate(came)]
    events += [(at, 1, key, number) for at, key, number in shown]
    accounts = {key: Account() for key in range(KEYS)}
    before: dict[int, float] | None = None
    for at, kind, key, number in [*sorted(events), (float("inf"), 0, 0, 0)]:
        if before is None and at > begun:
            before = {k: each.application.area(_ns(begun)) for k, each in accounts.items()}
        if at > end:
            break
        account = accounts[key]
        if kind == 0:
            account.arrived(_ns(at), replaced=False)
        else:
            account.taken(_ns(at), _ns(came[number][0]))
            account.shown(_ns(at))
    assert before is not None
    grown = [accounts[key].application.area(_ns(end)) - area for key, area in before.items()]
    return sum(grown) / KEYS / (end - begun)


def _ns(seconds: float) -> int:
    return round(seconds * SECOND)


def run_updates() -> Iterator[Row]:
    """Compare staleness under ten times more updates than can be worked on."""
    seconds = max(20.0, SECONDS * min(1.0, scale()))
    logged = Output(to_files, in_log)
    latest, spread = (
        Output(partial(_latest_to_files, tasks), in_folders) for tasks in (None, CORES)
    )
    sides = (
        Side("ours", ROCKSDB, _ours, logged),
        Side("spark, all rows", HDFS, _all_rows, logged),
        Side(LATEST, HDFS, _as_is, latest),
        Side(SPREAD, HDFS, _as_is, spread),
    )
    for side in sides:
        _run(side, WARM)  # starting is not measured
    found = {side.name: _run(side, seconds) for side in sides}
    ours = found.pop("ours")
    what = f"{KEYS} keys, {ROWS / FEED_EVERY:,.0f} updates/s, {COST * 1e3:.0f} ms a row: staleness"
    for name, theirs in found.items():
        for part, at in (("in the middle", len(theirs) // 2), ("at the end", -1)):
            yield figure(
                f"updates, {part}", what, "s", ours[at], name, theirs[at], round(seconds)
            ) | {"over_time": [ours, theirs]}


def _run(side: Side, seconds: float) -> list[float]:
    spark = session()
    with workspace() as folder, UpdateFeeder(folder) as feeder:
        source = read_files(spark, feeder.folder, SCHEMA, FILES)
        writer = writer_of(side, [source], folder)
        begun = time.time()
        query = started(spark, side, writer)
        time.sleep(seconds)
        stop(query)
        shown = side.output.read(folder / "out").rows()
    edges = [begun + at for at in range(0, round(seconds) + 1, LAST)]
    stale = [staleness(feeder.came, shown, low, high) for low, high in pairwise(edges)]
    spelled = ", ".join(f"{each:.2f}" for each in stale)
    say(f"  {side.name}: staleness {spelled} s; {len(shown):,} of {len(feeder.came):,} rows")
    return stale


def _ours(sources: list[Any]) -> Any:
    import lowwater as lw  # noqa: PLC0415

    stream = lw.stream(
        sources[0],
        name="updates",
        time="ts",
        progress=lw.within("1 minute"),
        update_key="key",
    )
    return stream.apply(work).to_spark()


def _all_rows(sources: list[Any]) -> Any:
    return sources[0].mapInArrow(_worked, SCHEMA)


def _as_is(sources: list[Any]) -> Any:
    return sources[0]


def _worked(batches: Any) -> Any:
    for batch in batches:
        work(pl.DataFrame(batch))
        yield batch


def _latest_to_files(tasks: int | None, writer: Any, folder: Path) -> Any:
    from pyspark.sql import functions as F  # noqa: PLC0415

    def latest(rows: Any, batch: int) -> None:
        newest = F.max_by(F.struct("ts", "key", "number"), "number").alias("newest")
        spread = rows if tasks is None else rows.repartition(tasks, "key")
        kept = spread.groupBy("key").agg(newest).select("newest.*")
        kept.mapInArrow(_worked, SCHEMA).write.parquet(str(folder / str(batch)))

    return writer.foreachBatch(latest)
