"""These claims measure band joins: the rows held while one input may be late (OOP §5.3, Fig. 5),
and a count over the pairs, which an in-order plan must sort (§8.2, N1, Fig. 11)."""

from __future__ import annotations

import time
from typing import Any

import polars as pl

import lowwater as lw
from lowwater.claims import oop_plots as plots
from lowwater.claims.claim import Claim, Criterion, Outcome, Scale, judge
from lowwater.claims.oop_memory import ALL_ROWS, SHAPES
from lowwater.claims.packets import REPLIES, Link
from lowwater.probe import Observer, Probe, Step

# ---- OOP-S5.3 ------------------------------------------------------------------------------

LATE, BAND = 5, 2
"""Minutes by which a row of S0 may be late, and minutes between the rows of a pair."""
TOLERANCE = 0.4
"""Minutes by which a figure may be off: mostly because of late rows and the length of a tick."""


EXPECTED = {
    "iop_sort_s0": (LATE, LATE),
    "iop_join_s0": (0, 0),
    "iop_join_s1": (LATE + BAND, LATE + BAND),
    "oop_join_s0": (BAND, BAND),
    "oop_join_s1": (LATE, LATE + BAND),
}
"""The least and the most minutes that a buffer should hold, by column."""


def _join(rate: float, minutes: float) -> lw.Stream:
    """Return the join of S0, of which one row in fifty is up to five minutes late, and S1."""
    seconds, flows = minutes * 60, round(rate * 600)
    late = Link("S0", rate, seconds, flows, seed=1, late_share=0.02, late_by=60 * LATE, even=True)
    in_order = Link("S1", rate, seconds, flows, seed=2, reverse=True, even=True)
    left = late.stream(progress=lw.within(60 * LATE))
    return left.join(in_order.stream(), on=REPLIES, within=(60 * BAND, 60 * BAND))


class HeldMinutes(Observer):
    """Samples the minutes of each input that are held, whenever all that arrived is done."""

    def __init__(self, plan: str, rate: float):
        self._plan, self._a_minute = plan, rate * 60
        self._samples: list[dict[str, float]] = []

    def on_idle(self) -> None:
        """Take a sample."""
        join, plan = self.run.operator("join"), self._plan
        held = {f"{plan}_join_s{port}": join.rows_of(port) for port in (0, 1)}
        if plan == "iop":
            held["iop_sort_s0"] = self.run.operator("sort").rows
        minutes = {name: rows / self._a_minute for name, rows in held.items()}
        self._samples.append({"minute": self.run.seconds / 60, **minutes})

    def table(self) -> pl.DataFrame:
        """Return all samples, the last of each moment."""
        minute = pl.col("minute").round(3)
        return pl.DataFrame(self._samples).with_columns(minute).unique("minute", keep="last")


S53_SCALE = Scale((100, 30, 2.0), (10, 14, 5.0))
"""Rows a second, minutes, seconds of a tick."""


def run_s53(quick: bool) -> Outcome:
    """Sample both plans and take the median once the buffers are full."""
    rate, minutes, tick = S53_SCALE.of(quick)
    query, samples = _join(rate, minutes), []
    for plan, shape in SHAPES.items():
        held = HeldMinutes(plan, rate)
        Probe(query, observer=held, plan=shape, tick=tick, chunk_rows=ALL_ROWS, keep=False).run()
        samples.append(held.table())
    table = samples[0].join(samples[1], on="minute").sort("minute")
    table = table.filter(pl.col("minute") <= minutes)
    full = table.filter(pl.col("minute") > LATE + BAND + 1)
    medians = {name: float(full[name].median()) for name in EXPECTED}  # type: ignore[arg-type]
    ours = (
        f"IOP: {medians['iop_sort_s0']:.1f} min of S0 in the sort, {medians['iop_join_s0']:.1f} in"
        f" the join, {medians['iop_join_s1']:.1f} min of S1; OOP: {medians['oop_join_s0']:.1f} min"
        f" of S0, {medians['oop_join_s1']:.1f} min of S1"
    )
    criteria = [
        Criterion(
            low - TOLERANCE <= medians[name] <= high + TOLERANCE,
            f"{name} is {medians[name]:.1f} min",
        )
        for name, (low, high) in EXPECTED.items()
    ]
    return judge(ours, criteria, table, lambda figure: plots.s53(figure, medians, EXPECTED))


# ---- OOP-N1 --------------------------------------------------------------------------------


