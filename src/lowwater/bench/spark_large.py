"""Large batches on Spark: ours against plain Spark over the same files, in one session.

W1 counts by many groups, W2 counts over sources that do not keep step, W3 joins and counts; growth
says what our own cost does as the stream gets longer and state is spread over more buckets.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from lowwater.bench import spark_ours, spark_plain
from lowwater.bench.spark_compare import (
    Bench,
    Row,
    fastest,
    figure,
    say,
    scaled,
    speed_rows,
    workspace,
)
from lowwater.bench.spark_data import Flow
from lowwater.bench.spark_memory import peak_apart
from lowwater.bench.spark_side import Ran, Side, ours, plain

DELAYS = (0, 60, 240)
"""Seconds by which one source of W2 is behind the others."""

SLIDING = ("5 minutes", "1 minute")


# ---- W1: tumbling window, many groups ------------------------------------------------------


def many_groups() -> Flow:
    """A million rows a minute, of which about 520,000 differ in their key."""
    return Flow(scaled(1_000_000) / 60, {"ip": 1_000, "port": scaled(670)})


def run_w1() -> Iterator[Row]:
    """Tumbling count by two columns."""
    what = "tumbling 1 min count by 2 columns, 520k groups a window"
    say(f"W1: {what}")
    with workspace() as folder:
        bench = Bench(folder, [many_groups()], 6, scaled(2_000_000))
        theirs = bench.better(plain(spark_plain.tumbling))
        runs = bench.turns([ours(spark_ours.tumbling), theirs])
    yield from speed_rows("W1", what, 3.0, runs)


# ---- W2: sliding window over a union -------------------------------------------------------


def run_w2() -> Iterator[Row]:
    """Sliding count over three sources, one of them behind."""
    what = "sliding 5 min / 1 min count over a union of 3, one behind"
    say(f"W2: {what}")
    held: dict[int, dict[str, Ran]] = {}
    stores: list[int] = []
    for delay in reversed(DELAYS):
        longest = delay == max(DELAYS)
        with workspace() as folder:
            bench = Bench(folder, *_union_flows(delay))
            forms = _union_forms(delay)
            stores = stores or [sides.index(bench.better(sides)) for sides in forms]
            theirs = [sides[store] for sides, store in zip(forms, stores, strict=True)]
            runs = bench.turns([ours(_sliding_union), *theirs], 2 if longest else 1)
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
    """Plain Spark with one watermark that allows for the delay, and with one for each source."""
    return [
        plain(partial(_one_watermark, f"{behind} seconds"), "one watermark"),
        plain(_watermark_each, "a watermark each"),
    ]


def _sliding_union(sources: list[Any]) -> Any:
    return spark_ours.union(sources, *SLIDING)


def _one_watermark(delay: str, sources: list[Any]) -> Any:
    return spark_plain.one_watermark(sources, delay, *SLIDING)


def _watermark_each(sources: list[Any]) -> Any:
    return spark_plain.watermark_each(sources, "0 seconds", *SLIDING)


def _state_by_delay(what: str, held: dict[int, dict[str, Ran]]) -> Iterator[Row]:
    """How state grows with the delay, on every side.

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
    """What the whole query takes, with the longest delay and with none."""
    most, least = (peak_apart(f"W2 {delay}", "ours") for delay in (max(DELAYS), min(DELAYS)))
    label = f"W2, memory of all processes, {max(DELAYS)} s behind"
    peer = f"ours, {min(DELAYS)} s behind"
    flows, files, rows_each = _union_flows(max(DELAYS))
    rows = len(flows) * files * rows_each
    return figure(label, what, "bytes", most, peer, least, rows) | {"target": 1.25}


# ---- W3: band join, then a count -----------------------------------------------------------


def band_flows() -> tuple[list[Flow], int, int]:
    """Two sources whose rows have 1.2 partners each, in so many files of so many rows."""
    keys = {"a": 20, "b": 20, "c": 25, "d": scaled(10)}
    return [Flow(scaled(1_000), keys, seed) for seed in (1, 2)], 5, scaled(400_000)


def band_sides() -> tuple[Side, list[Side]]:
    """Ours and theirs."""
    mine = partial(spark_ours.band_join, band=60, length="1 minute", disorder="2 seconds")
    theirs = partial(spark_plain.band_join, band=60, length="1 minute", delay="2 seconds")
    return ours(mine), plain(theirs)


def run_w3() -> Iterator[Row]:
    """Band join on four columns, then a count a minute."""
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
    """Flows, files, rows of a file and sides, by name."""
    mine, theirs = band_sides()
    by_delay = {f"W2 {delay}": (*_union_flows(delay), [ours(_sliding_union)]) for delay in DELAYS}
    return {**by_delay, "W3": (*band_flows(), [mine, *theirs])}


# ---- growth --------------------------------------------------------------------------------


def run_growth() -> Iterator[Row]:
    """W1's query as the stream gets longer, and with more buckets."""
    what = "W1's count: longer streams, more buckets"
    say(f"growth: {what}")
    each = scaled(250_000)
    by_length: dict[str, Ran] = {}
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


def _beside_the_last(what: str, runs: dict[str, Ran]) -> Iterator[Row]:
    *_, (name, last) = runs.items()
    for label, ran in runs.items():
        yield figure(
            f"growth, {label}", what, "rows/s", ran.steady_speed, f"ours, {name}",
            last.steady_speed, ran.rows,
        ) | {"state_bytes": ran.state_bytes, "state_bytes_peer": last.state_bytes}  # fmt: skip
