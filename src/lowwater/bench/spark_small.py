"""This benchmark measures small batches on Spark, and how long a complete window waits.

A window is complete with the first row that shows that no other can fall into it. The wait is
counted from the start of the batch that brings this row to the end of the batch that brings the
answer into the sink.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median

import polars as pl

from lowwater.bench import spark_ours, spark_plain
from lowwater.bench.report import Row
from lowwater.bench.spark_compare import Bench, agreement, beside, say, workspace
from lowwater.bench.spark_data import Flow
from lowwater.bench.spark_side import Batch, Query, SideRun, ours, plain

ROWS = 1_000
"""Rows of a batch, all sources together."""
BATCHES = 60
WARM = 20
"""Batches that are not counted."""
DISORDER = 0.25
WINDOW = 10
BAND = 2


@dataclass(frozen=True)
class Wait:
    """The wait of one window for its answer."""

    batches: int
    """Number of batches after the one that completes the window."""
    millis: float
    """Milliseconds from the start of that batch to the end of the one with the answer."""


def waits(results: pl.DataFrame, batches: Sequence[Batch], complete: dict[int, int]) -> list[Wait]:
    """Return the wait of each window.

    ``complete``: the number of the batch that completes a window, by the window's end in seconds.
    """
    found = []
    ends = results.group_by("window_end").agg(pl.col("written").min())
    for end, written in ends.select(pl.col("window_end").dt.epoch("s"), "written").iter_rows():
        if end not in complete:
            continue
        first = batches[complete[end]]
        last = next((each for each in batches if each.ended >= written), batches[-1])
        if first.number >= WARM:
            found.append(Wait(last.number - first.number, (last.ended - first.began) * 1e3))
    return found


def completed(flows: Sequence[Flow], rows_each: int, files: int, reach: float) -> dict[int, int]:
    """Return the batch that completes each window: all sources have passed its end by enough."""
    passed = []
    for rows in zip(*(flow.files(files, rows_each) for flow in flows), strict=True):
        passed.append(min(map(_newest, rows)) - DISORDER - reach)
    first = int(min(passed)) // WINDOW * WINDOW
    ends = range(first, int(max(passed)) + 1, WINDOW)
    return {
        end: next(number for number, mark in enumerate(passed) if mark >= end)
        for end in ends
        if end > min(passed)
    }


def _newest(rows: pl.DataFrame) -> float:
    return int(rows["ts"].dt.epoch("us").max()) / 1e6  # type: ignore[arg-type]


def run_small() -> Iterator[Row]:
    """Compare a window count, and a join before one, by batches of a thousand rows."""
    length, disorder = f"{WINDOW} seconds", f"{int(DISORDER * 1000)} milliseconds"
    yield from _case(
        "count",
        [Flow(ROWS, {"key": 100}, 3, DISORDER)],
        partial(spark_ours.windowed, length=length, disorder=disorder),
        partial(spark_plain.watermark_each, delay=disorder, length=length),
        0.0,
    )
    keys = {"a": 5, "b": 5, "c": 10, "d": 4}
    yield from _case(
        "join, count",
        [Flow(ROWS / 2, keys, seed, DISORDER) for seed in (4, 5)],
        partial(spark_ours.band_join, band=BAND, length=length, disorder=disorder),
        partial(spark_plain.band_join, band=BAND, length=length, delay=disorder),
        BAND,
    )


def _case(name: str, flows: list[Flow], mine: Query, theirs: Query, reach: float) -> Iterator[Row]:
    say(f"small batches: {name}")
    each = ROWS // len(flows)
    complete = completed(flows, each, BATCHES, reach)
    with workspace() as folder:
        runs = Bench(folder, flows, BATCHES, each).turns([ours(mine), *plain(theirs)], 2)
    us = min(runs.pop("ours"), key=_millis)
    them = min((ran for each in runs.values() for ran in each), key=_millis)
    same = agreement(us.results, them.results)
    what = f"batches of {ROWS:,} rows: {name}"
    about = {"same_results": same.same, "windows_only_ours": same.only_ours}
    pair = us, them
    yield beside(f"small {name}: batch", what, "ms", pair, [_millis(ran) for ran in pair]) | {
        "target": 1.6, **about, "millis": [_middle(us), _middle(them)],
    }  # fmt: skip
    ours_wait, their_wait = (waits(ran.results, ran.batches, complete) for ran in (us, them))
    if not (ours_wait and their_wait):
        say(f"  windows answered: {len(ours_wait)} by us, {len(their_wait)} by {them.side}")
        return
    for label, unit in (("wait", "ms"), ("wait in batches", "batches")):
        values = [_typical(each, unit) for each in (ours_wait, their_wait)]
        yield beside(f"small {name}: {label}", what, unit, pair, values) | {
            "target": 1.0, "windows": [len(ours_wait), len(their_wait)],
        }  # fmt: skip


def _typical(found: list[Wait], unit: str) -> float:
    return median(each.millis if unit == "ms" else each.batches + 1 for each in found)


def _millis(ran: SideRun) -> float:
    return ran.middle_millis(WARM)


def _middle(ran: SideRun) -> dict[str, float]:
    """Return the median of each part of a batch."""
    later = ran.full[WARM:]
    return {name: median(each.millis.get(name, 0) for each in later) for name in later[0].millis}
