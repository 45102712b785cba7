"""What the close of a window with many groups does to the batches around it, on Spark.

W1's count in batches of an eighth of a window. When all answers of a window leave at once, the
batch in which it closes takes longer than its neighbours; when they leave slowly, none should.

A batch does the same in every round, so its time is the shortest of all rounds: what else the
machine did at the moment is not the batch's.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import partial
from statistics import median

import polars as pl

from lowwater.bench import spark_ours
from lowwater.bench.spark_compare import Bench, Row, agreement, figure, say, scaled, workspace
from lowwater.bench.spark_data import BEGIN
from lowwater.bench.spark_large import many_groups
from lowwater.bench.spark_side import ROCKSDB, Ran, Side
from lowwater.operators.flush import slow

WINDOW = 60
BATCHES = 8
"""Batches in a window."""
WINDOWS = 6
WARM = 2
"""Windows before batches are looked at."""
ROUNDS = 4
POLICY = slow(every=160, within_windows=2)


def run_closes() -> Iterator[Row]:
    """The slowest batch against the median one, with answers that leave slowly and at once."""
    what = "520k groups a window, 8 batches a window: the slowest batch to the median"
    say(f"closes: {what}")
    sides = [
        Side("slowly", ROCKSDB, partial(spark_ours.tumbling, flush=POLICY)),
        Side("at once", ROCKSDB, spark_ours.tumbling),
    ]
    with workspace() as folder:
        rows = scaled(1_000_000) // BATCHES
        bench = Bench(folder, [many_groups()], BATCHES * WINDOWS, rows)
        runs = bench.turns(sides, ROUNDS)
    slowly, at_once = (runs[side.name] for side in sides)
    bursts = [burst(each) for each in (slowly, at_once)]
    count = slowly[0].rows
    yield figure(
        "closes, slowest / median", what, "×", bursts[0], "ours, at once", bursts[1], count
    ) | {
        "target": 1.3,
        "same_results": agreement(_all_out(slowly[0]), at_once[0].results).same,
        "batch_millis": {side: batch_millis(each) for side, each in runs.items()},
    }
    speeds = [max(ran.steady_speed for ran in each) for each in (slowly, at_once)]
    yield figure("closes, speed", what, "rows/s", speeds[0], "ours, at once", speeds[1], count)
    delays = [max(_latest(ran) for ran in each) for each in (slowly, at_once)]
    yield figure(
        "closes, latest answer", what, "windows", delays[0], "ours, at once", delays[1], count
    ) | {"target": POLICY.within_windows + 1 / BATCHES}


def batch_millis(runs: Sequence[Ran]) -> list[int]:
    """What each batch took, once the first windows have closed."""
    rounds = [[batch.trigger for batch in ran.full[WARM * BATCHES :]] for ran in runs]
    return [min(each) for each in zip(*rounds, strict=True)]


def burst(runs: Sequence[Ran]) -> float:
    """The slowest batch to the median."""
    times = batch_millis(runs)
    return max(times) / median(times)


def _all_out(ran: Ran) -> pl.DataFrame:
    """The answers of windows that had to be all out before the rows ended."""
    last = BEGIN + WINDOWS * WINDOW - (POLICY.within_windows + 1) * WINDOW
    return ran.results.filter(pl.col("window_end").dt.epoch("s") <= last)


def _latest(ran: Ran) -> float:
    """How many windows after its end the latest answer left, by the rows that had come."""
    ends = [batch.ended for batch in ran.full]
    a_batch = WINDOW / BATCHES
    late = [0.0]
    answers = ran.results.group_by("window_end").agg(pl.col("written").max())
    for end, written in answers.iter_rows():
        number = bisect_left(ends, written)
        if number < len(ends):  # not of those that leave when the stream ends
            late.append(BEGIN + (number + 1) * a_batch - end.timestamp())
    return max(late) / WINDOW
