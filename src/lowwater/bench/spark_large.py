"""This benchmark compares large batches with plain Spark over the same files, in one session.

W1 counts by many groups, W2 counts over sources that do not keep step, W3 joins and counts; growth
measures our own cost as the stream gets longer and state is spread over more buckets; closes
measures what the close of a window with many groups does to the batches around it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import partial
from statistics import median

import polars as pl

from lowwater.bench import spark_ours, spark_plain
from lowwater.bench.report import Row, figure
from lowwater.bench.spark_compare import (
    Bench,
    agreement,
    fastest,
    peak_apart,
    say,
    scaled,
    speed_rows,
    workspace,
)
from lowwater.bench.spark_data import BEGIN, Flow
from lowwater.bench.spark_side import ROCKSDB, Side, SideRun, ours, plain
from lowwater.operators.flush import slow

DELAYS = (0, 60, 240)
"""Seconds by which one source of W2 is behind the others."""

LENGTH, SLIDE = "5 minutes", "1 minute"
"""The windows of W2."""


# ---- W1: tumbling window, many groups ------------------------------------------------------


def many_groups() -> Flow:
    """Return a million rows a minute, of which about 520,000 differ in their key."""
    return Flow(scaled(1_000_000) / 60, {"ip": 1_000, "port": scaled(670)})


def run_w1() -> Iterator[Row]:
    """Run W1: a tumbling count by two columns."""
    what = "tumbling 1 min count by 2 columns, 520k groups a window"
    say(f"W1: {what}")
    with workspace() as folder:
        bench = Bench(folder, [many_groups()], 6, scaled(2_000_000))
        theirs = bench.better(plain(spark_plain.tumbling))
        runs = bench.turns([ours(spark_ours.tumbling), theirs])
    yield from speed_rows("W1", what, 3.0, runs)


# ---- W2: sliding window over a union -------------------------------------------------------


def run_w2() -> Iterator[Row]:
    """Run W2: a sliding count over three sources, one of them behind."""
    what = "sliding 5 min / 1 min count over a union of 3, one behind"
    say(f"W2: {what}")
    held: dict[int, dict[str, SideRun]] = {}
    stores: list[int] = []
    for delay in reversed(DELAYS):
        longest = delay == max(DELAYS)
        with workspace() as folder:
            bench = Bench(folder, *_union_flows(delay))
            forms = _union_forms(delay)
            stores = stores or [sides.index(bench.better(sides)) for sides in forms]
            theirs = [sides[store] for sides, store in zip(forms, stores, strict=True)]
            runs = bench.turns([_sliding_union(), *theirs], 2 if longest else 1)
        held[delay] = {side: fastest(each) for side, each in runs.items()}
        rows = list(speed_rows(f"W2 {delay} s behind", what, 2.0, runs))
        yield from rows if longest else rows[:2]
    yield from _state_by_delay(what, held)
    yield _memory_by_delay(what)


def _union_flows(behind: int) -> tuple[list[Flow], int, int]:
    keys, rate = {"key": scaled(50_000)}, scaled(4_000)
    flows = [Flow(rate, keys, seed, 0.0, back) for seed, back in enumerate((0, 0, behind))]
    return flows, 10, scaled(400_000)


def _union_forms(behind: int) -> list[list[Side]]:
    """Return plain Spark with one watermark that allows for the delay, and with one a source."""
    delay = f"{behind} seconds"
    one = partial(spark_plain.one_watermark, delay=delay, length=LENGTH, slide=SLIDE)
    each = partial(spark_plain.watermark_each, delay="0 seconds", length=LENGTH, slide=SLIDE)
    return [plain(one, "one watermark"), plain(each, "a watermark each")]


def _sliding_union() -> Side:
    return ours(partial(spark_ours.union, length=LENGTH, slide=SLIDE))


def _state_by_delay(what: str, held: dict[int, dict[str, SideRun]]) -> Iterator[Row]:
    """Compare state by delay, on every side.

    For exact answers every group keeps a number for each open minute, and a delay of four minutes
    opens four more beside six or seven: more than 1.25 times as much on any side.
    """
    for delay, sides in held.items():
        for side, ran in sides.items():
            least = held[min(DELAYS)][side]
            name, peer = f"W2 state of {side}, {delay} s behind", f"{side}, {min(DELAYS)} s behind"
            sizes = ran.state_bytes, least.state_bytes
            yield figure(name, what, "bytes", sizes[0], peer, sizes[1], ran.rows) | {
                "target": 1.25 if side == "ours" else None,
                "state_rows": ran.state_rows,
            }


def _memory_by_delay(what: str) -> Row:
    """Compare the memory of the whole query with the longest delay and with none."""
    most, least = (peak_apart(f"W2 {delay}", "ours") for delay in (max(DELAYS), min(DELAYS)))
    label = f"W2, memory of all processes, {max(DELAYS)} s behind"
    peer = f"ours, {min(DELAYS)} s behind"
    flows, files, rows_each = _union_flows(max(DELAYS))
    rows = len(flows) * files * rows_each
    return figure(label, what, "bytes", most, peer, least, rows) | {"target": 1.25}


# ---- W3: band join, then a count -----------------------------------------------------------


def band_flows() -> tuple[list[Flow], int, int]:
    """Return two sources whose rows have 1.2 partners each, the files, and the rows of a file."""
    keys = {"a": 20, "b": 20, "c": 25, "d": scaled(10)}
    return [Flow(scaled(1_000), keys, seed) for seed in (1, 2)], 5, scaled(400_000)


def band_sides() -> tuple[Side, list[Side]]:
    """Return our side and theirs."""
    mine = partial(spark_ours.band_join, band=60, length="1 minute", disorder="2 seconds")
    theirs = partial(spark_plain.band_join, band=60, length="1 minute", delay="2 seconds")
    return ours(mine), plain(theirs)


def run_w3() -> Iterator[Row]:
    """Run W3: a band join on four columns, then a count a minute."""
    what = "band join ±60 s on 4 columns, then count a minute"
    say(f"W3: {what}")
    mine, theirs = band_sides()
    with workspace() as folder:
        bench = Bench(folder, *band_flows())
        runs = bench.turns([mine, bench.better(theirs)])
    rows = list(speed_rows("W3", what, 5.0, runs))
    yield from rows
    peer = rows[0]["peer"]
    held = [peak_apart("W3", side) for side in (mine.name, peer)]
    label = "W3, memory of all processes"
    yield figure(label, what, "bytes", held[0], peer, held[1], rows[0]["rows"]) | {"target": 1.0}


# ---- what is measured in a process of its own ----------------------------------------------


def workloads() -> dict[str, tuple[list[Flow], int, int, list[Side]]]:
    """Return flows, files, rows of a file and sides, by name."""
    mine, theirs = band_sides()
    by_delay = {f"W2 {delay}": (*_union_flows(delay), [_sliding_union()]) for delay in DELAYS}
    return {**by_delay, "W3": (*band_flows(), [mine, *theirs])}


# ---- growth --------------------------------------------------------------------------------


def run_growth() -> Iterator[Row]:
    """Run W1's query on longer streams, and with more buckets."""
    what = "W1's count: longer streams, more buckets"
    say(f"growth: {what}")
    each = scaled(250_000)
    by_length: dict[str, SideRun] = {}
    for files in (64, 16, 4):
        with workspace() as folder:
            bench = Bench(folder, [many_groups()], files, each)
            by_length[f"{files * each / 1e6:g} M rows"] = bench.run(ours(spark_ours.tumbling))
            if files == 16:
                spread = {
                    f"{buckets} buckets": bench.run(
                        ours(partial(spark_ours.tumbling, buckets=buckets))
                    )
                    for buckets in (2, 4, 8)
                }
    yield from _beside_the_last(what, by_length)
    yield from _beside_the_last(what, dict(reversed(spread.items())))