class Stopwatch(Observer):
    """Measures real time from the arrival of a punctuation at the join to the answers it releases.

    Answers that leave at the end of the input, by no punctuation, do not count.
    """

    def __init__(self) -> None:
        self.latencies: list[float] = []
        """Seconds from each punctuation to each chunk of answers that it released."""
        self.answers = 0
        self._arrived: float | None = None

    def on_begin(self, step: Step) -> None:
        """Note the time of every punctuation that the join takes."""
        if step.operator.name == "join" and step.kind in ("punctuation", "end"):
            self._arrived = time.perf_counter() if step.kind == "punctuation" else None

    def on_results(self, rows: pl.DataFrame) -> None:
        """Count answers, and take the time since the punctuation that released them."""
        self.answers += int(rows["n"].sum())
        if self._arrived is not None:
            self.latencies.append(time.perf_counter() - self._arrived)


def _counted_join(band: float, rate: float, seconds: float) -> lw.Stream:
    """Return Q7: a count, by the minute, of packets of opposite direction within ``band`` seconds.

    Each flow has a packet every ten seconds, so a packet meets a fifth of a partner per second of
    band.
    """
    flows = round(rate * 10)
    left = Link("M1", rate, seconds, flows, seed=1).stream()
    right = Link("M2", rate, seconds, flows, seed=2, reverse=True).stream()
    pairs = left.join(right, on=REPLIES, within=(band, band))
    return pairs.window("1 minute", on="ts").agg(n="count(*)")


N1_SCALE = Scale((1_000, (1, 15, 30, 60, 120), 2.0), (500, (1, 20, 60), 5.0))
"""Packets a second of each link, bands in seconds, seconds of a tick."""


def run_n1(quick: bool) -> Outcome:
    """Measure memory, latency and execution time of both plans over the band."""
    rate, bands, tick = N1_SCALE.of(quick)
    rows = []
    for band in bands:
        query = _counted_join(band, rate, 2 * band + 130)
        row: dict[str, Any] = {"band_seconds": band, "pairs": 0}
        for plan, shape in SHAPES.items():
            watch = Stopwatch()
            run = Probe(
                query, observer=watch, plan=shape, tick=tick, chunk_rows=ALL_ROWS, keep=False
            ).run()
            if plan == "oop" and row["pairs"] != watch.answers:
                raise AssertionError(f"band {band} s: the plans counted different pairs")
            row["pairs"] = watch.answers
            row[f"{plan}_bytes"] = run.metrics().memory_peak or 0
            # The least over the windows, because other load on the machine can only add to it.
            row[f"{plan}_latency_ms"] = 1e3 * min(watch.latencies)
            row[f"{plan}_seconds"] = run.wall_seconds
        rows.append(row)
    return n1_outcome(pl.DataFrame(rows))


def n1_outcome(points: pl.DataFrame) -> Outcome:
    """Judge how far the figures are below those of the in-order plan, and whether the distance
    grows with the band."""
    table = points.with_columns(
        (pl.col(f"oop_{what}") / pl.col(f"iop_{what}")).alias(f"{what}_ratio")
        for what in ("bytes", "latency_ms", "seconds")
    )
    first, last = table.row(0, named=True), table.row(-1, named=True)
    memory, latency = last["bytes_ratio"], last["latency_ms_ratio"]
    ours = (
        f"OOP/IOP from band {first['band_seconds']} s to {last['band_seconds']} s:"
        f" memory {first['bytes_ratio']:.2f} → {memory:.2f},"
        f" latency {first['latency_ms_ratio']:.2f} → {latency:.2f},"
        f" execution time {first['seconds_ratio']:.2f} → {last['seconds_ratio']:.2f}"
    )
    criteria = [
        Criterion(
            table["bytes_ratio"].is_sorted(descending=True), "memory does not fall with the band"
        ),
        Criterion(memory < 0.5, f"memory is {memory:.2f} of IOP's"),
        Criterion(latency < min(1.0, first["latency_ms_ratio"]), "latency does not fall"),
        Criterion(last["seconds_ratio"] < 1, "it takes longer than IOP"),
    ]
    return judge(ours, criteria, table, lambda figure: plots.n1(figure, table, last))


S53 = Claim(
    "OOP-S5.3",
    "band join of ± 2 min, S0 may be 5 min late",
    "IOP holds 5 min of S0 in the sort and 7 min of S1; OOP holds 2 min of S0 and 5–7 min of S1",
    f"those minutes, give or take {TOLERANCE}",
    run_s53,
)
N1 = Claim(
    "OOP-N1",
    "Q7: count per minute over a band join",
    "OOP far below IOP in memory and latency, below it in execution time; more so with n",
    "memory ratio falls at every n, latency ratio from the least n to the greatest; there memory"
    " < 0.5, latency and time < 1",
    run_n1,
)
