"""W4 counts the rows of two live sources on Spark by seconds; one of them is nearly silent.

A thread drops the same kind of files into two folders, stamped with the time of day. The benchmark
measures the time from the end of a window until its answer is in the sink.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import median, quantiles

import numpy as np
import polars as pl

from lowwater.bench import spark_ours, spark_plain
from lowwater.bench.report import Row, figure
from lowwater.bench.spark_compare import say, scale, workspace
from lowwater.bench.spark_data import Feeder, stamps
from lowwater.bench.spark_side import (
    HDFS,
    ROCKSDB,
    Batch,
    Side,
    batches_of,
    read_files,
    results_in,
    session,
    start,
    stop,
)
from lowwater.progress.options import on_demand

SECONDS = 45.0
SLOW = 20.0
"""Seconds between two rows of the slow source."""
ROWS = 5
"""Rows of one of its files: 50 a second."""
WARM = 15
"""Number of batches at the beginning that do not count."""
SKEW = 0.5
"""Seconds by which a row may be older than the clock when it is read."""
ALLOWED = 2
"""Micro-batches an answer may take: the one that is running when it is due, and the next."""
SCHEMA = "ts timestamp, key int"
LENGTH = "1 second"
"""Length of the windows."""


class LiveFeeder(Feeder):
    """Drops rows of a fast source and, after :meth:`feed_both`, of a nearly silent one."""

    def __init__(self, folder: Path):
        super().__init__()
        self.fast, self.slow = folder / "fast", folder / "slow"
        self.rows: list[float] = []
        self.slow_rows: list[float] = []
        self._both = False
        self._last = float("-inf")
        for each in (self.fast, self.slow):
            each.mkdir(parents=True)

    def feed_both(self) -> float:
        """Begin with the slow source; return the time, from which windows count."""
        self._both = True
        return time.time()

    def tick(self) -> None:
        """Drop a file of the fast source and, if it is time, of the slow one."""
        self._drop(self.fast, ROWS)
        if self._both and time.monotonic() - self._last >= SLOW:
            self._last = time.monotonic()
            self.slow_rows.append(self._drop(self.slow, 1))

    def _drop(self, folder: Path, rows: int) -> float:
        now = time.time()
        self.rows += [now] * rows
        keys = pl.Series([0] * rows, dtype=pl.Int32)
        self.put(folder, pl.DataFrame({"ts": stamps(np.full(rows, now)), "key": keys}))
        return now


def run_w4() -> Iterator[Row]:
    """Measure how long windows wait for a source that is nearly silent."""
    skew = f"{SKEW} seconds"
    each, one = spark_plain.watermark_each, spark_plain.one_watermark
    sides = [
        Side("ours", ROCKSDB, partial(spark_ours.union, length=LENGTH, idle=on_demand(skew))),
        Side("spark a watermark each", HDFS, partial(each, delay=skew, length=LENGTH)),
        Side("spark one watermark", HDFS, partial(one, delay=skew, length=LENGTH)),
    ]
    seconds = max(25.0, SECONDS * min(1.0, scale()))
    found = {side.name: _live(side, seconds) for side in sides}
    ours = found.pop("ours")
    for name, theirs in found.items():
        if min(len(ours.waits), len(theirs.waits)) > 1:
            yield from _rows(name, ours, theirs)
    if ours.taken:
        yield _bound(ours)


class LiveRun:
    """One side's run: the waits of its windows, in seconds, and the numbers of missing and wrong
    answers."""

    def __init__(
        self,
        results: pl.DataFrame,
        batches: list[Batch],
        feeder: LiveFeeder,
        span: tuple[float, float],
    ):
        self.batches = [each for each in batches if each.began >= span[0]]
        answered: dict[int, tuple[int, float]] = {}
        if results.height:
            second = pl.col("window_start").dt.epoch("s")
            for begin, n, written in results.select(second, "n", "written").iter_rows():
                answered[begin] = (n, written)
        truth = counted(feeder.rows)
        due = [each for each in truth if span[0] <= each + 1 <= span[1]]
        self.waits = [answered[each][1] - each - 1 for each in due if each in answered]
        begun = [each.began for each in batches]
        ages = ages_when_read(feeder.slow_rows, batches)
        self.taken = [
            batches_taken(each + 1 + SKEW, answered[each][1], ages, begun)
            for each in due
            if each in answered
        ]
        self.missing = sum(each not in answered for each in due)
        self.wrong = sum(n != truth.get(begin) for begin, (n, _) in answered.items())

    @property
    def millis(self) -> float:
        """Milliseconds of the median batch."""
        return median(each.trigger for each in self.batches)


def ages_when_read(rows: list[float], batches: list[Batch]) -> list[tuple[float, float]]:
    """Return for each row the time at which its batch listed files, and its age then."""
    ages = []
    for row in rows:
        first = next((each for each in batches if each.began >= row), None)
        if first is not None:
            at = first.began + first.millis.get("latestOffset", 0) / 1e3
            ages.append((at, at - row))
    return ages


def batches_taken(
    due: float, written: float, ages: list[tuple[float, float]], begun: list[float]
) -> int:
    """Return the batches from the moment an answer could be known until it was written.

    The silent source is taken to be as far behind the clock as its last row was when it was read.
    """
    behind = next((age for at, age in reversed(ages) if at <= due), 0.0)
    return 1 + sum(due + behind < each <= written for each in begun)


def counted(rows: list[float]) -> dict[int, int]:
    """Return the right answer: rows of each second."""
    totals: dict[int, int] = {}
    for each in rows:
        second = int(int(each * 1e6) // 1_000_000)
        totals[second] = totals.get(second, 0) + 1
    return totals


def _live(side: Side, seconds: float) -> LiveRun:
    spark = session()
    with workspace() as folder, LiveFeeder(folder) as feeder:
        sources = [read_files(spark, each, SCHEMA, 1_000) for each in (feeder.fast, feeder.slow)]
        query = start(spark, side, sources, folder / "run")
        while len(query.recentProgress) < WARM and query.isActive:
            time.sleep(0.1)
        begun = feeder.feed_both()
        time.sleep(seconds)
        span = begun, time.time() - 3.0  # windows that end later had no fair chance
        stop(query)
        lived = LiveRun(results_in(folder / "run" / "out"), batches_of(query), feeder, span)
    middle = median(lived.waits) if lived.waits else float("nan")
    say(
        f"  {side.name}: {middle:.2f} s in the middle of {len(lived.waits)} windows,"
        f" {lived.missing} not answered, {lived.wrong} wrong; a batch {lived.millis:.0f} ms"
    )
    return lived


def _rows(name: str, ours: LiveRun, theirs: LiveRun) -> Iterator[Row]:
    what = "live: 50 and 0.05 rows/s, 1 s windows, end of window to answer"
    about = {
        "windows": [len(ours.waits), len(theirs.waits)],
        "not_answered": [ours.missing, theirs.missing],
        "wrong": [ours.wrong, theirs.wrong],
        "batch_ms": [ours.millis, theirs.millis],
        "batches_taken": sorted(ours.taken),
    }
    for share in (50, 95, 100):
        label = "longest" if share == 100 else f"p{share}"
        a, b = _at(ours, share) * 1e3, _at(theirs, share) * 1e3
        yield figure(f"W4 {label}", what, "ms", a, name, b, len(ours.waits)) | about


def _bound(ours: LiveRun) -> Row:
    what = "live: micro-batches from when the silent source allows an answer to the answer"
    most, windows = max(ours.taken), len(ours.taken)
    return figure("W4 batches, most", what, "batches", most, "allowed", ALLOWED, windows) | {
        "target": 1.0,
        "batches_taken": sorted(ours.taken),
    }


def _at(lived: LiveRun, share: int) -> float:
    return max(lived.waits) if share == 100 else quantiles(lived.waits, n=100)[share - 1]