def _beside_the_last(what: str, runs: dict[str, SideRun]) -> Iterator[Row]:
    *_, (name, last) = runs.items()
    for label, ran in runs.items():
        yield figure(
            f"growth, {label}", what, "rows/s", ran.steady_speed, f"ours, {name}",
            last.steady_speed, ran.rows,
        ) | {"state_bytes": ran.state_bytes, "state_bytes_peer": last.state_bytes}  # fmt: skip


# ---- closes: batches of an eighth of a window --------------------------------------------

CLOSE_WINDOW = 60
CLOSE_BATCHES = 8
"""Number of batches in a window."""
WINDOWS = 6
CLOSE_WARM = 2
"""Number of windows at the beginning that do not count."""
ROUNDS = 4
POLICY = slow(every=160, within_windows=2)


def run_closes() -> Iterator[Row]:
    """Compare the slowest batch with the median one, with answers that leave slowly and at once.

    A batch does the same in every round, so its time is the shortest of all rounds: other load on
    the machine can only add to it.
    """
    what = "520k groups a window, 8 batches a window: the slowest batch to the median"
    say(f"closes: {what}")
    sides = [
        Side("slowly", ROCKSDB, partial(spark_ours.tumbling, flush=POLICY)),
        Side("at once", ROCKSDB, spark_ours.tumbling),
    ]
    with workspace() as folder:
        rows = scaled(1_000_000) // CLOSE_BATCHES
        bench = Bench(folder, [many_groups()], CLOSE_BATCHES * WINDOWS, rows)
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
    ) | {"target": POLICY.windows + 1 / CLOSE_BATCHES}


def batch_millis(runs: Sequence[SideRun]) -> list[int]:
    """Return the milliseconds of each batch, once the first windows have closed."""
    rounds = [[batch.trigger for batch in ran.full[CLOSE_WARM * CLOSE_BATCHES :]] for ran in runs]
    return [min(each) for each in zip(*rounds, strict=True)]


def burst(runs: Sequence[SideRun]) -> float:
    """Return the slowest batch in times the median."""
    times = batch_millis(runs)
    return max(times) / median(times)


def _all_out(ran: SideRun) -> pl.DataFrame:
    """Return the answers of windows that had to be all out before the rows ended."""
    last = BEGIN + WINDOWS * CLOSE_WINDOW - (POLICY.windows + 1) * CLOSE_WINDOW
    return ran.results.filter(pl.col("window_end").dt.epoch("s") <= last)


def _latest(ran: SideRun) -> float:
    """Return the windows from a window's end to its latest answer, by the rows that had come."""
    ends = [batch.ended for batch in ran.full]
    a_batch = CLOSE_WINDOW / CLOSE_BATCHES
    late = [0.0]
    answers = ran.results.group_by("window_end").agg(pl.col("written").max())
    for end, written in answers.iter_rows():
        number = bisect_left(ends, written)
        if number < len(ends):  # not of those that leave when the stream ends
            late.append(BEGIN + (number + 1) * a_batch - end.timestamp())
    return max(late) / CLOSE_WINDOW
