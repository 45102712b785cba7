"""A count over a band join, whose output an in-order plan must sort: OOP §8.2, N1 (Fig. 11)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

import lowwater as lw
from lowwater.claims.claim import Claim, Outcome
from lowwater.claims.drawing import curves, tell
from lowwater.claims.measure import SHAPES, engine_of
from lowwater.claims.packets import REPLIES, Link
from lowwater.engines.embedded.clock import VirtualClock
from lowwater.operators.kernel import Kernel
from lowwater.plan.physical.compile import compile_plan
from lowwater.plan.physical.operator import PlanShape
from lowwater.stream.element import Element, Punctuation

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Stopwatch:
    """Measures from the arrival of a promise at the join to the answers it lets go.

    It is the sink, too: answers that leave at the end of the input, by no promise, do not count.
    """

    def __init__(self) -> None:
        self.latencies: list[float] = []
        self.answers = 0
        self._arrived: float | None = None

    def watch(self, kernel: Kernel) -> None:
        """Take note of every promise and of the end of the input a kernel gets."""
        on_promise, on_end = kernel.on_punctuation, kernel.on_end

        def promised(port: int, promise: Punctuation) -> Sequence[Element]:
            self._arrived = time.perf_counter()
            return on_promise(port, promise)

        def ended(port: int) -> Sequence[Element]:
            self._arrived = None
            return on_end(port)

        vars(kernel).update(on_punctuation=promised, on_end=ended)

    def write(self, rows: pl.DataFrame) -> None:
        """Answers have come out."""
        self.answers += int(rows["n"].sum())
        if self._arrived is not None:
            self.latencies.append(time.perf_counter() - self._arrived)

    def close(self) -> None:
        """Nothing to close."""


def _counted_join(band: float, rate: float, seconds: float) -> lw.Stream:
    """Q7: pairs of packets of opposite direction at most ``band`` apart, counted per minute.

    Each flow has a packet every ten seconds, so a packet meets a fifth of a partner per second of
    band.
    """
    flows = round(rate * 10)
    left = Link("M1", rate, seconds, flows, seed=1).stream()
    right = Link("M2", rate, seconds, flows, seed=2, reverse=True).stream()
    pairs = left.join(right, on=REPLIES, within=(band, band))
    return pairs.window("1 minute", on="ts").agg(n="count(*)")


def _measured(query: lw.Stream, shape: PlanShape, tick: float) -> dict[str, Any]:
    watch = Stopwatch()
    engine = engine_of(compile_plan(query._node, shape), VirtualClock(), watch, tick)
    watch.watch(engine.stage("join").kernel)
    begun = time.perf_counter()
    engine.run()
    seconds = time.perf_counter() - begun
    # The least latency over the windows: whatever else the machine does can only add to it.
    return {
        "bytes": engine.metrics().memory_peak,
        "latency_ms": 1e3 * min(watch.latencies),
        "seconds": seconds,
        "pairs": watch.answers,
    }


def run(quick: bool) -> Outcome:
    """Memory, latency and execution time of both plans over the band."""
    rate, bands, tick = (500, (1, 20, 60), 5.0) if quick else (1_000, (1, 15, 30, 60, 120), 2.0)
    rows = []
    for band in bands:
        query = _counted_join(band, rate, 2 * band + 130)
        found = {name: _measured(query, shape, tick) for name, shape in SHAPES.items()}
        if found["IOP"]["pairs"] != found["OOP"]["pairs"]:
            raise AssertionError(f"band {band} s: the plans counted different pairs")
        row: dict[str, Any] = {"band_seconds": band, "pairs": found["OOP"]["pairs"]}
        for name, measured in found.items():
            for what in ("bytes", "latency_ms", "seconds"):
                row[f"{name.lower()}_{what}"] = measured[what]
        rows.append(row)
    return judge(pl.DataFrame(rows))


def judge(points: pl.DataFrame) -> Outcome:
    """How far below in-order, and whether more so as the band grows."""
    table = points.with_columns(
        (pl.col(f"oop_{what}") / pl.col(f"iop_{what}")).alias(f"{what}_ratio")
        for what in ("bytes", "latency_ms", "seconds")
    )
    first, last = table.row(0, named=True), table.row(-1, named=True)
    falling = table["bytes_ratio"].is_sorted(descending=True)
    holds = (
        falling
        and last["bytes_ratio"] < 0.5
        and last["latency_ms_ratio"] < min(1.0, first["latency_ms_ratio"])
        and last["seconds_ratio"] < 1
    )
    ours = (
        f"OOP/IOP from band {first['band_seconds']} s to {last['band_seconds']} s:"
        f" memory {first['bytes_ratio']:.2f} → {last['bytes_ratio']:.2f},"
        f" latency {first['latency_ms_ratio']:.2f} → {last['latency_ms_ratio']:.2f},"
        f" execution time {first['seconds_ratio']:.2f} → {last['seconds_ratio']:.2f}"
    )
    return Outcome(ours, holds, table, lambda figure: _plot(figure, table, last))


def _plot(figure: Figure, table: pl.DataFrame, last: dict[str, Any]) -> None:
    panels = figure.subplots(1, 3)
    wanted = (
        ("bytes", 1e6, "peak memory [MB]"),
        ("latency_ms", 1.0, "latency of an answer [ms]"),
        ("seconds", 1.0, "execution time [s]"),
    )
    for axes, (what, scale, label) in zip(panels, wanted, strict=True):
        curves(axes, table, "band_seconds", what, scale)
        axes.set(xlabel="band ± n [s]", ylabel=label)
    panels[0].legend()
    tell(
        figure,
        f"With no sort after the band join, memory is {last['bytes_ratio']:.0%}, latency"
        f" {last['latency_ms_ratio']:.0%} and time {last['seconds_ratio']:.0%}"
        f" of in-order at ± {last['band_seconds']} s",
        "OOP far below IOP in memory and latency, below it in time; the gap widens with the band",
    )


N1 = Claim(
    "OOP-N1",
    "Q7: count per minute over a band join",
    "OOP far below IOP in memory and latency, below it in execution time; more so with n",
    "memory ratio falls at every n, latency ratio from the least n to the greatest; there memory"
    " < 0.5, latency and time < 1",
    run,
)
